"""What a projection is: a fold of the journal, with the seq it has applied; and the tables that share one environment.

Comes in: logged operations, each once, in order. Goes out: what reads ask for. Invariants: `apply` asserts that the
first seq is `applied_seq + 1`; a projection may lose its tail or be deleted, replay brings it back equal; nothing but
`apply` ever changes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import lmdb

from ...protocol.errors import JournalCorrupt
from ...protocol.reply import Logged
from ..store.environment import Environment


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


class Fold(Protocol):
    """A fold whose tables lie in the shared LMDB environment."""

    @property
    def databases(self) -> tuple[str, ...]:
        """The names of its tables."""
        ...

    def apply(self, transaction: lmdb.Transaction, entry: Logged) -> None:
        """Fold one operation into the tables, inside the transaction of the whole group."""
        ...


def seal(value: bytes) -> bytes:
    """`value` with its CRC-32 before it."""
    return zlib.crc32(value).to_bytes(4) + value


def unseal(stored: bytes, what: str) -> bytes:
    """The value in `stored`. Raises JournalCorrupt when the checksum does not hold: never a wrong value."""
    value = stored[4:]
    if zlib.crc32(value).to_bytes(4) != stored[:4]:
        raise JournalCorrupt(f"{what} is damaged", hint="run `memd rebuild all`: the journal still has it")
    return value


class Tables:
    """All LMDB folds in one environment and one transaction: a reader never sees one ahead of another."""

    name = "tables"

    def __init__(self, folder: Path, folds: Sequence[Fold]) -> None:
        self._folds = tuple(folds)
        names = tuple(name for fold in folds for name in fold.databases)
        self.environment = Environment(folder, ("meta", *names), durable=False)
        self._meta = self.environment.db("meta")
        with self.environment.read() as transaction:
            found = transaction.get(b"applied_seq", db=self._meta)
        self._applied = int.from_bytes(found) if found else 0

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in."""
        return self._applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Fold a group into every table and move `applied_seq`, all or nothing."""
        if not entries:
            return
        if entries[0].seq != self._applied + 1:
            raise AssertionError(f"tables have {self._applied}, got {entries[0].seq}")

        def work(transaction: lmdb.Transaction) -> None:
            for entry in entries:
                for fold in self._folds:
                    fold.apply(transaction, entry)
            transaction.put(b"applied_seq", entries[-1].seq.to_bytes(8), db=self._meta)

        self.environment.write(work)
        self._applied = entries[-1].seq

    def close(self) -> None:
        """Bring everything to the disk and close."""
        self.environment.sync()
        self.environment.close()
