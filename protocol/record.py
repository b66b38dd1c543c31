"""The one typed record (R1-R9): what memd believes, since when, on whose word.

Comes in: what the stages distilled. Goes out: a frozen value, stored as ordinary MessagePack.
Invariants: `id` is given once (`record_id`) and never changes; system times (`learned_at`, `retired_at`) are
microseconds in UTC and 0 means never; world times are RFC 3339 text and "" means open.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .event import Trust, Visibility

Kind = Literal["fact", "note", "edge", "procedure", "persona"]
Layer = Literal["L1", "L2", "L3"]
Status = Literal["provisional", "active", "quarantined", "hidden", "archived", "retired"]
Volatility = Literal["stable", "semi", "situational"]

LIVE: frozenset[str] = frozenset({"provisional", "active", "quarantined"})
"""The statuses that default reads show."""

STATES: dict[str, str] = {"quarantined": "unconfirmed"}
"""What a user reads for a status, where that is another word: `quarantined` is what nobody confirmed yet (T8)."""

PRINCIPLE = "principle"
"""The tag of what always stands in an answer (Q8): the user's own word, never a keyword of captured text."""

CONSOLIDATED = "consolidated"
"""The tag of what stands for several episodes (T11)."""

QUOTE_LIMIT = 500
"""Characters of a verbatim quote that a record carries."""


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Characters `start:end` of a captured turn's text: what a record rests on."""

    document: str
    turn: str
    start: int
    end: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One more reason to believe a record (R5): a turn that said it again, by whom and when."""

    kind: Literal["restated", "confirmed", "corrected"]
    span: Span
    trust: Trust
    at: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Where a record comes from (R4). `quote` is verbatim: `archive[span]` while the turn is retained."""

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
    """How much a record matters (R6): at write time, and by use."""

    importance: float = 0.5
    strength: float = 1.0
    strength_by: dict[str, float] = {}
    access_count: int = 0
    candidate_count: int = 0
    last_access: int = 0
    impact: float = 0.0
    level: int = 0


class Review(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """When a belief should be looked at again, what would change it, how many spoke against it then (R5, G4).

    `change_condition` counts: "3 independent projects deviate"; "" is the rule for all, `[forgetting] change_sessions`.
    """

    cadence_days: int = 0
    next: str = ""
    change_condition: str = ""
    against: int = 0


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What memd believes. `description` is the text that is embedded and searched (R2); `content` the clause.

    `key`: exact key of a fact (`prefers.indentation`), or `subject predicate object` of an edge; "" where none.
    `tags`: the clause type first (`decision`, `lesson`, …), then keywords. `placed`: the user chose its pool.
    `pinned`: the user holds on to it. `injection`: the head's score in [0, 1], None where it never read it (W5).
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
    learnings: dict[str, str] = {}
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
    needs_review: bool = False
    placed: bool = False
    pinned: bool = False
    flags: tuple[str, ...] = ()
    injection: float | None = None
    signal: Signal = Signal()

    @property
    def held(self) -> bool:
        """Whether no statement retires it by itself: pinned, identity or playbook (T13)."""
        return self.pinned or self.layer != "L3"

    @property
    def type(self) -> str:
        """The clause type, first of the tags; `note` where there is none."""
        return self.tags[0] if self.tags else "note"


def explicit_id(document: str, turn: str) -> str:
    """The id of the record of an explicit remember: known before any stage decided on its pool (W1)."""
    return record_id("note", document, turn, 0, 0)


def record_id(pool: str, document: str, turn: str, start: int, ordinal: int) -> str:
    """The id of a record: the same input replayed gives the same id (P-7). 26 characters, lower case."""
    from hashlib import blake2b  # it loads OpenSSL, which costs a client 3 ms

    parts = "\0".join((pool, document, turn, str(start), str(ordinal)))
    number = int.from_bytes(blake2b(parts.encode(), digest_size=16).digest())
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    return "".join(digits[number >> shift & 31] for shift in range(125, -1, -5))
