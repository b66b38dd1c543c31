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
    """List the records that sleep will archive next if nobody uses them (T9), the soonest first."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 20


class Fading(msgspec.Struct, frozen=True, kw_only=True):
    """A decaying record with its current signal. `days_left`: active days of its pool until memd archives it."""

    record: Record
    days_left: float


class FadingList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `fading`: the first of `total` decaying records. `overdue`: past their review date (T12)."""

    records: tuple[Fading, ...]
    scope: tuple[str, ...]
    total: int
    overdue: tuple[Record, ...] = ()
