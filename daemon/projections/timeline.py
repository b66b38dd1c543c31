"""Reads of the past, on both timelines: what was true then, and what memd believed then (R3, Q12, T1).

Comes in: a moment of world time, a moment of system time, or both. Goes out: records as they stood. Invariants: system
time goes by seq, so that a clock that was set back changes no answer; a state of the past is the fold of the operations
up to that seq, by the same step as everywhere; what is forgotten or hidden today is in no read of the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...protocol.instant import micros
from ...protocol.record import LIVE, Record
from ..storage.journal import JournalLog
from .record_reducer import apply
from .records import Records
from .sources import SourceTable

SLICE = 500


def true_at(record: Record, moment: int) -> bool:
    """Whether a record says that it was true at a moment, in microseconds: an open end of a retired one is none."""
    if record.valid_from and moment < micros(record.valid_from):
        return False
    if record.valid_to:
        return moment < micros(record.valid_to)
    return record.status != "retired"


class Timeline:
    """Records as they stood at a seq of the journal."""

    def __init__(self, records: Records, sources: SourceTable, journal: JournalLog) -> None:
        self._records, self._sources, self._journal = records, sources, journal

    def seq_at(self, moment: int) -> int:
        """The seq of the last operation at or before a moment of system time, in microseconds; 0 before the first."""
        return self._journal.log.seq_at(moment)

    def record_at(self, id: str, seq: int) -> Record | None:
        """A record as it was believed when `seq` was the last operation, or None."""
        now = self._records.get(id)
        return None if now is None else self._stood(now, seq)

    def _stood(self, now: Record, seq: int) -> Record | None:
        if now.status == "hidden" or now.learned_at == 0:
            return None
        seqs = self._sources.history(now.id)
        if seqs[-1] <= seq:
            return now
        record: Record | None = None
        for each in seqs:
            if each > seq:
                break
            if (entry := self._journal.get(each)) is not None:
                record = apply(record, now.id, entry)
        return None if record is None or record.status == "hidden" else record

    def records_at(self, pool: str, seq: int, key: str = "") -> Iterator[Record]:
        """The records of a pool, or those that held a key there, as they were believed at `seq`, in order of id."""
        ids = self._records.ever(pool, key)
        for start in range(0, len(ids), SLICE):
            for now in self._records.many(ids[start : start + SLICE]).values():
                record = self._stood(now, seq)
                if record is not None and record.pool == pool and (not key or record.key == key):
                    yield record

    def view(self, as_of: str, believed_at: str) -> View | None:
        """The view that a request asks for, None for the present. Raises NaiveTime, InvalidRequest."""
        if not as_of and not believed_at:
            return None
        seq = self.seq_at(micros(believed_at)) if believed_at else self._journal.last
        return View(self, seq, micros(as_of) if as_of else None)


class View:
    """One point on both timelines: believed at a seq, true at a moment (None: whatever was believed to be so then)."""

    def __init__(self, timeline: Timeline, seq: int, moment: int | None) -> None:
        self._timeline, self.seq, self._moment = timeline, seq, moment

    def shows(self, record: Record) -> bool:
        """Whether a record, as it stood at this view's seq, is what a question to that time finds."""
        return record.status in LIVE if self._moment is None else true_at(record, self._moment)

    def get(self, id: str) -> Record | None:
        """The record as it stood, if memd knew it then and it was true then."""
        record = self._timeline.record_at(id, self.seq)
        return record if record and (self._moment is None or true_at(record, self._moment)) else None

    def many(self, ids: Iterable[str]) -> dict[str, Record]:
        """Those of these records that a question to that time finds."""
        found = ((id, self._timeline.record_at(id, self.seq)) for id in ids)
        return {id: record for id, record in found if record is not None and self.shows(record)}

    def pool(self, pool: str, key: str = "") -> list[Record]:
        """The records of a pool as they stood and were true, newest first."""
        records = self._timeline.records_at(pool, self.seq, key)
        kept = (each for each in records if self._moment is None or true_at(each, self._moment))
        return sorted(kept, key=lambda record: (record.learned_at, record.id), reverse=True)
