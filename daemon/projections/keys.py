"""Exact keys: which live record of a pool holds the value of `prefers.indentation` (R1).

Comes in: `added`, `updated`, `invalidated`, retirements. Goes out: an id for (pool, key). Invariant: at most one live
live record a pool and key; a retired record's key is free again.
"""

from __future__ import annotations

import lmdb

from ...protocol.operation import Added, Invalidated, Updated
from ...protocol.record import LIVE
from ...protocol.reply import Logged
from .records import Records, digest


class Keys:
    """The fold of exact keys. It stands before `Records` in the list, so that it sees the rows as they were."""

    databases = ("keys",)

    def __init__(self, records: Records) -> None:
        self._records = records

    def apply(self, transaction: lmdb.Transaction, entry: Logged) -> None:
        """Fold one operation in."""
        match entry.operation:
            case Added() | Updated():
                record = entry.operation.record
                for id in (*(retirement.id for retirement in entry.operation.retires), record.id):
                    self._free(transaction, id)
                if record.key and record.status in LIVE:
                    self._put(transaction, record.pool, record.key, record.id)
            case Invalidated():
                self._free(transaction, entry.operation.id)
            case _:
                pass

    def _free(self, transaction: lmdb.Transaction, id: str) -> None:
        before = self._records.find(transaction, id)
        if before is None or not before.key:
            return
        key, database = digest(f"{before.pool}\0{before.key}"), self._records.environment.db("keys")
        if transaction.get(key, db=database) == id.encode():
            transaction.delete(key, db=database)

    def _put(self, transaction: lmdb.Transaction, pool: str, key: str, id: str) -> None:
        transaction.put(digest(f"{pool}\0{key}"), id.encode(), db=self._records.environment.db("keys"))

    def get(self, pool: str, key: str) -> str:
        """The id of the live record that holds this key in this pool, "" if none does."""
        with self._records.environment.read() as transaction:
            found = transaction.get(digest(f"{pool}\0{key}"), db=self._records.environment.db("keys"))
        return found.decode() if found else ""
