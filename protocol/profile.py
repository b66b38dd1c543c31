"""What is put into an agent's context: the profile, which of it a session was given, and the whole context as files.

Comes in: where the agent works, what its host says happened. Goes out: text that is fenced and marked as memory, and
whether it is due. Invariants: asking changes nothing; a revision counts as given once its client says that it printed
it (Q1); the text in an answer is, byte for byte, what an agent gets (U8).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .event import Repository
from .intent import Many, Names, Request
from .record import Record

Delivery = Literal["per_turn", "sticky"]
"""How a host keeps what is put into its context: for one turn, or until it clears or compacts it."""

Trigger = Literal["turn", "start", "resume", "clear", "compact"]
"""What happened at the host: a turn begins, a session begins or goes on, its context was cleared or compacted."""


class Profile(Request, tag="profile", frozen=True, kw_only=True):
    """The cached profile of a user, inside a project if `cwd` lies in one (Q1). `agent` adds that agent's own pool.

    A hook names its session by `document` (`host:session`) and asks on every turn: the answer's `due` says whether to
    print it now, by what the host keeps (`delivery`) and what happened there (`trigger`).
    """

    cwd: str = ""
    pools: Names = ()
    budget_tokens: Many = 500
    repository: Repository | None = None
    agent: str = ""
    document: str = ""
    delivery: Delivery = "per_turn"
    trigger: Trigger = "turn"


class ProfileText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of a `profile`: text for an agent's context, its revision, and the records that its lines rest on, in order.

    `text` is "" where nothing is known; else it is fenced (`<memd-context>`) and says what it is. Its first
    `static_characters` keep their bytes while what they rest on does, so a prompt cache stays warm. `tokens`: by the
    model's own tokenizer. `due`: print it now; `why`: the reason for or against. `note`: what was left out.
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
    """A hook reports that it printed a revision of the profile into a session: from now on that one counts (Q1)."""

    document: str
    rev: str


class PrintNoted(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `printed`: whether the revision is one that this session was offered; if not, it will be due again."""

    known: bool


class ListInjected(Request, tag="injected", frozen=True, kw_only=True):
    """What agents were given, newest first: of one session, by its document, its name or the beginning of either."""

    session: str = ""
    limit: Many = 20


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """A text that an agent got: in which session, when, exactly which, for which reason, resting on which records."""

    document: str
    at: str
    rev: str
    why: str
    text: str
    ids: tuple[str, ...] = ()
    tokens: int = 0
    times: int = 1


class Injections(msgspec.Struct, frozen=True, kw_only=True):
    """Of an `injected`; `total` counts all that is kept."""

    injections: tuple[Injection, ...]
    total: int


class GetContext(Request, tag="context", frozen=True, kw_only=True):
    """The context package of a folder: L1 in full, L2 by tag and project, L3 of the last `days` (Q11)."""

    cwd: str = ""
    pools: Names = ()
    repository: Repository | None = None
    agent: str = ""
    tags: Names = ()
    days: Annotated[int, msgspec.Meta(ge=1, le=3650)] = 14


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the context package, its salience in [0, 1] with the boost of its tags, and why it is there."""

    record: Record
    salience: float
    why: str


class ContextPackage(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `context`: what `context.md` and `selected_memory.json` hold (Q11). `left_out`: records over the cap."""

    context: str
    selected: tuple[Selected, ...]
    scope: tuple[str, ...]
    tokens: int
    left_out: int = 0
    note: str = ""
