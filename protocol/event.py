"""Capture events: what a client reports, and where it happened.

Invariants: `(document, turn)` identifies a capture for ever, and live capture and import of a turn give the same pair
(W13); `at` has an offset; trust depends on the event's class and role, never on its text.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from .instant import Instant

Trust = Literal["user", "assistant", "tool", "document"]
Visibility = Literal["private", "shared", "organisation"]
"""Who may see a record without a choice of the user for that record: the user alone, those who share its project, or
everyone in the organisation (P7). memd shares nothing by itself that is `private` or rests on a `private` session. What
the user chooses in `memd share review` goes whatever its visibility is. Nothing serves an organisation yet."""

VISIBILITIES: tuple[Visibility, ...] = ("private", "shared", "organisation")
"""From narrow to wide."""

Form = Literal["", "purpose", "commands", "row", "open"]
"""What a part of a document is by its place: prose or a list item, the opening of a README, commands with the words
that announce them, a table row told with its column names, what an agent's todo list leaves open at its session's
end."""

SaidBy = Literal["", "page", "outside", "file"]
"""What had the text of a command before the agent ran it: nothing that the client saw, a page from another machine, a
file from outside of the project, or the result of another tool."""

ARGUMENT_LIMIT = 200
"""Characters of a tool call's arguments that clients keep."""

PLAN_ITEMS = 40
"""Most items of a plan."""

PlanStatus = Literal["open", "begun", "done", "dropped"]
"""`dropped`: the agent cancelled the item."""


class Repository(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Repository evidence for a daemon that cannot see the client's file system."""

    root: str = ""
    root_commit: str = ""
    remote: str = ""


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The source of events. `cwd` decides the project (P3). `visibility`: the widest
    one of its records, each of which takes the narrowest of its sources (P7)."""

    host: str
    session: str
    cwd: str = ""
    repository: Repository | None = None
    agent: str = ""
    live: bool = True
    title: str = ""
    visibility: Visibility = "private"

    @property
    def document(self) -> str:
        """The document id, `host:session`: the same for hooks and import (W13)."""
        return f"{self.host}:{self.session}"


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """Base of all events. `turn` is deterministic and unique within its document."""

    turn: str
    at: Instant


class Said(Event, tag="said", frozen=True, kw_only=True):
    """The user typed a turn, or the agent wrote prose. `answers`: the turn of this document that holds the question to
    which the text is the answer, if the host says so. `approved`: the user approved the whole text, such as a plan."""

    role: Literal["user", "assistant"]
    text: str
    answers: str = ""
    approved: bool = False


class Noted(Event, tag="noted", frozen=True, kw_only=True):
    """The user or an agent asked memd to remember exactly this text (W2). `pool`: the pool that they named, which the
    daemon replaces by its full name; "" where its subject decides."""

    text: str
    role: Literal["user", "assistant"] = "user"
    pool: str = ""


class Reworded(Event, tag="reworded", frozen=True, kw_only=True):
    """The user edited a record: the source of its new revision."""

    record: str
    text: str


class Wrote(Event, tag="wrote", frozen=True, kw_only=True):
    """A document contains this text: a commit message, a part of a Markdown file. `own`: its `author` has an address of
    the user, by the user's own settings (P-19). `path`: the file and the headings above the part."""

    text: str
    author: str = ""
    path: str = ""
    own: bool = False
    form: Form = ""


class Taught(Event, tag="taught", frozen=True, kw_only=True):
    """A course has this text (O3): a section verbatim, or a question with the keywords of its answer, one a line.
    `path`: the titles above it. No stage and no search of turns reads it: an agent finds the record of the section."""

    text: str
    path: str = ""
    form: Literal["section", "question"] = "section"


class ToolCalled(Event, tag="tool_called", frozen=True, kw_only=True):
    """The agent called a tool: `arguments` are the first characters. `refused`: the user did not allow it. `said_by`:
    what had the text of one of its commands first, if it was a tool's result (K1)."""

    name: str
    arguments: str = ""
    outcome: Literal["ok", "error", "refused", "unknown"] = "unknown"
    said_by: SaidBy = ""


class Returned(Event, tag="returned", frozen=True, kw_only=True):
    """The output of a tool call, which clients send only where the setting `archive_keep_tool_output` is on (C4). It is
    part of the transcript: nothing is learned from it, and no recall searches it. `call`: the turn of the call."""

    call: str
    text: str


class Committed(Event, tag="committed", frozen=True, kw_only=True):
    """The agent made a commit: its abbreviated id, its subject, and the number of its files, 0 if that is not known."""

    id: str
    subject: str
    files: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0


class Checked(Event, tag="checked", frozen=True, kw_only=True):
    """The agent ran a check, such as tests, a linter or a build: the numbers that it printed, and its outcome by its
    own output, else by its exit status. `unclear`: neither tells."""

    what: str
    passed: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    failed: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    state: Literal["passed", "failed", "unclear"] = "unclear"


class PlanItem(msgspec.Struct, frozen=True, array_like=True):
    """An item of a plan."""

    text: str
    status: PlanStatus


class Planned(Event, tag="planned", frozen=True, kw_only=True):
    """The agent's plan, as it stood when the agent last changed it. It is part of the transcript; what it leaves open
    is told by a `Wrote` of the form `open`."""

    items: Annotated[tuple[PlanItem, ...], msgspec.Meta(max_length=PLAN_ITEMS)]


class Interrupted(Event, tag="interrupted", frozen=True, kw_only=True):
    """The agent's work broke off: the user stopped it, or the host met an error."""

    by: Literal["user", "error"] = "user"


HandoverTexts = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=300)], ...], msgspec.Meta(max_length=12)
]


