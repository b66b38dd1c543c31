"""Requests and replies about questions and feedback.

Invariant: an answer that omits something reports it (`abstained`, `filtered`, `pending`; Q10).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .event import Trust
from .record import Record
from .request_fields import Many, Names, Request, ScopedRequest

LIMIT, BUDGET_TOKENS = 10, 1500
"""Most records and turns of an answer, and most of its tokens, by default; the same in every client."""

Ids = Annotated[tuple[str, ...], msgspec.Meta(max_length=200)]


class RecallOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options for benchmarks: a daemon without `MEMD_BENCH=1` rejects them. `weights`: by name of the score part."""

    weights: dict[str, float] = {}
    expand: bool = True
    graph: bool = True
    priority: bool = True
    fold: bool = True
    floor: float = -1.0


class Recall(ScopedRequest, tag="recall", frozen=True, kw_only=True):
    """Search the memory with a question (Q2).

    `as_of` selects records that were true then, `believed_at` records that memd had then (Q12); RFC 3339, "" for now.
    `document`: the asking session (`host:session`), from which memd does not learn the answer again (W9). `keywords`
    widen the question (Q7). `perspective` and `agent` affect ranking and learning (S3). `threshold`: minimum score.
    `types`: only records of these types, and no turns. `by_chance`: draw hits at random by score instead of taking the
    best (Q9). `deep`: add archived records, captured turns, surrounding turns, history and linked records (Q3), on the
    slow lane.
    """

    query: str
    limit: Many = LIMIT
    budget_tokens: Many = BUDGET_TOKENS
    include_retired: bool = False
    explain: bool = False
    as_of: str = ""
    believed_at: str = ""
    document: str = ""
    keywords: Names = ()
    perspective: str = ""
    agent: str = ""
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    types: Names = ()
    by_chance: bool = False
    deep: bool = False
    options: RecallOptions | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A captured turn; in a deep answer at most a passage of it, from `start` on. `cited`: a record rests on it."""

    turn: str
    at: str
    who: str
    text: str
    cited: bool = False
    document: str = ""
    start: int = 0


class Belief(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a record on both timelines (Q12): true from `valid_from` to `valid_to` (RFC 3339, "" for open), held
    by memd from `believed_from` to `believed_until` (microseconds, 0 for now). `ended`: why it ended."""

    id: str
    text: str
    valid_from: str = ""
    valid_to: str = ""
    believed_from: int = 0
    believed_until: int = 0
    ended: str = ""


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """A record 1 or 2 `hops` away from a hit: an edge through the thing `via` (R8), or what the hit with the id `via`
    relates to (O4)."""

    record: Record
    hops: int
    via: str


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A recalled record with its score in [0, 1]. `alike`: omitted records that say the same. In a deep answer (Q3),
    `lines` are the turns around each of its spans, `history` its states if it changed. `details`: the passages that a
    summary leads to, 0 for any other record (W12)."""

    record: Record
    score: float
    parts: dict[str, float] = {}
    alike: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    history: tuple[Belief, ...] = ()
    details: int = 0


class Outdated(msgspec.Struct, frozen=True, kw_only=True):
    """Characters `start:end` of a turn that state what no longer holds: `record` said so, and `replaced_by` says what
    holds now ("" if nothing replaced it, or if the asker may not see it)."""

    start: int
    end: int
    record: str = ""
    replaced_by: str = ""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A captured turn that answers the question, distilled or not (Q4): its characters `start:end`, verbatim.

    `trust`: `document` for a passage of the user's turn that somebody else wrote. `flags`: `pasted`, `quoted`, `agent`
    or `reported` for such a passage, and what the scan of outgoing text finds in it, such as `injection` (P-19).
    `outdated`: the passages of it that were corrected or retired; hidden ones are covered by `█` in the quote.
    `parts`: the score is `writer` · (`words` + `passage`) / 2 + `neighbour`.
    """

    document: str
    turn: str
    at: str
    trust: Trust
    quote: str
    start: int
    end: int
    score: float
    parts: dict[str, float] = {}
    lines: tuple[Line, ...] = ()
    flags: tuple[str, ...] = ()
    outdated: tuple[Outdated, ...] = ()


