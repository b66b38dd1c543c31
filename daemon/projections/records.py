"""The records as they are now, by id, by pool and by the turns they rest on, with counts by status.

Comes in: `added`, `updated`, `merged`, `invalidated`. Goes out: records. Invariants: a record has one row; the indexes
`recent` (pool, learned_at), `cited` (document, turn) and `tally` (pool, status) follow it in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import lmdb
import msgspec

from ...protocol.operation import Added, Invalidated, Merged, Retirement, Updated
from ...protocol.record import Record
from ...protocol.reply import Logged
from ..store.environment import Environment
from .projection import seal, unseal

_decoder = msgspec.msgpack.Decoder(Record)
_encoder = msgspec.msgpack.Encoder()
END = b"\xff" * 8


def digest(text: str) -> bytes:
    """A 16-byte key of a text that may be longer than LMDB's keys."""
    return blake2b(text.encode(), digest_size=16).digest()


def _recent_key(record: Record) -> bytes:
    return digest(record.pool) + record.learned_at.to_bytes(8) + record.id.encode()


def _cited_keys(record: Record) -> Iterable[bytes]:
    for span in record.provenance.spans:
        yield digest(span.document) + digest(span.turn) + record.id.encode()


class Records:
    """The fold of records and their three indexes; reads open their own snapshot."""

    databases = ("records", "recent", "cited", "tally")

    def __init__(self) -> None:
        self._environment: Environment | None = None

    def attach(self, environment: Environment) -> None:
        """Hand over the opened environment, once."""
        self._environment = environment

    @property
    def environment(self) -> Environment:
        """The shared environment."""
        assert self._environment is not None
        return self._environment

    def apply(self, transaction: lmdb.Transaction, entry: Logged) -> None:
        """Fold one operation in."""
        match entry.operation:
            case Added() | Updated():
                record = entry.operation.record
                for retirement in entry.operation.retires:
                    self._retire(transaction, retirement, entry.at, record.id)
                self._put(transaction, self.stamped(record, entry.at, self.find(transaction, record.id)))
            case Merged():
                if (record := self.find(transaction, entry.operation.id)) is not None:
                    evidence = (*record.provenance.evidence, entry.operation.evidence)
                    provenance = msgspec.structs.replace(record.provenance, evidence=evidence)
                    self._put(transaction, msgspec.structs.replace(record, provenance=provenance, rev=record.rev + 1))
            case Invalidated():
                o = entry.operation
                self._retire(transaction, Retirement(o.id, o.valid_to, o.reason), entry.at, o.by)
            case _:
                pass

    @staticmethod
    def stamped(record: Record, at: int, before: Record | None) -> Record:
        """`record` with its system times: learnt when first added, retired now if it arrives retired."""
        learned_at = before.learned_at if before else at
        retired_at = at if record.status == "retired" else 0
        return msgspec.structs.replace(record, learned_at=learned_at, retired_at=retired_at)

    def _retire(self, transaction: lmdb.Transaction, retirement: Retirement, at: int, by: str) -> None:
        record = self.find(transaction, retirement.id)
        if record is None or record.status == "retired":
            return
        changed = msgspec.structs.replace(
            record, status="retired", valid_to=retirement.valid_to, retired_at=at, superseded_by=by, rev=record.rev + 1
        )
        self._put(transaction, changed)

    def _put(self, transaction: lmdb.Transaction, record: Record) -> None:
        before = self.find(transaction, record.id)
        if before is not None:
            transaction.delete(_recent_key(before), db=self.environment.db("recent"))
            for key in _cited_keys(before):
                transaction.delete(key, db=self.environment.db("cited"))
            self._count(transaction, before, -1)
        transaction.put(record.id.encode(), seal(_encoder.encode(record)), db=self.environment.db("records"))
        transaction.put(_recent_key(record), b"", db=self.environment.db("recent"))
        for key in _cited_keys(record):
            transaction.put(key, b"", db=self.environment.db("cited"))
        self._count(transaction, record, 1)

    def _count(self, transaction: lmdb.Transaction, record: Record, by: int) -> None:
        key = f"{record.status}\0{record.pool}".encode()
        found = transaction.get(key, db=self.environment.db("tally"))
        count = (int.from_bytes(found) if found else 0) + by
        transaction.put(key, count.to_bytes(8), db=self.environment.db("tally"))

    def find(self, transaction: lmdb.Transaction, id: str) -> Record | None:
        """The record with this id inside a transaction, or None. Raises JournalCorrupt for a damaged row."""
        stored = transaction.get(id.encode(), db=self.environment.db("records"))
        return None if stored is None else _decoder.decode(unseal(stored, f"record {id}"))

    def get(self, id: str) -> Record | None:
        """The record with this id, or None."""
        with self.environment.read() as transaction:
            return self.find(transaction, id)

    def many(self, ids: Iterable[str]) -> dict[str, Record]:
        """The records with these ids, from one snapshot; unknown ids are left out."""
        with self.environment.read() as transaction:
            return {id: record for id in ids if (record := self.find(transaction, id)) is not None}

    def starting(self, prefix: str, limit: int = 2) -> list[str]:
        """At most `limit` ids that start with `prefix`."""
        ids: list[str] = []
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self.environment.db("records"))
            found = cursor.set_range(prefix.encode())
            while found and len(ids) < limit and cursor.key().startswith(prefix.encode()):
                ids.append(cursor.key().decode())
                found = cursor.next()
        return ids

    def recent(self, pool: str, before: tuple[int, str] | None, limit: int) -> list[Record]:
        """At most `limit` records of a pool, newest first, learnt before `(learned_at, id)` if given."""
        mark = digest(pool)
        start = mark + (END if before is None else before[0].to_bytes(8) + before[1].encode())
        records: list[Record] = []
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self.environment.db("recent"))
            found = cursor.prev() if cursor.set_range(start) else cursor.last()
            while found and len(records) < limit and cursor.key().startswith(mark):
                record = self.find(transaction, cursor.key()[24:].decode())
                if record is not None:
                    records.append(record)
                found = cursor.prev()
        return records

    def citing(self, document: str, turn: str = "") -> list[str]:
        """Ids of the records that rest on a document, or on one turn of it."""
        prefix = digest(document) + (digest(turn) if turn else b"")
        ids: list[str] = []
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self.environment.db("cited"))
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                ids.append(cursor.key()[32:].decode())
                found = cursor.next()
        return ids

    def everything(self, *, size: int = 1000) -> Iterator[Record]:
        """All records in order of id, in short transactions."""
        after = b""
        while True:
            with self.environment.read() as transaction:
                cursor = transaction.cursor(self.environment.db("records"))
                found = cursor.set_range(after + b"\0") if after else cursor.first()
                group: list[Record] = []
                while found and len(group) < size:
                    after = cursor.key()
                    group.append(_decoder.decode(unseal(cursor.value(), f"record {after.decode()}")))
                    found = cursor.next()
            if not group:
                return
            yield from group

    def tally(self) -> dict[str, dict[str, int]]:
        """Number of records by pool and status."""
        counts: dict[str, dict[str, int]] = {}
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self.environment.db("tally"))
            found = cursor.first()
            while found:
                status, pool = cursor.key().decode().split("\0", 1)
                if count := int.from_bytes(cursor.value()):
                    counts.setdefault(pool, {})[status] = count
                found = cursor.next()
        return counts
