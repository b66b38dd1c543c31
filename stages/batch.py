"""Values that the stages pass on. A candidate's `quote` is `text(capture)[span.start:span.end]`, to the letter (P-5);
a candidate is never dropped, it moves to `rejections`; each stage adds one of its `steps`, for `memd why`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ..protocol.event import Captured, Noted, Trust
from ..protocol.operation import Decision, Failure, Retirement, Step
from ..protocol.record import Evidence, Kind, Record, Span, Status, Volatility

PERSONAL = "personal"  # The pool of the user (P1)


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An archived capture: its archive seq, the project pool of its document, and its agent's own pool (P5), or "".
    `quoted`: the captures that a reader of the session points at, with their archive seqs."""

    seq: int
    captured: Captured
    project: str = ""
    agent: str = ""
    author: str = "user"
    quoted: tuple[tuple[int, Captured], ...] = ()


class Candidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement on its way to become a record. Later stages fill what earlier ones left at its default.

    `type`: identity, preference, decision, convention, lesson, commitment, event, procedure, purpose, fact,
    note.
    `context`: the heading that names what the clause is about, where it stands under one; `question`: the agent's
    words that the quote answers, at `asked_at` and `also`; `reader`: who pointed at it, in the capture of archive
    seq `read_at`, "" and 0 for memd's own model;
    `learnings`: what that reader learnt from it, by perspective (O4);
    `is_noted`: kept, not believed; `asked_in`: the language of a statement that its author asked to remember, "" for
    others; `about_user`: the probability that it is about the user;
    `salience`: in [0, 3], and `marked`: the words that name subject and value, by the distiller: None and "" where it
    reads nothing.
    `vector`: 384 float32, unit length, as bytes. `importance`, `confidence` and `score` lie in [0, 1].
    """

    # extract
    item: Item
    ordinal: int
    span: Span
    quote: str
    trust: Trust
    type: str
    score: float
    explicit: bool = False
    is_noted: bool = False
    asked_in: str = ""
    about_user: float | None = None
    context: str = ""
    question: str = ""
    asked_at: Span | None = None
    also: tuple[Span, ...] = ()
    reader: str = ""
    read_at: int = 0
    salience: float | None = None
    marked: str = ""
    learnings: dict[str, str] = {}
    description: str = ""
    # enrich
    subject: str = ""
    keywords: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    language: str = "en"
    importance: float = 0.5
    confidence: float = 0.5
    valid_from: str = ""
    valid_to: str = ""
    # embed
    vector: bytes = b""
    # route
    kind: Kind = "note"
    pool: str = ""
    key: str = ""
    value: str = ""
    volatility: Volatility = "semi"
    # scan
    status: Status = "active"
    flags: tuple[str, ...] = ()
    injection: float | None = None
    # every stage
    steps: tuple[Step, ...] = ()


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """A clause or capture that a stage leaves out. `reason`: short and stable, since it is counted."""

    stage: str
    reason: str
    seq: int
    quote: str = ""


RulesOff = frozenset[tuple[Trust, str]]
"""Rules that leave nothing out, by the speaker and their reason: a benchmark measures what each is worth (U5)."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A record near a candidate, and how near: the cosine of the descriptions' vectors, in [-1, 1]."""

    record: Record
    similarity: float


class Conflict(msgspec.Struct, frozen=True, array_like=True):
    """The ids of a record that only the user retires, held or in their words, and of a new one that contradicts it; the
    rule's label and reason."""

    held: str
    fresh: str
    label: str
    reason: str


class Proposal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change for a candidate, which the write thread makes if nothing changed meanwhile (W6). `record` lacks system
    times. `add`: a new record that retires `retires`; `update`: a new revision; `noop`: `evidence` for `target`.
    `conflicts`: what the user has to decide."""

    record: Record
    decision: Decision
    retires: tuple[Retirement, ...] = ()
    target: str = ""
    evidence: Evidence | None = None
    vector: bytes = b""
    conflicts: tuple[Conflict, ...] = ()


class Given(msgspec.Struct, frozen=True):
    """What a session was given by memd: texts, and the ids of the records that they are of (W9)."""

    texts: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


class AgentText(NamedTuple):
    """What the agent of a session wrote, with its archive seq and its turn."""

    seq: int
    text: str
    turn: str = ""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A clause, its words on one line, its worth (in [0, 1], more if another reader pointed at it), and the unit vector
    of its words, float32 as bytes."""

    span: Span
    words: str
    worth: float
    vector: bytes


class Weight(msgspec.Struct, frozen=True, kw_only=True):
    """The worth in [0, 1] of an item that a user may choose, and the unit vector of its words: 0 and empty for one that
    was not asked for."""

    worth: float
    vector: bytes


class Batch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Captures on their way through the stages, in order of archive seq. By document: `given`, and what the session's
    agent wrote last (`agent`)."""

    items: tuple[Item, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    failures: tuple[Failure, ...] = ()
    given: dict[str, Given] = {}
    agent: dict[str, tuple[AgentText, ...]] = {}


def chosen_pool(candidate: Candidate) -> str:
    """The pool that somebody named for a text to remember; "" where its subject decides."""
    event = candidate.item.captured.event
    return event.pool if isinstance(event, Noted) else ""


Stage = Callable[[Batch], Batch]


def step(candidate: Candidate, stage: str, what: str, **changes: object) -> Candidate:
    """`candidate` with these changes and one more step of `stage`."""
    return msgspec.structs.replace(candidate, steps=(*candidate.steps, Step(stage, what)), **changes)


SAME_KEY = "another value of the same key"