Method = Literal["records", "records and turns", "overview"]


class Nearest(msgspec.Struct, frozen=True, kw_only=True):
    """The best candidate below the floor of an answer that abstains (P-23)."""

    id: str
    description: str
    score: float


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `recall`: records and, if deep or while there are few sessions, turns, with scores on one scale.

    `abstained`: it has neither. `strength`: match of the best record by itself in [0, 1], compared with the floor.
    `principles` are part of every answer (Q8). `recall` names the answer for `feedback`. `note`: not "" while a change
    of model leaves records without vectors (P-14). `filtered`: records omitted or shown in part; `screened`: findings
    by current rule (W5). `linked`: only in a deep answer. `period`: the time that the question named and to which the
    answer is restricted (start and end in RFC 3339, "" for open). `corrected`: the question as memd asked it after it
    corrected slips, "" if there was none. `method`: whether turns were searched too (Q4), or an overview answers a
    question that names no subject.
    """

    hits: tuple[Hit, ...]
    scope: tuple[str, ...]
    turns: tuple[Heard, ...] = ()
    principles: tuple[Hit, ...] = ()
    recall: str = ""
    strength: float = 0.0
    abstained: bool = False
    reason: str = ""
    nearest: Nearest | None = None
    filtered: int = 0
    pending: int = 0
    tokens: int = 0
    note: str = ""
    screened: dict[str, int] = {}
    linked: tuple[Linked, ...] = ()
    period: tuple[str, str] | None = None
    corrected: str = ""
    method: Method = "records"


TaskOutcome = Literal["", "success", "failure", "prevented"]
"""How the task ended in which records were used: it succeeded, it failed, or they prevented an error."""


Lesson = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class Feedback(Request, tag="feedback", frozen=True, kw_only=True):
    """Report which records of the answer `recall` were useful, and the `outcome` of the task: success and a prevented
    error raise the impact of what was used (T3, T4); of a failed task the scorer learns half as much (Q6). `failed`
    says the same as the outcome `failure`. `learned`: what records taught, by id, under `perspective`, by default the
    answer's (R7)."""

    recall: str = ""
    used: Ids = ()
    helpful: Ids = ()
    wrong: Ids = ()
    failed: bool = False
    outcome: TaskOutcome = ""
    perspective: Annotated[str, msgspec.Meta(max_length=40)] = ""
    learned: Annotated[dict[str, Lesson], msgspec.Meta(max_length=20)] | None = None


class FeedbackTaken(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `feedback`. `samples`: new; `learnt_from`: all of that agent; `note`: why the scorer learned nothing."""

    records: int
    samples: int
    learnt_from: int
    note: str = ""


VECTOR_TEXTS = 256
"""Most texts of one request."""

Sentences = Annotated[tuple[Annotated[str, msgspec.Meta(max_length=4_096)], ...], msgspec.Meta(max_length=VECTOR_TEXTS)]


class GetVectors(Request, tag="vectors", frozen=True, kw_only=True):
    """Return vectors of texts by the model that searches now: those that memd stored for records of these words, else
    as it encodes a question. A client sends them to a hub, which has no model (H3)."""

    texts: Sentences


class TextVectors(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `vectors`. `model`: its id, "" if none can encode now; `vectors`: unit vectors in the order of the
    texts, little-endian float16."""

    model: str = ""
    vectors: tuple[bytes, ...] = ()


class NeverUsed(Request, tag="never_used", frozen=True, kw_only=True):
    """List records that memd returned at least `least` times and no client reported as used, most often first (Q9)."""

    pools: Names = ()
    least: Many = 3
    limit: Many = 50


class Unused(msgspec.Struct, frozen=True, kw_only=True):
    """A record that memd returned `given` times without use."""

    record: Record
    given: int


class UnusedList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `never_used`."""

    records: tuple[Unused, ...]
