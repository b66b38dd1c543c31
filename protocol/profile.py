"""Requests and replies about an agent's context: profile, injected texts, context package.

Invariants: a `profile` request changes nothing; a revision counts as injected only after `printed` (Q1); agents receive
the text of a reply byte for byte (U8).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .record import Record, Status
from .request_fields import Many, Names, Request, ScopedRequest

Delivery = Literal["per_turn", "sticky"]
"""How long a host keeps injected text: for one turn, or until it clears or compacts its context."""

Trigger = Literal["turn", "start", "resume", "clear", "compact"]
"""The host's event: a turn, a session start or resume, or its context was cleared or compacted."""


class Profile(ScopedRequest, tag="profile", frozen=True, kw_only=True):
    """Return the cached profile of the user, with the project if `cwd` is in one (Q1). `agent` adds that agent's pool.

    A hook sends this on every turn with its session (`document`, `host:session`); the reply's `due` depends on
    `delivery` and `trigger`. `prompt`: the turn's prompt, as a question (Q13); memd reads its start and its end.

    `as_of`, `believed_at`: what it said then, as in `recall` (Q12). Such a profile is never due, takes no prompt and
    has no section on the last session. `assuming`: what it would say if these records were so, for the preview of a
    change; of the owner alone.
    """

    budget_tokens: Many = 500
    agent: str = ""
    document: str = ""
    delivery: Delivery = "per_turn"
    trigger: Trigger = "turn"
    prompt: str = ""
    as_of: str = ""
    believed_at: str = ""
    assuming: Annotated[tuple[Record, ...], msgspec.Meta(max_length=16)] = ()


class PromptMemories(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that a prompt recalled (Q13): fenced text, to be printed after a profile that is due, its revision, the
    records of its lines in order, and its tokens."""

    text: str
    rev: str
    ids: tuple[str, ...]
    tokens: int


class ProfileLine(msgspec.Struct, frozen=True, array_like=True):
    """A line of a profile: its record, the heading above it, its characters `start:end` in the text, and the record's
    status."""

    id: str
    section: str
    start: int
    end: int
    status: Status


class ProfileText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `profile`: text for an agent's context and its revision. `ids`: the records of `lines`, in order.

    `text` is "" or fenced (`<memd-context>`) and marked as memory. Its first `static_characters` change only with their
    own records, so a prompt cache stays valid. `tokens`: by the model's tokenizer. `due`: print it now; `why`: the
    reason. `note`: what memd omitted. `recalled`: what the request's prompt recalled, None for nothing.
    """

    text: str
    rev: str
    ids: tuple[str, ...]
    scope: tuple[str, ...]
    tokens: int
    lines: tuple[ProfileLine, ...] = ()
    pending: int = 0
    static_characters: int = 0
    due: bool = True
    why: str = ""
    note: str = ""
    recalled: PromptMemories | None = None


def changed_lines(before: ProfileText, after: ProfileText) -> tuple[list[str], list[str]]:
    """Return the lines of records that `after` no longer has, and those that it has instead, in their order, without
    the marks of a list."""
    then, now = (
        [text.text[line.start : line.end].removeprefix("- ") for line in text.lines] for text in (before, after)
    )
    return [line for line in then if line not in now], [line for line in now if line not in then]


class Printed(Request, tag="printed", frozen=True, kw_only=True):
    """Report that a hook printed a revision of the profile into a session (Q1), one of recalled lines (`recall`, Q13),
    or both; "" for none."""

    document: str
    rev: str
    recall: str = ""


class PrintNoted(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `printed`. `known`: memd had offered each named revision to this session; if not, it stays due."""

    known: bool


class ListInjected(Request, tag="injected", frozen=True, kw_only=True):
    """List injected texts, newest first; of one session, by its document or id or a prefix."""

    session: str = ""
    limit: Many = 20


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """A text that an agent received `times` times in a session. `ids`: the records of its lines.

    `asked_at`: when a prompt recalled the text (RFC 3339), "" for a profile; `turn` and `prompt`: the prompt's turn and
    the start of its words, "" while memd has not captured it.
    """

    document: str
    at: str
    rev: str
    why: str
    text: str
    ids: tuple[str, ...] = ()
    tokens: int = 0
    times: int = 1
    asked_at: str = ""
    turn: str = ""
    prompt: str = ""


class Injections(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `injected`. `total`: all stored injections."""

    injections: tuple[Injection, ...]
    total: int


class GetContext(ScopedRequest, tag="context", frozen=True, kw_only=True):
    """Return the context package of a folder: L1 in full, L2 by tag and project, L3 of the last `days` (Q11).

    `tags`: only L2 records with one of them; by default what the lens of the folder needs (P6), or without one all of
    the project, and those of the user that share a frequent tag of its recent records. `days`: 0 for the time window of
    the project's policy. `as_of`, `believed_at` as in `recall` (Q12)."""

    agent: str = ""
    tags: Names = ()
    days: Annotated[int, msgspec.Meta(ge=0, le=3650)] = 0
    as_of: str = ""
    believed_at: str = ""


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the context package, with its salience in [0, 1] including the boost of its tags."""

    record: Record
    salience: float
    why: str


class ContextPackage(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `context`: `context.md` and `selected_memory.json` (Q11). `left_out`: records over the limit; `project`:
    the name of the part of the repository (P6)."""

    context: str
    selected: tuple[Selected, ...]
    scope: tuple[str, ...]
    tokens: int
    left_out: int = 0
    note: str = ""
    project: str = ""
