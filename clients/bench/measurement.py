"""Figures with their targets, the result of one benchmark part, and the options that every part takes.

A floor is measured in the same run. A target is met by the value alone, not by its interval.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Literal, ParamSpec

import msgspec

from ...protocol.errors import NotFound

P = ParamSpec("P")

RESAMPLED = 1000
"""Samples of a bootstrap."""

Tier = Literal["believed", "noted"]
"""The records that memd believes, and those that it only notes (`quarantined`)."""


class Target(msgspec.Struct, frozen=True):
    """A bound in the figure's own unit, or with `times` as a multiple of its floor."""

    sign: Literal["≤", "≥"]
    bound: float
    times: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value, or a ratio, keeps to the bound; NaN never does."""
        return value <= self.bound if self.sign == "≤" else value >= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:,.10g}{' ×' if self.times else ''}"


def at_most(bound: float, times: bool = False) -> Target:
    return Target("≤", bound, times)


def at_least(bound: float, times: bool = False) -> Target:
    return Target("≥", bound, times)


class Figure(msgspec.Struct, frozen=True):
    """A measured value. A name that begins with two spaces is a detail of the figure above it.

    `floor`: the same measurement without memd, 0 if there is none. `low`, `high`: the 95 % interval, None if there is
    none. `met`: None without a target; computed, never passed in.
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
        """The value divided by the floor; 0 without a floor."""
        return self.value / self.floor if self.floor else 0.0


def percentile(samples: Sequence[float], point: float) -> float:
    """The smallest sample that `point` percent of the samples do not exceed. Raises ValueError for no samples."""
    if not samples:
        raise ValueError("no samples")
    return sorted(samples)[max(0, math.ceil(len(samples) * point / 100) - 1)]


def percentile_figure(
    name: str, samples: Sequence[float], point: float, floors: Sequence[float] = (), target: Target | None = None
) -> Figure:
    """A percentile of milliseconds, beside the same percentile of the floor's."""
    floor = percentile(floors, point) if floors else 0.0
    return Figure(name, percentile(samples, point), "ms", floor, len(samples), target)


def mean_figure(name: str, values: Sequence[float], target: Target | None = None) -> Figure:
    return Figure(name, fmean(values) if values else 0.0, samples=len(values), target=target)


def bootstrapped_figure(name: str, values: Sequence[float]) -> Figure:
    """The mean with a 95 % bootstrap interval over the questions (Efron 1979), the same each time."""
    import numpy as np

    array = np.asarray(values)
    means = array[np.random.default_rng(7).integers(0, len(array), (RESAMPLED, len(array)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return Figure(name, float(array.mean()), samples=len(array), low=float(low), high=float(high))


def zero_figure(name: str, count: int, samples: int = 1) -> Figure:
    """A number of errors, with the target that there are none."""
    return Figure(name, count, samples=samples, target=at_most(0))


def share(name: str, right: int, total: int, target: Target | None = None) -> Figure:
    """A share of cases with Wilson's 95 % interval (Wilson 1927), which is valid at 0 and 1 too; no cases give 0."""
    if not total:
        return Figure(name, 0.0, samples=0, target=target)
    z, p = 1.959964, right / total
    middle, divisor = p + z * z / (2 * total), 1 + z * z / total
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    low, high = max(0.0, (middle - half) / divisor), min(1.0, (middle + half) / divisor)
    return Figure(name, p, samples=total, target=target, low=low, high=high)


def elapsed_ms(call: Callable[P, object], *arguments: P.args, **options: P.kwargs) -> float:
    begin = time.perf_counter()
    call(*arguments, **options)
    return (time.perf_counter() - begin) * 1000


class DataMissing(NotFound):
    """The data that a part measures on is not on this machine."""


class BenchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a run. `data`: a folder of real data; `progress`: called with what is being measured.

    `remote`: the user allows that the remote model of `memd remote use` is asked.

    Four are for the gate: `seed` and `tier` of its draw, `sheet`: the folder it writes to, `grades`: a graded sheet.
    """

    data: Path | None = None
    quick: bool = False
    seed: int = 7
    tier: Tier | Literal["both"] = "both"
    sheet: Path | None = None
    grades: Path | None = None
    remote: bool = False
    progress: Callable[[str], None] = lambda _: None

    def find(self, name: str) -> Path:
        """A file or folder of the data. Raises DataMissing."""
        if self.data is None:
            raise DataMissing(f"needs {name} of a data folder", hint="name that folder: --data DIR")
        if not (path := self.data / name).exists():
            raise DataMissing(f"there is no {name} in {self.data}", hint="--data DIR names the folder that holds it")
        return path


class TradeOff(msgspec.Struct, frozen=True, kw_only=True):
    """What one way to answer questions gets right, and what it costs: the mean tokens that it gives to an agent for a
    question, and the median of the milliseconds until they are there, 0 where that says nothing.

    `right` of `total` pieces of evidence, or of questions, are in what it gives. Points with the same `over`, which
    names the `questions` questions, lie in one picture; points of one `series` differ by their `variant`, "" if there
    is only one.
    """

    over: str
    series: str
    variant: str = ""
    right: int
    total: int
    questions: int
    tokens: float
    latency_ms: float

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.series, self.variant)))

    @property
    def accuracy(self) -> float:
        return self.right / self.total if self.total else 0.0

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The values of the point as rows of a report."""
        latency = Figure("  latency, p50", self.latency_ms, "ms", samples=self.questions)
        return (
            share(f"right, {self.name}", self.right, self.total),
            Figure("  tokens for a question, mean", self.tokens, samples=self.questions),
            *((latency,) if self.latency_ms else ()),
        )


def pareto_front(points: Sequence[TradeOff], cost: Callable[[TradeOff], float]) -> list[TradeOff]:
    """The points than which no other is both at least as cheap and at least as accurate, the cheapest first."""
    front: list[TradeOff] = []
    for point in sorted(points, key=lambda point: (cost(point), -point.accuracy)):
        if not front or point.accuracy > front[-1].accuracy:
            front.append(point)
    return front


class Curve(msgspec.Struct, frozen=True):
    """A share by day, or another value (`unit`) by another measure (`across`). Curves with the same `over` lie in one
    picture."""

    over: str
    series: str
    points: tuple[tuple[float, float], ...]
    across: str = "day"
    unit: str = ""


class PartResult(msgspec.Struct, frozen=True):
    """The result of one part. `shows_not`: what its figures do not cover; `notes`: differences, errors, cases.

    `trade_offs`: points of the picture of accuracy, tokens and latency; `curves`: shares over days; `figures` contains
    their values too. The runner sets the fields from `group` on. `what`: the first line of the part's docstring;
    `skipped`: why the part could not be measured here (its data is missing); `failed`: the error that ended it; `load`:
    processes that were ready to run, before and after.
    """

    figures: tuple[Figure, ...] = ()
    shows_not: str = ""
    notes: tuple[str, ...] = ()
    trade_offs: tuple[TradeOff, ...] = ()
    curves: tuple[Curve, ...] = ()
    group: str = ""
    name: str = ""
    what: str = ""
    seconds: float = 0.0
    skipped: str = ""
    failed: str = ""
    quick: bool = False
    at: str = ""
    version: str = ""
    load: tuple[float, float] = (0.0, 0.0)

    @property
    def missed(self) -> tuple[Figure, ...]:
        return tuple(figure for figure in self.figures if figure.met is False)


Measure = Callable[[BenchOptions], PartResult]
