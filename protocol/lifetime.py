"""Requests and replies about time: what fades, what came back, how a record and a subject changed (T2-T9, T12, Q12).

Comes in: a wish of the user. Goes out: how things stand. Invariant: nothing here destroys: what is archived comes back
with `restore`, what is corrected stays in the history.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .event import Repository
from .instant import Instant
from .intent import Names, Request
from .record import Record


class PutToSleep(Request, tag="sleep", frozen=True, kw_only=True):
    """End a task by hand (T6): fade these pools, by default all, and archive what is too weak; `dry_run` only says what
    would go."""

    pools: Names = ()
    dry_run: bool = False


class Asleep(msgspec.Struct, frozen=True, kw_only=True):
    """Of one pool: its pace, the part of a day's loss that this sleep stands for, how many records faded below the
    floor, how many are over the capacity, and the first of both."""

    pool: str
    tasks_per_day: float
    days: float
    faded: int
    pruned: int
    first: tuple[Record, ...] = ()


class Slumbered(msgspec.Struct, frozen=True, kw_only=True):
    """Of `sleep`: by pool. `off`: the pools in which nothing fades."""

    pools: tuple[Asleep, ...]
    off: tuple[str, ...] = ()
    dry_run: bool = False


class ListFading(Request, tag="fading", frozen=True, kw_only=True):
    """What will be forgotten soon if nobody uses it (T9), the soonest first. `cwd` chooses the pools as in `recall`."""

    cwd: str = ""
    pools: Names = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 20
    repository: Repository | None = None


class Fading(msgspec.Struct, frozen=True, kw_only=True):
    """A record that fades: its signal is as it is now; active days of its pool until it is archived."""

    record: Record
    days_left: float


class FadingList(msgspec.Struct, frozen=True, kw_only=True):
    """Of `fading`: `total` records may fade; `overdue` are past their review date (T12)."""

    records: tuple[Fading, ...]
    scope: tuple[str, ...]
    total: int
    overdue: tuple[Record, ...] = ()


class Restore(Request, tag="restore", frozen=True, kw_only=True):
    """Believe archived records again, by ids or beginnings of them (T7)."""

    ids: Names


class RecordList(msgspec.Struct, frozen=True, kw_only=True):
    """Of `restore` and `timeline`: records; `left` of them are not shown, or were not archived."""

    records: tuple[Record, ...]
    left: int = 0


class GetHistory(Request, tag="history", frozen=True, kw_only=True):
    """Every version of a record, by its id or the beginning of it, with what each operation did (T1, Q12)."""

    id: str


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A record after one operation: its seq, when (microseconds), what it was, why; None once it was not there."""

    seq: int
    at: int
    kind: str
    why: str = ""
    record: Record | None = None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Of `history`: the record now, with its signal, and its versions, oldest first."""

    record: Record
    versions: tuple[Version, ...]


class GetTimeline(Request, tag="timeline", frozen=True, kw_only=True):
    """What was true of a subject when, retired and archived records too, in order of world time (T1, Q12): `subject`
    is a key, the beginning of one, or words."""

    subject: str
    cwd: str = ""
    pools: Names = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    repository: Repository | None = None


class Correct(Request, tag="correct", frozen=True, kw_only=True):
    """The user says that a record is wrong and what is right (T1): `text` replaces it. `since`: it was right until
    then; "" says that it never was."""

    id: str
    text: str
    at: Instant
    since: str = ""


AnyLifetime = PutToSleep | ListFading | Restore | GetHistory | GetTimeline | Correct
AnyLifetimeData = Slumbered | FadingList | RecordList | History
