"""The current records, by id, pool, key and the turns they rest on, with counts by status.

Invariants: a record has one row; the indexes follow from the record alone and change with it in the same transaction:
`recent` (pool, learned_at), `cited` (document, turn), `keys` (pool, key), and those of other modules; `tally` counts by
pool and status, `author_tally` by author of a shared project and status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from heapq import merge
from itertools import islice

import msgspec

from ...protocol.errors import NotFound
from ...protocol.record import LIVE, Record, learning_order
from ...protocol.reply import Logged
from ..storage.checksummed_rows import keys_before, keys_with, rows_with, unseal
from ..storage.lmdb_environment import Environment, Transaction
from .projection import FoldTables, OperationBatch
from .record_reducer import apply

_decoder = msgspec.msgpack.Decoder(Record)
_encoder = msgspec.msgpack.Encoder()

FIRST_SLICE, LARGEST_SLICE = 32, 512
"""Records that a transaction reads of a pool at first, and at most."""

SAME = "\0"
"""Replaces a description or a quote that equals the content in a stored row."""


def no_record(id: str) -> NotFound:
    """Return the same error whether there is no record, it is hidden, or a pass does not cover it."""
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
    """Return a 16-byte key for a text that may be longer than LMDB's keys."""
    return blake2b(text.encode(), digest_size=16).digest()


_TEAM = b"t"

Index = Callable[[Record], Iterable[tuple[bytes, bytes]]]
"""Returns the rows of one table that follow from a record alone."""


def recent_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """Return the row by pool and `learned_at`; its value marks the record of another author."""
    yield digest(record.pool) + record.learned_at.to_bytes(8) + record.id.encode(), _TEAM if record.is_team else b""


def cited_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """Return the rows by the turns that the record rests on."""
    for span in record.provenance.spans:
        yield _turn_key(span.document, span.turn) + record.id.encode(), b""


def _evidence_keys(record: Record | None) -> frozenset[bytes]:
    """Return the keys by the turns that are evidence of a record."""
    evidence = record.provenance.evidence if record else ()
    return frozenset(_turn_key(item.span.document, item.span.turn) + record.id.encode() for item in evidence if record)


def _turn_key(document: str, turn: str) -> bytes:
    return digest(document) + digest(turn)


def key_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """Return the row of a live record that has a key; a retired record's key is free again. A record of another author
    holds none: what a line of theirs says binds no record of this home."""
    if record.key and record.status in LIVE and not record.is_team:
        yield digest(f"{record.pool}\0{record.key}") + record.learned_at.to_bytes(8) + record.id.encode(), b""


def indexed_alike(before: Record, after: Record) -> bool:
    """Whether they differ only in revision, evidence, confidence and review, which no index reads."""
    sources = msgspec.structs.replace(before.provenance, evidence=after.provenance.evidence)
    return after == msgspec.structs.replace(
        before, rev=after.rev, confidence=after.confidence, review=after.review, provenance=sources
    )


