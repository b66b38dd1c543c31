"""What a shared project has to tell the others next: the difference between the records and the own lines (W7, G7).

Invariants: the plan follows from the stores alone; it holds only lines that add and lines that invalidate; a record
leaves only after the user's word, for it or for its session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from ....protocol.operation import Offered
from ....protocol.record import LIVE, Record
from ....protocol.share import OUTBOX_HOURS
from ....protocol.shared_lines import line_name
from ...projections.pool_directory import OperationCache
from ...projections.sharing import ShareEntry
from ...projections.stores import Stores
from .gate import ShareGate, is_from_team
from .rendering import revision, says_the_same

OUTBOX_MICROS = OUTBOX_HOURS * 3600 * 1_000_000


class PlannedLine(NamedTuple):
    """A line to come. `record`: the one that an `add` is rendered from; `ref`: the line that an `inv` names; `due`:
    microseconds, 0 for the next push; `why_not`: why it stays here all the same."""

    what: Literal["add", "inv"]
    id: str
    record: Record | None = None
    ref: str = ""
    of: tuple[str, ...] = ()
    until: str = ""
    due: int = 0
    why_not: str = ""


class Told(NamedTuple):
    """What the others have, or get with the next push: the last line of each record, and the lines taken back."""

    lines: dict[str, Offered]
    invalidated: set[str]


def told_of(stores: Stores, entry: ShareEntry) -> Told:
    """Return what the own partitions tell, without lines of earlier ones that were never delivered."""
    told = Told({}, set())
    present = entry.opened.partition
    for partition in entry.partitions:
        for offered in stores.sharing.own_lines(partition):
            if partition != present and offered.n >= entry.past.get(partition, 0):
                break
            if offered.what == "add":
                told.lines[offered.id] = offered
            else:
                told.invalidated.add(offered.ref)
    return told


class SharePlan:
    """Computes the plan of a project, again after each operation."""

    def __init__(self, stores: Stores, gate: ShareGate) -> None:
        self._stores, self._gate = stores, gate
        self._known = OperationCache(stores)

    def steps(self, entry: ShareEntry) -> tuple[PlannedLine, ...]:
        """Return all lines to come, due or not, and those that are held."""
        if not entry.is_open:
            return ()
        key = "steps", msgspec.msgpack.encode(entry)
        return self._known.get(key, lambda: tuple(self._steps(entry)))

    def undecided(self, entry: ShareEntry) -> tuple[tuple[Record, str], ...]:
        """Return the live records that the user has not decided on, newest first, each with why it may not go."""
        if not entry.is_open:
            return ()
        key = "undecided", msgspec.msgpack.encode(entry)
        return self._known.get(key, lambda: tuple(self._undecided(entry)))

    def forgotten(self, entry: ShareEntry) -> int:
        """Return the number of lines that the others have and that become gone with the next push."""
        key = "forgotten", msgspec.msgpack.encode(entry)
        return self._known.get(key, lambda: self._forgotten(entry))

    def _forgotten(self, entry: ShareEntry) -> int:
        delivered, records = entry.delivered, self._stores.records
        if delivered is None:
            return 0
        lines = self._stores.sharing.own_lines(entry.opened.partition)[: delivered.count]
        absent = (entry.withdraw or (line.what == "add" and records.get(line.id) is None) for line in lines)
        return max(0, sum(absent) - delivered.gone)

    def _undecided(self, entry: ShareEntry) -> Iterator[tuple[Record, str]]:
        pool = entry.opened.pool
        choices, told = self._stores.sharing.choices(pool), told_of(self._stores, entry)
        for record in self._stores.records.in_pool(pool):
            is_open = record.status in LIVE and record.id not in choices and record.id not in told.lines
            if is_open and not (is_from_team(record) or self._goes_by_itself(entry, record)):
                yield record, self._gate.why_not(record, pool)

    def _steps(self, entry: ShareEntry) -> Iterator[PlannedLine]:
        pool = entry.opened.pool
        choices, told = self._stores.sharing.choices(pool), told_of(self._stores, entry)
        for offered in told.lines.values():
            yield from self._after(entry, offered, told, choices.get(offered.id, True))
        coming = [
            step
            for record in self._stores.records.in_pool(pool)
            if record.id not in told.lines
            for step in self._first(entry, record, choices.get(record.id))
        ]
        yield from reversed(coming)  # oldest first

    def _after(self, entry: ShareEntry, offered: Offered, told: Told, is_wanted: bool) -> Iterator[PlannedLine]:
        """Yield the lines that follow one that the others have; a forgotten record needs none."""
        record = self._stores.records.get(offered.id)
        if record is None:
            return
        ref = line_name(offered.partition, offered.n)
        is_archived = record.status == "archived"  # by its age, which concerns this home alone
        judged = msgspec.structs.replace(record, status="active") if is_archived else record
        if not is_wanted or self._gate.why_not(judged, entry.opened.pool):
            if not (ref in told.invalidated or self._is_disputed(entry, ref)):
                yield PlannedLine("inv", record.id, ref=ref, until=_until(record))
        elif not is_archived:
            yield from self._anew(offered, record, ref, ref in told.invalidated)

    def _is_disputed(self, entry: ShareEntry, ref: str) -> bool:
        """Whether another author invalidated a line."""
        lines = self._stores.sharing.invalidating(entry.opened.pool, ref)
        return any(line.partition not in entry.partitions for line in lines)

    def _anew(self, offered: Offered, record: Record, ref: str, is_invalidated: bool) -> Iterator[PlannedLine]:
        """Yield the lines that tell a changed record, or one that came back, anew."""
        if record.rev == offered.rev and not is_invalidated:
            return
        before = revision(self._stores, offered)
        if before is None:
            yield PlannedLine("add", record.id, record)
        elif is_invalidated:
            yield PlannedLine("add", record.id, record, of=(ref,))
        elif not says_the_same(before, record):
            yield PlannedLine("inv", record.id, ref=ref)
            yield PlannedLine("add", record.id, record, of=(ref,))

    def _first(self, entry: ShareEntry, record: Record, choice: bool | None) -> Iterator[PlannedLine]:
        """Yield the line of a record that the others do not have."""
        if choice is False or record.status == "retired":
            return
        if choice is None and not (record.status == "active" and self._goes_by_itself(entry, record)):
            return
        why_not = self._gate.why_not(record, entry.opened.pool)
        if choice:
            yield PlannedLine("add", record.id, record, why_not=why_not)
        elif not why_not:
            yield PlannedLine("add", record.id, record, due=record.learned_at + OUTBOX_MICROS)

    def _goes_by_itself(self, entry: ShareEntry, record: Record) -> bool:
        """Whether a record is of sessions that are shared as a whole, and memd learnt it since the user said so."""
        return 0 < entry.whole_since <= record.learned_at and self._gate.is_shared_whole(record)


def _until(record: Record) -> str:
    return record.valid_to if record.status == "retired" else ""
