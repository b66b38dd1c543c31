"""Requests and replies about an agent's context: profile, injected texts, context package.

Invariants: a `profile` request changes nothing; a revision counts as injected only after `printed` (Q1); agents receive
the text of a reply byte for byte (U8).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .record import Record
from .request_fields import Many, Names, Request, ScopedRequest

Delivery = Literal["per_turn", "sticky"]
"""How long a host keeps injected text: for one turn, or until it clears or compacts its context."""

Trigger = Literal["turn", "start", "resume", "clear", "compact"]
"""The host's event: a turn, a session start or resume, or its context was cleared or compacted."""


class Profile(ScopedRequest, tag="profile", frozen=True, kw_only=True):
    """Return the cached profile of the user, with the project if `cwd` is in one (Q1). `agent` adds that agent's pool.

    A hook sends this on every turn with its session (`document`, `host:session`); the reply's `due` depends on
    `delivery` and `trigger`.
    """

    budget_tokens: Many = 500
    agent: str = ""
    document: str = ""
    delivery: Delivery = "per_turn"
    trigger: Trigger = "turn"


class ProfileText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `profile`: text for an agent's context and its revision. `ids`: the records of its lines, in order.

    `text` is "" or fenced (`<memd-context>`) and marked as memory. Its first `static_characters` change only with their
    own records, so a prompt cache stays valid. `tokens`: by the model's tokenizer. `due`: print it now; `why`: the
    reason. `note`: what memd omitted.
    """

    text: str
    rev: str
    ids: tuple[str, ...]
    scope: tuple[str, ...]
    tokens: int
    pending: int = 0
    static_characters: int = 0
    due: bool = True
    why: str = ""
    note: str = ""


class Printed(Request, tag="printed", frozen=True, kw_only=True):
    """Report that a hook printed a revision of the profile into a session (Q1)."""

    document: str
    rev: str


class PrintNoted(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `printed`. `known`: memd had offered the revision to this session; if not, it stays due."""

    known: bool


class ListInjected(Request, tag="injected", frozen=True, kw_only=True):
    """List injected texts, newest first; of one session, by its document or id or a prefix."""

    session: str = ""
    limit: Many = 20


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """A text that an agent received `times` times in a session. `ids`: the records of its lines."""

    document: str
    at: str
    rev: str
    why: str
    text: str
    ids: tuple[str, ...] = ()
    tokens: int = 0
    times: int = 1


class Injections(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `injected`. `total`: all stored injections."""

    injections: tuple[Injection, ...]
    total: int


class GetContext(ScopedRequest, tag="context", frozen=True, kw_only=True):
    """Return the context package of a folder: L1 in full, L2 by tag and project, L3 of the last `days` (Q11)."""

    agent: str = ""
    tags: Names = ()
    days: Annotated[int, msgspec.Meta(ge=1, le=3650)] = 14


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the context package, with its salience in [0, 1] including the boost of its tags."""

    record: Record
    salience: float
    why: str


class ContextPackage(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `context`: `context.md` and `selected_memory.json` (Q11). `left_out`: records over the limit."""

    context: str
    selected: tuple[Selected, ...]
    scope: tuple[str, ...]
    tokens: int
    left_out: int = 0
    note: str = ""
