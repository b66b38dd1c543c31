"""One number of a measurement with its target, and how numbers are summed up.

Comes in: samples. Goes out: rows of a table. Invariants: a figure that has a floor was measured beside it, in the same
run; a figure with a target says whether it was met, by the figure itself and not by its interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec


class Target(msgspec.Struct, frozen=True):
    """A bound in the figure's own unit, or in times of its floor (`times`)."""

    sign: Literal["≤", "≥"]
    bound: float
    times: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value, or a ratio, keeps to it; what could not be counted does not."""
        return value <= self.bound if self.sign == "≤" else value >= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:,.10g}{' ×' if self.times else ''}"


def at_most(bound: float, times: bool = False) -> Target:
    """No more than that; with `times`, than that many floors."""
    return Target("≤", bound, times)


def at_least(bound: float, times: bool = False) -> Target:
    """No less than that; with `times`, than that many floors."""
    return Target("≥", bound, times)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its unit, and what it is held against.

    `floor`: the same without memd, 0 where there is none. `low`, `high`: the 95 % interval, None where it has none.
    `met`: None without a target; never given, always worked out.
    """

    name: str
    value: float
    unit: str = ""
    floor: float = 0.0
    samples: int = 1
    target: Target | None = None
    low: float | None = None
    high: float | None = None
    met: bool | None = None

    def __post_init__(self) -> None:
        met = self.target.holds(self.ratio if self.target.times else self.value) if self.target else None
        msgspec.structs.force_setattr(self, "met", met)

    @property
    def ratio(self) -> float:
        """How many times the floor the value is; 0 without a floor."""
        return self.value / self.floor if self.floor else 0.0

    @property
    def is_missed_surely(self) -> bool:
        """Whether the target is missed by more than the interval: its better end misses it too."""
        if self.target is None or self.met:
            return False
        ends = [self.value, *(end for end in (self.low, self.high) if end is not None)]
        return not any(self.target.holds(end / self.floor if self.target.times else end) for end in ends)


def percentile(samples: Sequence[float], point: float) -> float:
    """The smallest sample that `point` percent of all do not exceed. Raises ValueError for no samples."""
    if not samples:
        raise ValueError("no samples")
    return sorted(samples)[max(0, math.ceil(len(samples) * point / 100) - 1)]


def share(name: str, right: int, total: int, target: Target | None = None) -> Figure:
    """A share of cases with Wilson's 95 % interval, which holds at 0 and 1 too (Wilson 1927). No cases: 0, missed."""
    if not total:
        return Figure(name=name, value=0.0, samples=0, target=target)
    z, p = 1.959964, right / total
    middle, divisor = p + z * z / (2 * total), 1 + z * z / total
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    low, high = max(0.0, (middle - half) / divisor), min(1.0, (middle + half) / divisor)
    return Figure(name=name, value=p, samples=total, target=target, low=low, high=high)
