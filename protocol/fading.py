"""Operations of time: what was retrieved and used, what sleep let fade, what was archived and came back (T2-T9).

Comes in: tallies, and the rules in force. Goes out: frozen operations. Invariants: each carries every number that it is
folded with, so that a changed rule changes nothing that happened before it; they name records by id and quote nothing.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .envelope import Operation
from .record import Kind

LEVELS = 6
LEVEL_USES = (0, 5, 15, 30, 60, 100)
"""Uses from which a record stands on level 0, 1, 2, 3, 4, 5 (T5)."""


class Count(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is added for a record: how often it was only retrieved, how often it was used, when last (microseconds, 0 =
    when it was written down), and how much it helped (T4)."""

    candidates: int = 0
    uses: int = 0
    last: int = 0
    impact: float = 0.0


class Counted(Operation, tag="counted", frozen=True, kw_only=True):
    """Records of a pool were retrieved or used, under a perspective or none (T3): one operation for many recalls.

    A use adds `step` to the strength and `perspective_step` to that of the perspective, impact `impact_share` of it.
    """

    pool: str
    counts: dict[str, Count]
    perspective: str = ""
    step: float = 0.1
    perspective_step: float = 0.15
    impact_share: float = 0.2
    level_uses: tuple[int, ...] = LEVEL_USES


class Slept(Operation, tag="slept", frozen=True, kw_only=True):
    """A task of a pool ended: everything in it fades by `retention`, by level, but for the `spared` kinds (T6, T9).

    `days` is the part of an active day's loss that this task stands for: 1 / `tasks_per_day`, unless the day has had
    its share.
    """

    pool: str
    tasks_per_day: float
    days: float
    retention: tuple[float, ...]
    spared: tuple[Kind, ...] = ("procedure", "persona")


class Archived(Operation, tag="archived", frozen=True, kw_only=True):
    """Records left the default reads: faded, over the pool's capacity, or said by a successor; reversible (T6, T7)."""

    pool: str
    ids: tuple[str, ...]
    why: Literal["faded", "capacity", "consolidated"] = "faded"
    by: str = ""


class Restored(Operation, tag="restored", frozen=True, kw_only=True):
    """Archived records are believed again (T7), with `strength` and `levels_down` levels lower; `quarantined` are those
    of them that were in quarantine before."""

    ids: tuple[str, ...]
    why: Literal["asked", "recalled"] = "asked"
    quarantined: tuple[str, ...] = ()
    strength: float = 0.5
    levels_down: int = 2
    level_uses: tuple[int, ...] = LEVEL_USES


class Released(Operation, tag="released", frozen=True, kw_only=True):
    """Records leave quarantine: they were used (T8)."""

    ids: tuple[str, ...]
    why: str = "used"


class Reviewed(Operation, tag="reviewed", frozen=True, kw_only=True):
    """A record was looked at again, by the user, because it was due, or because its change condition is met: its
    confidence, the next date, and how many speak against it (T12)."""

    id: str
    confidence: float
    next: str = ""
    why: str = ""
    against: int = 0


class Tally(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The counters of one record: strengths as they were when the pool's decay of its kind and level stood at `mark`.

    `credit` are the uses that count for the level: coming back from the archive takes some (T7). `fades`: whether sleep
    may archive it; `at`: when it was learnt, in microseconds.
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
    """How a pool has slept: the logarithm of what is left, by kind and level; tasks by active day (days since 1970),
    the newest last; how much of the newest day's loss is spent."""

    pool: str = ""
    decay: dict[Kind, tuple[float, ...]] = {}
    tasks: tuple[tuple[int, int], ...] = ()
    spent: float = 0.0


class Folded(Operation, tag="folded", frozen=True, kw_only=True):
    """The counters as they stand: what was counted and slept before need not be read any more (`memd compact`)."""

    tallies: dict[str, Tally] = msgspec.field(default_factory=dict[str, Tally])
    pools: tuple[Rest, ...] = ()
