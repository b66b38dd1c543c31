"""Reads of the past in world time and system time (R3, Q12, T1).

Invariants: system time is a seq, so a clock that was set back changes no answer; a past record is the fold of the
operations up to that seq by `record_reducer.apply`; a record that is forgotten or hidden now is in no read of the past;
a reader sees a past state only if it may see the record both as it is now and as it was then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ...protocol.fading import Counted, Folded
from ...protocol.instant import micros
from ...protocol.operation import Rebased
from ...protocol.record import LIVE, Record, Signal, learning_order
from ...protocol.reply import Logged
from ..storage.ports import EventLog
from .ports import RecordReader
from .record_reducer import apply
from .sources import SourceTable

SLICE = 500

_COUNTS = frozenset({"counted", "folded", "rebased"})
"""Kinds of operations that change how often a record was used."""

Permits = Callable[[Record], bool]


def true_at(record: Record, moment: int) -> bool:
    """Whether a record was true at a moment, in microseconds; a retired one without `valid_to` was not."""
    if record.valid_from and moment < micros(record.valid_from):
        return False
    if record.valid_to:
        return moment < micros(record.valid_to)
    return record.status != "retired"


def _count(uses: dict[str, Signal], entry: Logged) -> None:
    """Add the counts of an operation to those of the records in `uses`."""
    match entry.operation:
        case Counted() as operation:
            for id in operation.counts.keys() & uses.keys():
                count, before = operation.counts[id], uses[id]
                uses[id] = replace(
                    before,
                    access_count=before.access_count + count.uses,
                    candidate_count=before.candidate_count + count.candidates,
                    last_access=(count.last or entry.at) if count.uses else before.last_access,
                )
        case Folded() as operation:
            for id in operation.tallies.keys() & uses.keys():
                tally = operation.tallies[id]
                uses[id] = replace(
                    uses[id], access_count=tally.uses, candidate_count=tally.candidates, last_access=tally.last
                )
        case Rebased(record=record):
            if record.id in uses:
                uses[record.id] = record.signal
        case _:
            pass


class Timeline:
    """Records as they stood at a seq of the journal."""

    def __init__(self, records: RecordReader, sources: SourceTable, journal: EventLog) -> None:
        self._records, self._sources, self._journal = records, sources, journal

    def seq_at(self, moment: int) -> int:
        """Return the seq of the last operation at or before a system time in microseconds, 0 for none."""
        return self._journal.seq_at(moment)

    def record_at(self, id: str, seq: int, permits: Permits | None = None) -> Record | None:
        """Return a record as it was when `seq` was the last operation, or None."""
        now = self._records.get(id)
        return None if now is None else self._permitted(now, seq, permits)

    def _permitted(self, now: Record, seq: int, permits: Permits | None) -> Record | None:
        """Return the record as it was; None if the reader may not see it now, or could not have seen it then."""
        if permits is None:
            return self._stood(now, seq)
        past = self._stood(now, seq) if permits(now) else None
        return past if past is not None and permits(past) else None

    def _stood(self, now: Record, seq: int) -> Record | None:
        if now.status == "hidden" or now.learned_at == 0:
            return None
        seqs = self._sources.history(now.id)
        if seqs[-1] <= seq:
            return now
        record: Record | None = None
        for changed_at in seqs:
            if changed_at > seq:
                break
            if (entry := self._journal.get(changed_at)) is not None:
                record = apply(record, now.id, entry)
        return None if record is None or record.status == "hidden" else record

    def last_live(self, record: Record, seq: int) -> Record | None:
        """Return a record as it was when it was last live, at `seq` or before; None if it never was."""
        last: Record | None = None
        version: Record | None = None
        for changed_at in self._sources.history(record.id):
            if changed_at > seq:
                break
            if (entry := self._journal.get(changed_at)) is not None:
                version = apply(version, record.id, entry)
                last = version if version is not None and version.status in LIVE else last
        return last

    def signals_at(self, records: Sequence[Record], seq: int) -> dict[str, Signal]:
        """Return how often these records had been used and given when `seq` was the last operation; strengths are left
        as they were written."""
        uses = {record.id: self._first_signal(record) for record in records}
        for entry in self._journal.read(kinds=_COUNTS):
            if entry.seq > seq:
                break
            _count(uses, entry)
        return {
            record.id: replace(
                record.signal,
                access_count=uses[record.id].access_count,
                candidate_count=uses[record.id].candidate_count,
                last_access=uses[record.id].last_access,
            )
            for record in records
        }

    def _first_signal(self, record: Record) -> Signal:
        """Return the signal with which a record came in."""
        seqs = self._sources.history(record.id)
        entry = self._journal.get(seqs[0]) if seqs else None
        first = apply(None, record.id, entry) if entry else None
        return first.signal if first else record.signal

    def records_at(self, pool: str, seq: int, key: str = "", permits: Permits | None = None) -> Iterator[Record]:
        """Yield the records of a pool, or those that held a key there, as they were at `seq`, in order of id."""
        ids = self._records.ever(pool, key)
        for start in range(0, len(ids), SLICE):
            for now in self._records.many(ids[start : start + SLICE]).values():
                record = self._permitted(now, seq, permits)
                if record is not None and record.pool == pool and (not key or record.key == key):
                    yield record

    def view(self, as_of: str, believed_at: str, permits: Permits | None = None) -> View | None:
        """Return the view that a request asks for, None for the present. Raises NaiveTime, InvalidRequest.

        `permits`: tells whether the reader may see a record; the view then has no other records.
        """
        if not as_of and not believed_at:
            return None
        seq = self.seq_at(micros(believed_at)) if believed_at else self._journal.last
        return View(self, seq, micros(as_of) if as_of else None, permits)


class View:
    """A seq in system time and a moment in world time in microseconds (None: the statuses at that seq decide)."""

    def __init__(self, timeline: Timeline, seq: int, moment: int | None, permits: Permits | None = None) -> None:
        self._timeline, self.seq, self._moment, self._permits = timeline, seq, moment, permits

    def shows(self, record: Record) -> bool:
        """Whether a question about that time finds a record in its state at this view's seq."""
        return record.status in LIVE if self._moment is None else true_at(record, self._moment)

    def get(self, id: str) -> Record | None:
        """Return the record as it was, if memd knew it then and it was true then."""
        record = self._timeline.record_at(id, self.seq, self._permits)
        return record if record and (self._moment is None or true_at(record, self._moment)) else None

    def many(self, ids: Iterable[str]) -> dict[str, Record]:
        """Return those of these records that a question about that time finds."""
        records = ((id, self._timeline.record_at(id, self.seq, self._permits)) for id in ids)
        return {id: record for id, record in records if record is not None and self.shows(record)}

    def standing(self, pool: str) -> Iterator[Record]:
        """Yield the records of a pool that a question about that time finds, as they were, in order of id."""
        return filter(self.shows, self._timeline.records_at(pool, self.seq, permits=self._permits))

    def live(self, pool: str) -> Iterator[Record]:
        """Yield the records of a pool that were live then, in order of id. One that memd retired later, and that was
        true at the asked moment, is as it was before that."""
        for record in self.standing(pool):
            if record.status in LIVE:
                yield record
            elif record.status == "retired" and (last := self._timeline.last_live(record, self.seq)):
                yield replace(last, valid_to=record.valid_to)

    def signals(self, records: Sequence[Record]) -> dict[str, Signal]:
        """Return how often records had been used and given then."""
        return self._timeline.signals_at(records, self.seq)

    def pool(self, pool: str, key: str = "") -> list[Record]:
        """Return the records of a pool as they were, if true then, newest first."""
        records = self._timeline.records_at(pool, self.seq, key, self._permits)
        true = (record for record in records if self._moment is None or true_at(record, self._moment))
        return sorted(true, key=learning_order, reverse=True)
