"""Operations about the use and decay of records (T2-T9, Q6), and `Operation`, the base of all operations.

Invariant: an operation carries every number that its fold needs, so a changed rule never changes the past.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .record import Kind

LEVELS = 6
LEVEL_USES = (0, 5, 15, 30, 60, 100)
"""Uses from which a record has level 0, 1, 2, 3, 4, 5 (T5)."""


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """Base of all operations. The header of the log entry has seq, time, kind and version."""


class Sample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A training sample of the scorer: a record's features in an answer, and whether it should have ranked high."""

    id: str
    features: tuple[float, ...]
    wanted: bool
    weight: float = 1.0


class FeedbackGiven(Operation, tag="feedback", frozen=True, kw_only=True):
    """A client reported how useful an answer was: record ids, and samples for the scorer (T3, T4, Q6)."""

    agent: str = ""
    used: tuple[str, ...] = ()
    helpful: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    failed: bool = False
    samples: tuple[Sample, ...] = ()


class Count(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Increments of a record's counters (T4). `candidates`: unused retrievals; `last`: 0 means the entry's time."""

    candidates: int = 0
    uses: int = 0
    last: int = 0
    impact: float = 0.0


class Counted(Operation, tag="counted", frozen=True, kw_only=True):
    """Recalls retrieved or used records of a pool, under one perspective or none (T3). A use adds `step` to the
    strength and `perspective_step` to that of the perspective, which begins at the strength; an impact adds
    `impact_share` of itself."""

    pool: str
    counts: dict[str, Count]
    perspective: str = ""
    step: float = 0.1
    perspective_step: float = 0.15
    impact_share: float = 0.2
    level_uses: tuple[int, ...] = LEVEL_USES


class Slept(Operation, tag="slept", frozen=True, kw_only=True):
    """A task of a pool ended: records decay by `retention`, one number a level, except the `spared` kinds (T6, T9).
    `days`: the part of an active day's loss that this task causes: 1 / `tasks_per_day`, or the rest of the day.
    `given`: records that agents had in their context that day, which lose nothing (T3)."""

    pool: str
    tasks_per_day: float
    days: float
    retention: tuple[float, ...]
    spared: tuple[Kind, ...] = ("procedure", "persona")
    given: tuple[str, ...] = ()


class Archived(Operation, tag="archived", frozen=True, kw_only=True):
    """Records left the default reads, reversibly (T6, T7). `by`: the successor of consolidated records."""

    pool: str
    ids: tuple[str, ...]
    why: Literal["faded", "capacity", "consolidated"] = "faded"
    by: str = ""


class Restored(Operation, tag="restored", frozen=True, kw_only=True):
    """Archived records became active again, `levels_down` levels lower (T7). `quarantined`: in quarantine before."""

    ids: tuple[str, ...]
    why: Literal["asked", "recalled"] = "asked"
    quarantined: tuple[str, ...] = ()
    strength: float = 0.5
    levels_down: int = 2
    level_uses: tuple[int, ...] = LEVEL_USES


class Released(Operation, tag="released", frozen=True, kw_only=True):
    """Records left quarantine because they were used (T8)."""

    ids: tuple[str, ...]
    why: str = "used"


class Reviewed(Operation, tag="reviewed", frozen=True, kw_only=True):
    """The user, a due date or a met change condition caused a review (T12). `against`: number of contradictions."""

    id: str
    confidence: float
    next: str = ""
    why: str = ""
    against: int = 0


class Tally(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The counters of one record. The strengths are as of the time when its pool's decay was `mark`.

    `by`: strength by perspective; `credit`: uses that count for the level, fewer after a restore (T7); `fades`: sleep
    may archive it; `at`: microseconds when memd learned it.
    """

    pool: str
    kind: Kind
    fades: bool
    at: int
    mark: float = 0.0
    strength: float = 1.0
    by: dict[str, float] = {}
    level: int = 0
    credit: int = 0
    uses: int = 0
    candidates: int = 0
    last: int = 0
    impact: float = 0.0


class Rest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The sleep state of a pool. `decay`: logarithm of the remaining strength by kind and level; `tasks`: (day since
    1970, tasks) of active days, newest last; `spent`: the part of the newest day's loss that is applied."""

    pool: str = ""
    decay: dict[Kind, tuple[float, ...]] = {}
    tasks: tuple[tuple[int, int], ...] = ()
    spent: float = 0.0


class Folded(Operation, tag="folded", frozen=True, kw_only=True):
    """A snapshot of the counters: replay may skip earlier `counted` and `slept` operations (`memd compact`)."""

    tallies: dict[str, Tally] = msgspec.field(default_factory=dict[str, Tally])
    pools: tuple[Rest, ...] = ()
