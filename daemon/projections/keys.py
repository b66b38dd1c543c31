"""Exact keys: which live record of a pool holds the value of `prefers.indentation` (R1).

Comes in: records, through the fold of records. Goes out: an id for (pool, key). Invariants: the rows follow from the
live records alone; a retired record's key is free again; where two live records name one key, the one learnt last holds
it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.record import LIVE, Record
from .records import END, Records, digest


def key_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """The row of a live record that has a key."""
    if record.key and record.status in LIVE:
        yield digest(f"{record.pool}\0{record.key}") + record.learned_at.to_bytes(8) + record.id.encode(), b""


class Keys:
    """Reads of the index of exact keys."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def get(self, pool: str, key: str) -> str:
        """The id of the live record that holds this key in this pool, "" if none does."""
        mark = digest(f"{pool}\0{key}")
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("keys"))
            found = cursor.prev() if cursor.set_range(mark + END) else cursor.last()
            return cursor.key()[24:].decode() if found and cursor.key().startswith(mark) else ""
