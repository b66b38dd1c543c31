"""What a projection is: a fold of the journal, with the seq it has applied; and the tables that share one environment.

Comes in: logged operations, each once, in order. Goes out: what reads ask for. Invariants: `apply` asserts that the
seqs follow `applied_seq` without a hole; a projection may lose its tail or be deleted, replay brings it back equal;
nothing but `apply` ever changes it. A group's rows are collected and written in order at its end: that is four times
faster than row by row, and replay is what makes a projection disposable. Every row is sealed (`store/sealed.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import lmdb

from ...protocol.fading import Rest, Tally
from ...protocol.operation import AnyOperation
from ...protocol.record import Record
from ...protocol.reply import Logged
from ..storage.checksummed_rows import seal, sealed, unseal
from ..storage.lmdb_environment import Environment
from .record_reducer import touched

LAYOUT = b"14"
"""Changes with the rows of any table: older tables are emptied and replayed."""


class Projection(Protocol):
    """The one interface of all projections."""

    name: str

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in."""
        ...

    def apply(self, entries: Sequence[Logged]) -> None:
        """Fold these operations in; their seqs follow `applied_seq` without a hole."""
        ...


def check_order(name: str, applied_seq: int, entries: Sequence[Logged]) -> None:
    """Refuse a hole or a repetition: a programmer's error, so it crashes."""
    for number, entry in enumerate(entries, applied_seq + 1):
        if entry.seq != number:
            raise AssertionError(f"{name} has applied {number - 1}, got {entry.seq}")


class OperationBatch:
    """The rows that a group of operations writes, over the transaction that they will go into.

    `records`, `tallies` and `rests` hold decoded rows by id or pool, so that a group decodes each once; `found` holds
    the records that it changes as it found them. `later` is called once all of the group's operations are applied.
    """

    def __init__(self, transaction: lmdb.Transaction) -> None:
        self._transaction = transaction
        self._rows: dict[lmdb.Database, dict[bytes, bytes | None]] = {}
        self.records: dict[str, Record | None] = {}
        self.found: dict[str, Record | None] = {}
        self.later: list[Callable[[], None]] = []
        self.tallies: dict[str, Tally | None] = {}
        self.rests: dict[str, Rest] = {}
        self._entry: Logged | None = None
        self._touched: tuple[str, ...] = ()

    def touched(self, entry: Logged) -> tuple[str, ...]:
        """Ids of the records that an operation may change; several folds ask it of each."""
        if entry is not self._entry:
            self._entry, self._touched = entry, touched(entry.operation)
        return self._touched

    def get(self, key: bytes, db: lmdb.Database) -> bytes | None:
        """The value as this group leaves it so far, or None. Raises JournalCorrupt for a damaged row."""
        rows = self._rows.get(db)
        if rows is not None and key in rows:
            return rows[key]
        stored = self._transaction.get(key, db=db)
        return None if stored is None else unseal(key, stored, "a row that an operation changes")

    def rows(self, db: lmdb.Database) -> dict[bytes, bytes | None]:
        """What is to be written to a table: None deletes. For those who write many rows."""
        rows = self._rows.get(db)
        if rows is None:
            rows = self._rows[db] = {}
        return rows

    def put(self, key: bytes, value: bytes, db: lmdb.Database) -> None:
        """Write a row when the group ends."""
        self.rows(db)[key] = value

    def delete(self, key: bytes, db: lmdb.Database) -> None:
        """Delete a row when the group ends, if it is there."""
        self.rows(db)[key] = None

    def flush(self) -> None:
        """Write everything, sealed, each table in order of its keys."""
        for work in self.later:
            work()
        for db, rows in self._rows.items():
            for key, value in rows.items():
                if value is None:
                    self._transaction.delete(key, db=db)
            kept = sealed(rows)
            consumed, _ = self._transaction.cursor(db).putmulti(kept)
            if consumed != len(kept):
                raise AssertionError(f"{len(kept) - consumed} rows were not taken")


class TableFold(Protocol):
    """A fold whose tables lie in the shared LMDB environment."""

    @property
    def databases(self) -> tuple[str, ...]:
        """The names of its tables."""
        ...

    @property
    def reads(self) -> tuple[type[AnyOperation], ...]:
        """The kinds of operations that it is handed: whatever may change its tables; () for all."""
        ...

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation into the tables, inside the batch of the whole group."""
        ...


class Tables:
    """All LMDB folds in one environment and one transaction: a reader never sees one ahead of another."""

    name = "tables"

    def __init__(
        self, folder: Path, folds: Sequence[TableFold], *, readonly: bool = False, alone: bool = False
    ) -> None:
        self._folds = tuple(folds)
        self._readers: dict[type[AnyOperation], tuple[TableFold, ...]] = {}
        self.environment = Environment(folder, self.databases, durable=False, readonly=readonly, alone=alone)
        if not readonly:
            self.environment.write(self._check_layout)
        self._applied = self._stored_seq()

    def _check_layout(self, transaction: lmdb.Transaction) -> None:
        meta, layout = self.environment.db("meta"), seal(b"layout", LAYOUT)
        if transaction.get(b"layout", db=meta) != layout:
            for name in self.databases:
                transaction.drop(self.environment.db(name), delete=False)
            transaction.put(b"layout", layout, db=meta)

    @property
    def databases(self) -> tuple[str, ...]:
        """The names of all tables."""
        return ("meta", *(name for fold in self._folds for name in fold.databases))

    def _stored_seq(self) -> int:
        with self.environment.read() as transaction:
            return self.applied_in(transaction)

    def applied_in(self, snapshot: lmdb.Transaction) -> int:
        """The seq of the last operation that a snapshot of these tables holds."""
        found = snapshot.get(b"applied_seq", db=self.environment.db("meta"))
        return int.from_bytes(unseal(b"applied_seq", found, "the mark of the tables")) if found else 0

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in."""
        return self._applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Fold a group into every table and move `applied_seq`, all or nothing."""
        check_order(self.name, self._applied, entries)
        if not entries:
            return

        def work(transaction: lmdb.Transaction) -> None:
            batch = OperationBatch(transaction)
            for entry in entries:
                for fold in self._readers_of(type(entry.operation)):
                    fold.apply(batch, entry)
            batch.put(b"applied_seq", entries[-1].seq.to_bytes(8), db=self.environment.db("meta"))
            batch.flush()

        self.environment.write(work)
        self._applied = entries[-1].seq

    def _readers_of(self, kind: type[AnyOperation]) -> tuple[TableFold, ...]:
        """The folds that an operation of this kind is handed to, in order."""
        found = self._readers.get(kind)
        if found is None:
            found = self._readers[kind] = tuple(each for each in self._folds if not each.reads or kind in each.reads)
        return found

    def replace(self, move: Callable[[], None]) -> None:
        """Take the environment that `move` puts in the place of this one; readers wait meanwhile."""
        self.environment.replace(move)
        self._applied = self._stored_seq()

    def close(self) -> None:
        """Bring everything to the disk and close."""
        self.environment.sync()
        self.environment.close()
