"""A question to memd, its answer, and what the asker says of that answer afterwards.

Comes in: a question, over pools; or the word on an answer. Goes out: records and turns with their scores. Invariant: an
answer that leaves something out says so (`abstained`, `filtered`, `pending`; Q10).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .event import Repository, Trust
from .intent import Many, Names, Request
from .record import Record

Ids = Annotated[tuple[str, ...], msgspec.Meta(max_length=200)]


class RecallOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For measurements alone: a daemon without `MEMD_BENCH=1` refuses them. `weights` by the names of score parts."""

    weights: dict[str, float] = {}
    expand: bool = True
    graph: bool = True
    priority: bool = True
    fold: bool = True
    floor: float = -1.0


class Recall(Request, tag="recall", frozen=True, kw_only=True):
    """What is known about a question (Q2). `cwd` chooses the pools (P2, P8); `pools` names them instead; `repository`
    is a hint where the daemon can't see the folder.

    `as_of`: what was true at that time. `believed_at`: what memd believed at that time (Q12). Both RFC 3339; "" is now.
    `document`: the session that asks (`host:session`); what it is told there is not learnt from it again (W9).
    `keywords` widen the question (Q7); `perspective` and `agent` are whose (S3): for ranking, and for what is learnt.
    `threshold`: the least score; `by_chance`: the better the likelier, instead of the best (Q9). `deep`: also what is
    archived and what was said, each with the turns around it, how the belief changed, and what is linked (Q3); answered
    in the slow lane.
    """

    query: str
    cwd: str = ""
    pools: Names = ()
    limit: Many = 20
    budget_tokens: Many = 1500
    include_retired: bool = False
    explain: bool = False
    as_of: str = ""
    believed_at: str = ""
    repository: Repository | None = None
    document: str = ""
    keywords: Names = ()
    perspective: str = ""
    agent: str = ""
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    by_chance: bool = False
    deep: bool = False
    options: RecallOptions | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One captured turn, as the archive holds it; of an answer in depth at most a passage of it, from `start` on.

    `cited`: a record rests on it.
    """

    turn: str
    at: str
    who: str
    text: str
    cited: bool = False
    document: str = ""
    start: int = 0


class Belief(msgspec.Struct, frozen=True, kw_only=True):
    """What memd believed for a time (Q12). In world time it was true from `valid_from` to `valid_to` (RFC 3339, "" for
    open); in system time memd believed it from `believed_from` to `believed_until` (microseconds, 0 for now), and
    `ended` says why no longer."""

    id: str
    text: str
    valid_from: str = ""
    valid_to: str = ""
    believed_from: int = 0
    believed_until: int = 0
    ended: str = ""


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """An edge near what was found: `hops` edges away, 1 or 2, by the thing `via` (R8)."""

    record: Record
    hops: int
    via: str


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A recalled record with its score in [0, 1] and the score's parts; `alike`: records left out that say the same.

    In depth (Q3), `lines` are the turns around each of its spans, and `history` how the belief changed, if it did.
    """

    record: Record
    score: float
    parts: dict[str, float] = {}
    alike: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    history: tuple[Belief, ...] = ()


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that answers a question as it was said, distilled or not (Q4): characters `start:end` of it, verbatim; in
    depth with the turns around it."""

    document: str
    turn: str
    at: str
    trust: Trust
    quote: str
    start: int
    end: int
    score: float
    lines: tuple[Line, ...] = ()


class Nearest(msgspec.Struct, frozen=True, kw_only=True):
    """The best candidate below the floor, shown when an answer abstains (P-23)."""

    id: str
    description: str
    score: float


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `recall`: records and, in depth or while there are few sessions, turns; what was left out and why (Q10).

    Hits and turns have scores on one scale; `abstained` says that there is neither. `strength` is how well the best
    record matches by itself, in [0, 1]: what the floor is held against. `principles` come with every answer (Q8).
    `recall` names this answer for `feedback`. `note` is "" unless the model changed and some records are found by
    their words alone (P-14). `filtered` counts what is left out or shown in part, `screened` what the rules of today
    saw in it (W5). `linked` are edges near what was found, where depth was asked for. `period`:
    the answer is held to what was said or held from then to then (RFC 3339, "" where it is open), since the question
    named that time and something of it answers.
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


class Feedback(Request, tag="feedback", frozen=True, kw_only=True):
    """What became of an answer, by the asker's word: `recall` is its name; records that were used, that helped, that
    were wrong (T3, T4). `failed`: the task did not succeed, so it teaches half (Q6)."""

    recall: str = ""
    used: Ids = ()
    helpful: Ids = ()
    wrong: Ids = ()
    failed: bool = False


class FeedbackTaken(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `feedback`: records it was about, samples it gave to the scorer, samples of that agent so far. `note` says
    why it taught nothing."""

    records: int
    samples: int
    learnt_from: int
    note: str = ""


class NeverUsed(Request, tag="never_used", frozen=True, kw_only=True):
    """Records that were often given and never said to be used, most often first (Q9)."""

    pools: Names = ()
    least: Many = 3
    limit: Many = 50


class Unused(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was given so often in vain."""

    record: Record
    given: int


class UnusedList(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `never_used`."""

    records: tuple[Unused, ...]
