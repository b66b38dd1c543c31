"""The record type, one for all kinds of memory (R1-R9).

Invariants: `id` (`record_id`) never changes; system times (`learned_at`, `retired_at`) are
microseconds in UTC and 0 means never; world times are RFC 3339 text and "" means open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast

import msgspec

from .errors import InvalidRequest
from .event import Trust, Visibility

Kind = Literal["fact", "note", "edge", "procedure", "persona"]
Layer = Literal["L1", "L2", "L3"]
Status = Literal["provisional", "active", "quarantined", "hidden", "archived", "retired"]
Volatility = Literal["stable", "semi", "situational"]

LIVE: frozenset[str] = frozenset({"provisional", "active", "quarantined"})
"""Statuses that default reads return."""

STATES: dict[str, str] = {"quarantined": "unconfirmed"}
"""The user's term for a status, where it differs (T8)."""

PRINCIPLE = "principle"
"""Tag of a record that is part of every answer (Q8). Only the user sets it; it never comes from captured text."""

TEAM = "team"
"""Host of the documents that are partitions of other authors: `team:PARTITION` (H2)."""

PLAYBOOK_HOST = "playbook"
"""Host of the documents that are the patches of a repository: `playbook:MARK` (G2). `pi` is the host of an agent."""

CONSOLIDATED = "consolidated"
"""Tag of a record that summarises several episodes (T11)."""

OPEN_QUESTION = "open question"
"""Type of a record that states what is undecided; a later decision on the same thing retires it."""

TYPES = (
    *("identity", "preference", "decision", "convention", "lesson", "commitment", "event", "procedure", "fact"),
    *("purpose", OPEN_QUESTION, "note"),
)
"""The types that a search or a list can be limited to. `note`: memd has not read the statement more closely."""

LEARNINGS = 12
"""Most perspectives under which a record teaches something."""

RELATED, RELATED_AT = 5, 0.6
"""Most records that a record with learnings relates to, and their least similarity in [0, 1]."""

QUOTE_LIMIT = 500
"""Maximum length of a record's quote in characters."""


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Characters `start:end` of a turn's text that support a record."""

    document: str
    turn: str
    start: int
    end: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A later turn that supports a record (R5)."""

    kind: Literal["restated", "confirmed", "corrected"]
    span: Span
    trust: Trust
    at: str


class Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A durable thing that proves a record (R5): a file by its absolute path, perhaps with "#" and a heading, a page by
    its address, a commit by its hash. memd reads nothing behind it but a file, to tell whether it changed (C3).

    Of a file that memd could read: `root`, the top folder of its repository, or its own folder; `anchor`, the headings
    above the part, joined by " > "; `blob` and `section`, hashes of the file and of the part.
    """

    type: Literal["file", "url", "commit"]
    ref: str
    note: str = ""
    anchor: str = ""
    blob: str = ""
    section: str = ""
    root: str = ""


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The source of a record (R4). `quote` is verbatim: the archive's text of the span, while the turn is retained."""

    author: str
    source: str
    trust: Trust
    spans: tuple[Span, ...]
    quote: str
    said_at: str
    visibility: Visibility = "private"
    evidence: tuple[Evidence, ...] = ()
    distiller: str = ""
    rules: int = 0


