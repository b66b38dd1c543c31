"""Requests and replies about decay, restoring, correction and history (T1-T9, T12, Q12).

Invariant: none of them destroys data: `restore` reactivates archived records, corrected ones stay in the history.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .instant import Instant
from .intent import Names, Request, ScopedRequest
from .record import Record


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


class Restore(Request, tag="restore", frozen=True, kw_only=True):
    """Make archived records active again, by id or unambiguous prefix (T7)."""

    ids: Names


class RecordList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `restore` and `timeline`. `left`: number of records that were not archived, or are over the limit."""

    records: tuple[Record, ...]
    left: int = 0


class GetHistory(Request, tag="history", frozen=True, kw_only=True):
    """List every version of a record, by id or unambiguous prefix (T1, Q12)."""

    id: str


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A record after one operation, None if that removed it. `at`: microseconds."""

    seq: int
    at: int
    kind: str
    why: str = ""
    record: Record | None = None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `history`: the record with its current signal, and its versions, oldest first."""

    record: Record
    versions: tuple[Version, ...]


class GetTimeline(ScopedRequest, tag="timeline", frozen=True, kw_only=True):
    """List records about a key, a key prefix or words by world time, retired and archived ones too (T1, Q12)."""

    subject: str
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50


class Correct(Request, tag="correct", frozen=True, kw_only=True):
    """Replace a wrong record by `text` (T1). `since`: the record was right until then; "" if it never was."""

    id: str
    text: str
    at: Instant
    since: str = ""