class HandedOver(Event, tag="handed_over", frozen=True, kw_only=True):
    """An agent hands its session over: what is done, decided, still open, and which open items it closed (C1)."""

    done: HandoverTexts = ()
    decided: HandoverTexts = ()
    open: HandoverTexts = ()
    closed: HandoverTexts = ()


class Settled(Event, tag="settled", frozen=True, kw_only=True):
    """What became of the lines that the agent wrote after the user's turn `of`: how many they were, how many the agent
    took away again in the next three turns of the user, and how many of these followed so far (O2)."""

    of: str
    lines: Annotated[int, msgspec.Meta(ge=0, le=10**9)]
    lost: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    followed: Annotated[int, msgspec.Meta(ge=0, le=3)] = 0


class Stated(Event, tag="stated", frozen=True, kw_only=True):
    """The user changed the current state of a pool (C1): `text` is a new item, "" for none; `closes` names the item
    that is closed or replaced. `turn` is the new item's id."""

    section: Literal["open", "watch"] = "open"
    text: str = ""
    closes: str = ""


class Pointer(msgspec.Struct, frozen=True, array_like=True):
    """Characters `start:end` of the text of a turn of the same document."""

    turn: str
    start: int
    end: int


StatementType = Literal[
    "identity",
    "preference",
    "decision",
    "convention",
    "lesson",
    "commitment",
    "event",
    "procedure",
    "fact",
]
"""The types of statement that a reader of a session may name."""

QUOTES, STATEMENTS, LEARNINGS = 3, 40, 6
"""Most quotes of a statement, and most statements and learnings of a reflection."""


class Pointed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that a reader of the session found, as the places of its words, in the order of the text. `about`:
    whom a statement of the user is about, "" where memd decides. `learnings`: what the agent learnt from it, in its own
    words, by its perspective (O4)."""

    type: StatementType
    quotes: Annotated[tuple[Pointer, ...], msgspec.Meta(min_length=1, max_length=QUOTES)]
    about: Literal["", "user", "project"] = ""
    learnings: dict[str, str] = {}


class Reflected(Event, tag="reflected", frozen=True, kw_only=True):
    """A reader other than memd's own model read the session: its agent, or a model that the user configured (W4). The
    event holds no words but the title and the learnings: what is forgotten in a turn is forgotten here. `upto`: the
    last turn read; `tokens`: of the reader's answer, estimated."""

    reader: str
    title: str = ""
    statements: Annotated[tuple[Pointed, ...], msgspec.Meta(max_length=STATEMENTS + LEARNINGS)] = ()
    upto: str = ""
    tokens: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0

    @property
    def learnt_from(self) -> frozenset[str]:
        """The turns from which the learnings are: forgetting one of them forgets this event."""
        return frozenset(quote.turn for pointed in self.statements if pointed.learnings for quote in pointed.quotes)


REFLECTED = "reflected-"
"""Begins the turn of a reflection: `reflected-1` is the first one of a session."""


class ReflectionAsked(Event, tag="reflection_asked", frozen=True, kw_only=True):
    """A hook asked the agent of the session for a reflection (W4). `tokens`: of the question, estimated."""

    tokens: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0


class SentPart(Event, tag="sent", frozen=True, kw_only=True):
    """memd sent a part of the session to a remote model (W4). `text`: the exact body; `turns`: the turns in it, so that
    forgetting one of them reaches this text. Nothing is learned from it, and no recall or transcript shows it."""

    reader: str
    text: str
    turns: tuple[str, ...] = ()