class Records(FoldTables):
    """The fold of records and of the indexes that follow from them.

    `ever` keeps permanently in which pools and under which keys a record was: reads of the past start there.
    `supported` has the turns of each record's evidence.
    """

    databases = ("records", "tally", "author_tally", "ever", "supported")
    reads = ()

    def __init__(self, environment: Environment, indexes: Mapping[str, Index]) -> None:
        super().__init__(environment)
        self._indexes = indexes

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        for id in batch.touched(entry):
            before = self.in_batch(batch, id)
            after = apply(before, id, entry)
            if after is not before:
                if not batch.previous:
                    batch.later.append(lambda: self._write(batch))
                batch.previous.setdefault(id, before)
                batch.records[id] = after
                if after and not (before and (before.pool, before.key) == (after.pool, after.key)):
                    rows = batch.rows(self.environment.handles["ever"])
                    for place in _places(after):
                        rows[place] = b""

    def _write(self, batch: OperationBatch) -> None:
        """Write the rows of the records that a group changed, once each."""
        handles = self.environment.handles
        records = batch.rows(handles["records"])
        indexes = [(index, batch.rows(handles[name])) for name, index in self._indexes.items()]
        counts: dict[tuple[str, str], int] = {}
        for id, before in batch.previous.items():
            after = batch.records[id]
            records[id.encode()] = _encode(after) if after else None
            self._write_evidence(batch, before, after)
            if before and after and indexed_alike(before, after):
                continue
            for index, rows in indexes:
                for key, _ in index(before) if before else ():
                    rows[key] = None
                for key, value in index(after) if after else ():
                    rows[key] = value
            for record, by in ((before, -1), (after, 1)):
                if record is not None:
                    place = "tally", f"{record.status}\0{record.pool}"
                    counts[place] = counts.get(place, 0) + by
                    if record.is_team:
                        place = "author_tally", f"{record.provenance.source}\0{record.status}"
                        counts[place] = counts.get(place, 0) + by
        self._add_counts(batch, counts)

    def _write_evidence(self, batch: OperationBatch, before: Record | None, after: Record | None) -> None:
        old, new = _evidence_keys(before), _evidence_keys(after)
        if old != new:
            rows = batch.rows(self.environment.handles["supported"])
            rows.update(dict.fromkeys(old - new))
            rows.update(dict.fromkeys(new - old, b""))

    def _add_counts(self, batch: OperationBatch, counts: Mapping[tuple[str, str], int]) -> None:
        for (name, place), by in counts.items():
            if by:
                table, key = self.environment.handles[name], place.encode()
                count = int.from_bytes(batch.get(key, db=table) or b"") + by
                batch.rows(table)[key] = count.to_bytes(8) if count else None

    def in_batch(self, batch: OperationBatch, id: str) -> Record | None:
        """Return the record as the group leaves it so far."""
        if id in batch.records:
            return batch.records[id]
        row = batch.get(id.encode(), db=self.environment.db("records"))
        return None if row is None else _decode(row)

    def find(self, transaction: Transaction, id: str) -> Record | None:
        """Return a record inside a transaction, or None. Raises JournalCorrupt for a damaged row."""
        key = id.encode()
        stored = transaction.get(key, db=self.environment.db("records"))
        return None if stored is None else _decode(unseal(key, stored, f"record {id}"))

    def get(self, id: str) -> Record | None:
        """Return the record with this id, or None."""
        with self.environment.read() as transaction:
            return self.find(transaction, id) if id else None

    def successor(self, record: Record) -> str:
        """Return the id at the end of the chain of records that replaced this one, "" for none."""
        by, seen = "", {"", record.id}
        while record.superseded_by not in seen and (successor := self.get(record.superseded_by)):
            record, by = successor, successor.id
            seen.add(by)
        return by

    def named(self, id: str, permits: Callable[[Record], bool] | None = None) -> Record:
        """Return the record with this id, or the only one whose id starts so. Raises NotFound, also if it is hidden.

        `permits`: tells whether the reader may see a record; other records do not count as matches. Every request that
        names a record uses this, so that all give the same error.
        """
        prefix = id.strip().lower()
        ids = self.starting(prefix, 2 if permits is None else None) if prefix else []
        matches = islice(
            (record for record in map(self.get, ids) if record and (permits is None or permits(record))), 2
        )
        record, other = next(matches, None), next(matches, None)
        if other is not None:
            raise NotFound(f"several records start with {id!r}", hint="give more characters of the id")
        if record is None or record.status == "hidden":
            raise no_record(id)
        return record

    def many(self, ids: Iterable[str]) -> dict[str, Record]:
        """Return the records that exist among these ids, from one snapshot."""
        with self.environment.read() as transaction:
            return {id: record for id in ids if (record := self.find(transaction, id)) is not None}

    def starting(self, prefix: str, limit: int | None = 2) -> list[str]:
        """Return at most `limit` ids that start with `prefix`, all for None."""
        with self.environment.read() as transaction:
            keys = keys_with(transaction, self._table("records"), prefix.encode())
            return [prefix + key.decode() for key in islice(keys, limit)]

    def recent(self, pool: str, before: tuple[int, str] | None, limit: int) -> list[Record]:
        """Return at most `limit` records of a pool, newest first, learnt before `(learned_at, id)` if given."""
        end = () if before is None else (before[0].to_bytes(8) + before[1].encode(),)
        with self.environment.read() as transaction:
            keys = keys_before(transaction, self._table("recent"), digest(pool), *end)
            records = (self.find(transaction, key[8:].decode()) for key in keys)
            return list(islice(filter(None, records), limit))

    def newest(self, pools: Iterable[str], before: tuple[int, str] | None = None) -> Iterator[Record]:
        """Yield the records of pools, newest first, learnt before `(learned_at, id)` if given, in short
        transactions."""
        return merge(*(self.in_pool(pool, before) for pool in pools), key=learning_order, reverse=True)

    def in_pool(self, pool: str, before: tuple[int, str] | None = None) -> Iterator[Record]:
        """Yield the records of a pool like `newest`."""
        size = FIRST_SLICE
        while group := self.recent(pool, before, size):
            before, size = learning_order(group[-1]), min(2 * size, LARGEST_SLICE)
            yield from group

    def learnt_between(self, pool: str, since: int, until: int) -> list[tuple[int, str]]:
        """Return when memd learnt the records of a pool in a period, in microseconds, and their ids; oldest first."""
        prefix, end = digest(pool), until.to_bytes(8)
        learnt: list[tuple[int, str]] = []
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self._table("recent"))
            if cursor.set_range(prefix + since.to_bytes(8)):
                for key in cursor.iternext(keys=True, values=False):
                    if not key.startswith(prefix) or key[16:24] >= end:
                        break
                    learnt.append((int.from_bytes(key[16:24]), key[24:].decode()))
        return learnt

    def own_in_pool(self, pool: str) -> list[str]:
        """Return the ids of the records of a pool that no other author of a shared project stated, oldest first."""
        with self.environment.read() as transaction:
            rows = list(rows_with(transaction, self._table("recent"), digest(pool)))
        place = len(digest(pool)) + 8
        return [key[place:].decode() for key, stored in rows if unseal(key, stored, "a pool's record") != _TEAM]

    def holding_key(self, pool: str, key: str) -> str:
        """Return the id of the live record that holds a key in a pool, the last learnt one; "" for none."""
        with self.environment.read() as transaction:
            keys = keys_before(transaction, self._table("keys"), digest(f"{pool}\0{key}"))
            return next((place[8:].decode() for place in keys), "")

    def citing(self, document: str, turn: str = "") -> list[str]:
        """Return the ids of the records that rest on a document, or on one turn of it."""
        if turn:
            return [key.decode() for key in self._keys("cited", _turn_key(document, turn))]
        return [key[16:].decode() for key in self._keys("cited", digest(document))]

    def supported(self, document: str, turn: str) -> list[str]:
        """Return the ids of the records that rest on a turn or that it supports as later evidence."""
        ids = (key for table in ("cited", "supported") for key in self._keys(table, _turn_key(document, turn)))
        return list(dict.fromkeys(key.decode() for key in ids))

    def ever(self, pool: str, key: str = "") -> list[str]:
        """Return the ids of the records that ever were in a pool, or ever held a key there."""
        return [place.decode() for place in self._keys("ever", _place(pool, key))]

    def everything(self, *, size: int = 1000) -> Iterator[Record]:
        """Yield all records in order of id, in short transactions."""
        after = b""
        while True:
            with self.environment.read() as transaction:
                cursor = transaction.cursor(self._table("records"))
                rows = list(islice(cursor.iternext(), size)) if cursor.set_range(after + b"\0") else []
            if not rows:
                return
            after = rows[-1][0]
            for key, stored in rows:
                yield _decode(unseal(key, stored, f"record {key.decode()}"))

    def tally(self) -> dict[str, dict[str, int]]:
        """Return the number of records by pool and status."""
        counts: dict[str, dict[str, int]] = {}
        with self.environment.read() as transaction:
            for key, stored in rows_with(transaction, self._table("tally"), b""):
                status, pool = key.decode().split("\0", 1)
                if count := int.from_bytes(unseal(key, stored, "the count of records")):
                    counts.setdefault(pool, {})[status] = count
        return counts

    def live_of(self, document: str) -> int:
        """Return the number of live records that the author of a shared project stated in this document."""
        keys = (f"{document}\0{status}".encode() for status in LIVE)
        rows = (self._value("author_tally", key, "the count of an author's records") for key in keys)
        return sum(int.from_bytes(row or b"") for row in rows)


def _place(pool: str, key: str) -> bytes:
    return digest(f"{pool}\0{key}")


def _places(record: Record) -> Iterable[bytes]:
    yield _place(record.pool, "") + record.id.encode()
    if record.key:
        yield _place(record.pool, record.key) + record.id.encode()
