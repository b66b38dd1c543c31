"""The records as they are now, by id, by pool and by the turns they rest on, with counts by status.

Comes in: every operation that touches a record. Goes out: records. Invariants: a record has one row; the indexes follow
from the record alone and change with it in the same transaction: `recent` (pool, learned_at), `cited` (document, turn),
and those that other modules name; `tally` counts by pool and status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b

import lmdb
import msgspec

from ...protocol.errors import NotFound
from ...protocol.record import Record
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from ..storage.lmdb_environment import Environment
from .projection import OperationBatch
from .record_reducer import apply

_decoder = msgspec.msgpack.Decoder(Record)
_encoder = msgspec.msgpack.Encoder()
END = b"\xff" * 8

SAME = "\0"
"""What stands in a row in the place of a description or a quote that is the content word for word."""


def no_record(id: str) -> NotFound:
    """The same words whether there is none, it was taken back, or a pass does not reach it."""
    return NotFound(
        f"no record {id!r}", hint="`memd list` shows ids; `memd redo` brings back records that `memd undo` hid"
    )


def _encode(record: Record) -> bytes:
    content, provenance = record.content, record.provenance
    if provenance.quote == content:
        provenance = msgspec.structs.replace(provenance, quote=SAME)
    description = SAME if record.description == content else record.description
    return _encoder.encode(msgspec.structs.replace(record, description=description, provenance=provenance))


def _decode(row: bytes) -> Record:
    record = _decoder.decode(row)
    if record.description == SAME:
        msgspec.structs.force_setattr(record, "description", record.content)
    if record.provenance.quote == SAME:
        msgspec.structs.force_setattr(record.provenance, "quote", record.content)
    return record


@lru_cache(4096)
def digest(text: str) -> bytes:
    """A 16-byte key of a text that may be longer than LMDB's keys."""
    return blake2b(text.encode(), digest_size=16).digest()


Index = Callable[[Record], Iterable[tuple[bytes, bytes]]]
"""The rows of one table that follow from a record alone."""


def recent_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """By pool and the time it was learnt."""
    yield digest(record.pool) + record.learned_at.to_bytes(8) + record.id.encode(), b""


def cited_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """By the turns it rests on."""
    for span in record.provenance.spans:
        yield digest(span.document) + digest(span.turn) + record.id.encode(), b""


def indexed_alike(before: Record, after: Record) -> bool:
    """Whether they differ in revision, evidence, confidence and review alone, which no index looks at."""
    sources = msgspec.structs.replace(before.provenance, evidence=after.provenance.evidence)
    return after == msgspec.structs.replace(
        before, rev=after.rev, confidence=after.confidence, review=after.review, provenance=sources
    )


class Records:
    """The fold of records and of the indexes that follow from them; reads open their own snapshot.

    `ever` keeps for good in which pools and under which keys a record ever was: reads of the past start there.
    """

    reads = ()

    def __init__(self, indexes: Mapping[str, Index]) -> None:
        self._indexes = indexes
        self.databases = ("records", "tally", "ever", *self._indexes)
        self._environment: Environment | None = None

    def attach(self, environment: Environment) -> None:
        """Hand over the opened environment, once."""
        self._environment = environment

    @property
    def environment(self) -> Environment:
        """The shared environment."""
        assert self._environment is not None
        return self._environment

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        for id in batch.touched(entry):
            before = self.standing(batch, id)
            after = apply(before, id, entry)
            if after is not before:
                if not batch.found:
                    batch.later.append(lambda: self._write(batch))
                batch.found.setdefault(id, before)
                batch.records[id] = after
                if after and not (before and (before.pool, before.key) == (after.pool, after.key)):
                    rows = batch.rows(self.environment.handles["ever"])
                    for place in _places(after):
                        rows[place] = b""

    def _write(self, batch: OperationBatch) -> None:
        """The rows of what a group changed, from what it found to what it leaves: each record's once."""
        handles = self.environment.handles
        records = batch.rows(handles["records"])
        indexes = [(index, batch.rows(handles[name])) for name, index in self._indexes.items()]
        counts: dict[tuple[str, str], int] = {}
        for id, before in batch.found.items():
            after = batch.records[id]
            records[id.encode()] = _encode(after) if after else None
            if before and after and indexed_alike(before, after):
                continue
            for index, rows in indexes:
                for key, _ in index(before) if before else ():
                    rows[key] = None
                for key, value in index(after) if after else ():
                    rows[key] = value
            for record, by in ((before, -1), (after, 1)):
                if record is not None:
                    place = record.status, record.pool
                    counts[place] = counts.get(place, 0) + by
        self._count(batch, counts)

    def _count(self, batch: OperationBatch, counts: Mapping[tuple[str, str], int]) -> None:
        """So many more records of each status and pool."""
        table = self.environment.handles["tally"]
        for (status, pool), by in counts.items():
            if by:
                key = f"{status}\0{pool}".encode()
                count = int.from_bytes(batch.get(key, db=table) or b"") + by
                batch.rows(table)[key] = count.to_bytes(8) if count else None

    def standing(self, batch: OperationBatch, id: str) -> Record | None:
        """The record as the group leaves it so far."""
        if id in batch.records:
            return batch.records[id]
        found = batch.get(id.encode(), db=self.environment.db("records"))
        return None if found is None else _decode(found)

    def find(self, transaction: lmdb.Transaction, id: str) -> Record | None:
        """The record with this id inside a transaction, or None. Raises JournalCorrupt for a damaged row."""
        key = id.encode()
        stored = transaction.get(key, db=self.environment.db("records"))
        return None if stored is None else _decode(unseal(key, stored, f"record {id}"))

    def get(self, id: str) -> Record | None:
        """The record with this id, or None."""
        with self.environment.read() as transaction:
            return self.find(transaction, id) if id else None

    def successor(self, record: Record) -> str:
        """The end of the chain of records that replaced this one, "" for none: what replaced it may be replaced too."""
        by, seen = "", {"", record.id}
        while record.superseded_by not in seen and (found := self.get(record.superseded_by)):
            record, by = found, found.id
            seen.add(by)
        return by

    def named(self, id: str) -> Record:
        """The record with this id, or the only one whose id begins so. Raises NotFound, also for one that is hidden.

        Every request that names a record finds it here, so that each says in the same words why it found none.
        """
        prefix = id.strip().lower()
        ids = self.starting(prefix) if prefix else []
        if len(ids) > 1:
            raise NotFound(f"several records start with {id!r}", hint="give more characters of the id")
        record = self.get(ids[0]) if ids else None
        if record is None or record.status == "hidden":
            raise no_record(id)
        return record

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

    def ever(self, pool: str, key: str = "") -> list[str]:
        """Ids of the records that ever lay in a pool, or ever held a key there."""
        mark = _place(pool, key)
        ids: list[str] = []
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self.environment.db("ever"))
            found = cursor.set_range(mark)
            while found and cursor.key().startswith(mark):
                ids.append(cursor.key()[16:].decode())
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
                    group.append(_decode(unseal(after, cursor.value(), f"record {after.decode()}")))
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
                key, stored = cursor.item()
                status, pool = key.decode().split("\0", 1)
                if count := int.from_bytes(unseal(key, stored, "the count of records")):
                    counts.setdefault(pool, {})[status] = count
                found = cursor.next()
        return counts


def _place(pool: str, key: str) -> bytes:
    return digest(f"{pool}\0{key}")


def _places(record: Record) -> Iterable[bytes]:
    yield _place(record.pool, "") + record.id.encode()
    if record.key:
        yield _place(record.pool, record.key) + record.id.encode()