class Ran(Event, tag="ran", frozen=True, kw_only=True):
    """A shell command ended."""

    command: str
    exit_status: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 0
    duration_ms: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0


class SessionStarted(Event, tag="session_started", frozen=True, kw_only=True):
    """The host opened a session."""

    reason: str = ""


class SessionEnded(Event, tag="session_ended", frozen=True, kw_only=True):
    """The host closed a session, or was idle long enough to count as closed (W2)."""

    reason: str = ""


AnyEvent = (
    Said
    | Noted
    | Reworded
    | Wrote
    | Taught
    | ToolCalled
    | Returned
    | Committed
    | Checked
    | Planned
    | Interrupted
    | Settled
    | Stated
    | HandedOver
    | Reflected
    | ReflectionAsked
    | SentPart
    | Ran
    | SessionStarted
    | SessionEnded
)


HANDOVER = ("done", "decided", "open", "closed")
"""The parts of a hand-over."""

_MARKS: dict[PlanStatus, str] = {"open": "[ ]", "begun": "[~]", "done": "[x]", "dropped": "[-]"}


def trust(event: AnyEvent) -> Trust:
    """Return the trust in an event's text, by its source alone (W5, P-19)."""
    match event:
        case Said() | Noted():
            return event.role
        case HandedOver():
            return "assistant"
        case Reworded() | Stated():
            return "user"
        case Wrote() | Taught():
            return "document"
        case _:
            return "tool"


def text(event: AnyEvent) -> str:
    """Return the text that memd searches, quotes and distils; "" for an event without text."""
    match event:
        case Said() | Noted() | Reworded() | Wrote() | Taught() | Returned() | Stated() | SentPart():
            return event.text
        case ToolCalled():
            return re.sub(r"\s+", " ", f"{event.name} {event.arguments}").strip()
        case Ran():
            return event.command
        case Committed():
            return event.subject
        case Reflected():
            return "\n".join((event.title, *(words for part in event.statements for words in part.learnings.values())))
        case Planned():
            return "\n".join(f"{_MARKS[item.status]} {item.text}" for item in event.items)
        case HandedOver():
            return "\n".join(f"{name}: {line}" for name in HANDOVER for line in getattr(event, name))
        case _:
            return ""


def with_text(event: AnyEvent, words: str) -> AnyEvent:
    """Return the event with another text, for example without secrets. An event without text stays the same."""
    match event:
        case Said() | Noted() | Reworded() | Wrote() | Taught() | Returned() | Stated() | SentPart():
            return msgspec.structs.replace(event, text=words)
        case Ran():
            return msgspec.structs.replace(event, command=words)
        case Committed():
            return msgspec.structs.replace(event, subject=words)
        case Reflected():
            return _reworded(event, *words.split("\n"))
        case Planned():
            lines = (line[len(_MARKS["open"]) :].lstrip() for line in words.split("\n"))
            kept = (PlanItem(line, item.status) for line, item in zip(lines, event.items, strict=False))
            return msgspec.structs.replace(event, items=tuple(kept))
        case HandedOver():
            rows = [line.partition(": ") for line in words.split("\n")]
            parts = {name: tuple(line for key, _, line in rows if key == name and line) for name in HANDOVER}
            return msgspec.structs.replace(event, **parts)
        case ToolCalled():
            name = " ".join(event.name.split())
            arguments = words.removeprefix(name).strip() if words.startswith(name) else words
            return msgspec.structs.replace(event, name=name if words.startswith(name) else "", arguments=arguments)
        case _:
            return event


def _reworded(event: Reflected, title: str, *lines: str) -> Reflected:
    """Return a reflection with other words, a learning a line; without learnings if a line is missing."""
    is_whole = len(lines) == sum(len(pointed.learnings) for pointed in event.statements)
    words = iter(lines)
    statements = tuple(
        msgspec.structs.replace(part, learnings={name: next(words) for name in part.learnings} if is_whole else {})
        for part in event.statements
    )
    return msgspec.structs.replace(event, title=title, statements=statements)


class Captured(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="captured"):
    """One archive entry: an event without its secrets. `redacted`: the rules that found secrets. `replaces`: archive
    seq of the turn's earlier version, if a host rewrote it (W13), else 0."""

    document: str
    event: AnyEvent
    live: bool = True
    redacted: tuple[str, ...] = ()
    replaces: int = 0
