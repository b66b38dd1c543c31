"""Time at full size: ten years of use read back, and one sleep over 100,000 records.

Comes in: a setting. Goes out: seconds of a core, milliseconds of a sleep. Invariant: nothing of the daemon is imported;
homes are filled and measured by its own offline commands.
"""

from __future__ import annotations

import math
from statistics import fmean, stdev

import msgspec

from .figure import Figure, at_least, at_most
from .home import empty_home
from .offline import offline
from .part import Part, Setting


class Replayed(msgspec.Struct, frozen=True):
    """What the daemon's `replay` command says: seconds of a core."""

    operations: int
    chain_s: float
    tables_s: float
    keywords_s: float
    vectors_s: float


def ten_years(setting: Setting) -> Part:
    """Ten years of sleeps and counts over 100,000 records, replayed into every projection."""
    part = 10 if setting.quick else 1
    records, sleeps, counts = 100_000 // part, 3_650 // part, 1_000_000 // part
    with empty_home({}) as (_, environment):
        setting.tell(f"living ten years with {records:,} records")
        offline(environment, "fill-years", str(records), str(sleeps), str(counts))
        setting.tell("replaying them")
        told = msgspec.json.decode(offline(environment, "replay"), type=Replayed)
    seconds = told.chain_s + told.tables_s + told.keywords_s + told.vectors_s
    name = f"{sleeps:,} sleeps, {counts:,} counts replayed"
    return Part(
        figures=(
            Figure(name=name, value=seconds, unit="s", samples=told.operations, target=at_most(60)),
            Figure(name="read, decode, chain", value=told.chain_s, unit="s", samples=told.operations),
            Figure(name="tables, counters among them", value=told.tables_s, unit="s", samples=told.operations),
            Figure(name="keywords", value=told.keywords_s, unit="s", samples=told.operations),
            Figure(name="vectors", value=told.vectors_s, unit="s", samples=told.operations),
        ),
        shows_not="a cold page cache; vectors are read, not made",
    )


class Slept(msgspec.Struct, frozen=True):
    """What the daemon's `measure-sleep` command says, in milliseconds."""

    records: int
    commit_ms: float
    commit_p99_ms: float
    look_ms: float
    slices: int
    slice_ms: float
    slowest_slice_ms: float
    archived: int


def sleep(setting: Setting) -> Part:
    """Sleep over 100,000 records: its commit, the look for what is too weak, archiving in slices."""
    records = 10_000 if setting.quick else 100_000
    with empty_home({}) as (_, environment):
        setting.tell(f"filling a home with {records:,} records")
        offline(environment, "fill-home", str(records))
        setting.tell("sleeping through sixty days")
        told = msgspec.json.decode(offline(environment, "measure-sleep"), type=Slept)
    slices = told.slices
    return Part(
        figures=(
            Figure(name="sleep committed", value=told.commit_ms, unit="ms", samples=180, target=at_most(5)),
            Figure(name="  99 of 100 within", value=told.commit_p99_ms, unit="ms", samples=180),
            Figure(name="sweep: the look at every record", value=told.look_ms, unit="ms", target=at_most(300)),
            Figure(name="  a slice archived", value=told.slice_ms, unit="ms", samples=slices, target=at_most(300)),
            Figure(name="  the slowest slice", value=told.slowest_slice_ms, unit="ms", samples=slices),
            Figure(name="records archived, at most 5 %", value=told.archived, samples=told.records),
        ),
        shows_not="waiting for the disk, and captures that come meanwhile: they go between two slices",
    )


class Lived(msgspec.Struct, frozen=True):
    """What the daemon's `measure-forgetting` command says: by subject the share of its answers that are still true, by
    seldom used fact whether it is found; with forgetting on and off."""

    precision_on: list[float]
    precision_off: list[float]
    recall_on: list[float]
    recall_off: list[float]
    live_on: int
    live_off: int


def forgetting(setting: Setting) -> Part:
    """Half a year of facts that change unsaid, recalled with forgetting on and off: is more of what is found true?"""
    with empty_home({}) as (_, environment):
        setting.tell("living half a year twice")
        told = msgspec.json.decode(offline(environment, "measure-forgetting"), type=Lived)
    gain = [on - off for on, off in zip(told.precision_on, told.precision_off, strict=True)]
    kept = fmean(told.recall_on) - fmean(told.recall_off)
    samples = len(gain)
    half = 1.96 * stdev(gain) / math.sqrt(samples)
    low, high = fmean(gain) - half, fmean(gain) + half
    return Part(
        figures=(
            Figure(
                name="precision gained", value=fmean(gain), low=low, high=high, samples=samples, target=at_least(0.05)
            ),
            Figure(name="  with forgetting", value=fmean(told.precision_on), samples=samples),
            Figure(name="  without", value=fmean(told.precision_off), samples=samples),
            Figure(
                name="seldom used facts found, more or less",
                value=kept,
                samples=len(told.recall_on),
                target=at_least(-0.02),
            ),
            Figure(name="live records with forgetting", value=told.live_on, floor=told.live_off),
        ),
        shows_not="how often stale facts stay unsaid in real work: here none of them is ever contradicted aloud",
    )
