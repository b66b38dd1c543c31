"""One number of a measurement, and how numbers are summed up.

Comes in: samples. Goes out: rows of a table. Invariant: a row that has a floor was measured beside it, in the same run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its unit; the floor of the same run, 0 where there is none; the target in words, if it has one."""

    name: str
    value: float
    unit: str
    floor: float = 0.0
    samples: int = 1
    target: str = ""

    @property
    def ratio(self) -> float:
        """How many times the floor the value is; 0 without a floor."""
        return self.value / self.floor if self.floor else 0.0


def percentile(samples: Sequence[float], point: float) -> float:
    """The smallest sample that `point` percent of all do not exceed. Raises ValueError for no samples."""
    if not samples:
        raise ValueError("no samples")
    return sorted(samples)[max(0, math.ceil(len(samples) * point / 100) - 1)]
