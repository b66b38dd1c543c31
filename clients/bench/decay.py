"""Sleep over 100,000 records, and recall with forgetting on and off; the daemon's own offline commands measure both."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import msgspec

from .measurement import BenchOptions, Figure, PartResult, at_least, at_most, mean_figure
from .temporary_daemon import empty_home, offline


class SleepTimes(msgspec.Struct, frozen=True):
    """The output of the daemon's `measure-sleep` command, in milliseconds."""

    records: int
    commit_ms: float
    commit_p99_ms: float
    look_ms: float
    slices: int
    slice_ms: float
    slowest_slice_ms: float
    archived: int


def sleep(options: BenchOptions) -> PartResult:
    """Sleep over 100,000 records: its commit, the search for weak records, archiving them in slices."""
    records = 10_000 if options.quick else 100_000
    with empty_home() as (_, environment):
        options.progress(f"filling a home with {records:,} records")
        offline(environment, "fill-home", str(records))
        options.progress("sleeping through sixty days")
        times = msgspec.json.decode(offline(environment, "measure-sleep"), type=SleepTimes)
    figures = (
        Figure("sleep committed", times.commit_ms, "ms", samples=180, target=at_most(5)),
        Figure("  99 of 100 within", times.commit_p99_ms, "ms", samples=180),
        Figure("sweep: the look at every record", times.look_ms, "ms", target=at_most(300)),
        Figure("  a slice archived", times.slice_ms, "ms", samples=times.slices, target=at_most(300)),
        Figure("  the slowest slice", times.slowest_slice_ms, "ms", samples=times.slices),
        Figure("records archived, at most 5 %", times.archived, samples=times.records),
    )
    shows_not = "waiting for the disk, and captures that arrive meanwhile: they are committed between two slices"
    return PartResult(figures=figures, shows_not=shows_not)


class ForgettingComparison(msgspec.Struct, frozen=True):
    """The output of the daemon's `measure-forgetting` command, with forgetting on and off.

    `precision`: by subject, the share of its answers that are still true; `recall`: by seldom used fact, whether it is
    found.
    """

    precision_on: list[float]
    precision_off: list[float]
    recall_on: list[float]
    recall_off: list[float]
    live_on: int
    live_off: int


def forgetting(options: BenchOptions) -> PartResult:
    """Half a year of facts that change unsaid, recalled with forgetting on and off: are more of the answers true?"""
    with empty_home() as (_, environment):
        options.progress("simulating half a year twice")
        outcome = msgspec.json.decode(offline(environment, "measure-forgetting"), type=ForgettingComparison)
    gains = [on - off for on, off in zip(outcome.precision_on, outcome.precision_off, strict=True)]
    recall_gain = fmean(outcome.recall_on) - fmean(outcome.recall_off)
    half, gain = 1.96 * stdev(gains) / math.sqrt(len(gains)), fmean(gains)
    rare = len(outcome.recall_on)
    figures = (
        Figure("precision gained", gain, "", 0.0, len(gains), at_least(0.05), gain - half, gain + half),
        mean_figure("  with forgetting", outcome.precision_on),
        mean_figure("  without", outcome.precision_off),
        Figure("seldom used facts found, more or less", recall_gain, samples=rare, target=at_least(-0.02)),
        Figure("live records with forgetting", outcome.live_on, floor=outcome.live_off),
    )
    shows_not = "how often stale facts are never corrected in real work: here none of them is ever contradicted"
    return PartResult(figures=figures, shows_not=shows_not)