class Signal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The importance of a record (R6), at write time and by use. `strength_by`: strength by perspective."""

    importance: float = 0.5
    strength: float = 1.0
    strength_by: dict[str, float] = {}
    access_count: int = 0
    candidate_count: int = 0
    last_access: int = 0
    impact: float = 0.0
    level: int = 0


class Review(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The next review of a record (R5, G4). `against`: contradictions at the last review. `change_condition` counts: "3
    independent projects deviate"; "" applies `[forgetting] change_sessions`."""

    cadence_days: int = 0
    next: str = ""
    change_condition: str = ""
    against: int = 0


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One memory. memd embeds and searches `description` (R2); `content` is the clause.

    `key`: exact key of a fact (`prefers.indentation`), or `subject predicate object` of an edge; else "".
    `aliases`: two names of one thing that the clause states, as it writes them; a question with one finds the other.
    `copy_of`: the record of another pool that the user copied.
    `learnings`: by perspective, what it teaches; `relates_to`: ids of the records near it when it was made (O4).
    `tags`: the clause type first (`decision`, `lesson`, …), then keywords. `placed`: the user chose its pool.
    `injection`: score of the injection model in [0, 1], None if it never read the record (W5).
    """

    id: str
    pool: str
    kind: Kind
    content: str
    description: str
    provenance: Provenance
    layer: Layer = "L3"
    status: Status = "active"
    rev: int = 1
    key: str = ""
    value: str = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    learnings: dict[str, str] = {}
    relates_to: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    language: str = "en"
    valid_from: str = ""
    valid_to: str = ""
    learned_at: int = 0
    retired_at: int = 0
    confidence: float = 0.5
    volatility: Volatility = "semi"
    review: Review | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""
    copy_of: str = ""
    needs_review: bool = False
    placed: bool = False
    pinned: bool = False
    flags: tuple[str, ...] = ()
    injection: float | None = None
    signal: Signal = Signal()

    @property
    def held(self) -> bool:
        """Whether memd never retires it automatically: pinned, identity or playbook (T13)."""
        return self.pinned or self.layer != "L3"

    @property
    def is_team(self) -> bool:
        """Whether another author stated it, in a shared project or in a patch of its repository: none of memd's own
        judges retires it, nor another record because of it (W7, T13)."""
        return is_team_document(self.provenance.source)

    @property
    def is_shared(self) -> bool:
        """Whether it is a line of another author of a shared project (H2)."""
        return is_partition(self.provenance.source)

    @property
    def is_from_patch(self) -> bool:
        """Whether it came with a patch of the repository (G2)."""
        return is_patch_document(self.provenance.source)

    @property
    def is_confirmed(self) -> bool:
        """Whether the user said that it is right."""
        return any(item.kind == "confirmed" and item.trust == "user" for item in self.provenance.evidence)

    @property
    def type(self) -> str:
        """The clause type: the first tag, or `note`."""
        return self.tags[0] if self.tags else "note"


def is_team_document(document: str) -> bool:
    """Return whether a document is what other authors say: a partition of a shared project, or a repository's
    patches."""
    return is_partition(document) or is_patch_document(document)


def is_partition(document: str) -> bool:
    """Return whether a document is the partition of another author of a shared project."""
    return document.startswith(f"{TEAM}:")


def is_patch_document(document: str) -> bool:
    """Return whether a document is the patches of a repository."""
    return document.startswith(f"{PLAYBOOK_HOST}:")


def check_types(names: Iterable[str]) -> None:
    """Raise InvalidRequest for a name that is no type."""
    for name in names:
        if name not in TYPES:
            raise InvalidRequest(f"{name!r} is not a type", hint=f"choose from: {', '.join(TYPES)}")


def typed(value: Any) -> Any:
    """Return a value for JSON, with `type` in each record that it contains; a record becomes a dictionary."""
    if isinstance(value, Record):
        return {**msgspec.to_builtins(value), "type": value.type}
    if isinstance(value, tuple):
        return tuple(map(typed, cast("tuple[Any, ...]", value)))
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **{name: typed(getattr(value, name)) for name in value.__struct_fields__})
    return value


def explicit_id(document: str, turn: str) -> str:
    """Return the id of a remembered record, which is known before a stage chooses its pool (W1)."""
    return record_id("note", document, turn, 0, 0)


def learning_order(record: Record) -> tuple[int, str]:
    """Return the key that sorts records by the time at which memd learnt them."""
    return record.learned_at, record.id


def record_id(pool: str, document: str, turn: str, start: int, ordinal: int) -> str:
    """Return the id of a record, 26 lower-case characters. The same input gives the same id (P-7)."""
    from hashlib import blake2b  # it loads OpenSSL, which costs a client 3 ms

    parts = "\0".join((pool, document, turn, str(start), str(ordinal)))
    number = int.from_bytes(blake2b(parts.encode(), digest_size=16).digest())
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    return "".join(digits[number >> shift & 31] for shift in range(125, -1, -5))
