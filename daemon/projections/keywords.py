"""The keyword index of records (R2, P-22).

Comes in: the operations that change a record. Goes out: BM25 scores by id. Invariants: every record is found from the
moment it is applied; a retired one only by those who ask for the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from .belief import touched
from .projection import check_order
from .records import Records
from .terms import TermIndex, Text


def words(record: Record) -> str:
    """What of a record is searched: its description, its words, its tags, its key."""
    return "\n".join((record.description, record.content, " ".join(record.tags), record.key))


def text_of(record: Record) -> Text:
    """A record as the index takes it."""
    return Text(record.id, record.pool, record.status in LIVE, words(record))


class Keywords(TermIndex):
    """The index over the records, in groups by pool."""

    name = "keywords"

    def __init__(self, folder: Path, records: Records) -> None:
        self._records = records
        super().__init__(folder, scoped=True)

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in, tail included."""
        return self.applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Put the records these operations touched into the tail and before the index's writer."""
        check_order(self.name, self.applied, entries)
        if not entries:
            return
        seqs = {id: entry.seq for entry in entries for id in touched(entry.operation)}
        found = self._records.many(seqs)
        texts = [(text_of(record), seqs[id]) for id, record in found.items()]
        self.put(texts, [id for id in seqs if id not in found], entries[-1].seq)
