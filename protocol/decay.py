"""Requests and replies about sleep and the decay of records (T6-T9)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from .record import Record
from .request_fields import Names, Request, ScopedRequest


class PutToSleep(Request, tag="sleep", frozen=True, kw_only=True):
    """Apply decay to these pools, by default all, and archive weak records (T6); `dry_run` only reports."""

    pools: Names = ()
    dry_run: bool = False


class Asleep(msgspec.Struct, frozen=True, kw_only=True):
    """The sleep of one pool. `days`: the part of a day's loss that it applied; `faded`: records below the floor;
    `pruned`: records over the capacity; `first`: the first of both."""

    pool: str
    tasks_per_day: float
    days: float
    faded: int
    pruned: int
    first: tuple[Record, ...] = ()


class Slumbered(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `sleep`. `off`: pools without decay."""

    pools: tuple[Asleep, ...]
    off: tuple[str, ...] = ()
    dry_run: bool = False


class ListFading(ScopedRequest, tag="fading", frozen=True, kw_only=True):
    """List the records that sleep will archive next if nobody uses them (T9), the soonest first. `after_days`: only
    those that are below the floor after this many active days; 0 for all."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 20
    after_days: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0


class Fading(msgspec.Struct, frozen=True, kw_only=True):
    """A decaying record with its current signal. `days_left`: active days of its pool until memd archives it."""

    record: Record
    days_left: float


class FadingBin(msgspec.Struct, frozen=True, array_like=True):
    """How many records have at least `days` active days left, and less than the width of a bin more."""

    days: int
    records: int


class FadingList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `fading`: the first of `total` decaying records. `overdue`: past their review date (T12).

    `gone`: records below the floor after `after_days`; `histogram`: those of `total` whose kind decays, by days left,
    without empty bins, of `bin_days` each; `retention`: by level, the share of its strength that an unused record has
    after `after_days`, or after one day.
    """

    records: tuple[Fading, ...]
    scope: tuple[str, ...]
    total: int
    overdue: tuple[Record, ...] = ()
    gone: int = 0
    bin_days: int = 1
    histogram: tuple[FadingBin, ...] = ()
    retention: tuple[float, ...] = ()
