"""Vectors: a store by content, and one exact index a pool over the live records.

Comes in: vectors from the worker, and the operations that change which records are live. Goes out: nearest records with
their cosine. Invariants: a vector is stored under the model's id and a keyed hash of the text it stands for, so another
model never meets it (P-14) and the file says nothing about texts; a record without a vector yet is listed, never lost.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TypeVar

import hnswlib
import lmdb
import numpy as np
from numpy.typing import NDArray

from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from ..store.environment import Environment
from ..store.sealed import CHECK, unseal
from ..world import World
from .belief import touched
from .projection import check_order
from .records import Records, digest

T = TypeVar("T")
Vector = NDArray[np.float32]
Halves = NDArray[np.float16]
"""Vectors as they are stored."""

FIRST_CAPACITY = 1024
SLICE = 5000


class VectorStore:
    """Vectors on disk as 16-bit floats, content-addressed by (model id, keyed hash of the text)."""

    def __init__(self, folder: Path, model: str, dimension: int, world: World) -> None:
        self.model, self.dimension = model, dimension
        self._kept = {model}
        self.environment = Environment(folder, ("meta", "vectors"), durable=True)
        meta = self.environment.db("meta")

        def secret(transaction: lmdb.Transaction) -> bytes:
            found = transaction.get(b"key", db=meta)
            if found is None:
                found = world.token(32)
                transaction.put(b"key", found, db=meta)
            return found

        self._key = self.environment.write(secret)

    def of(self, model: str, dimension: int) -> VectorStore:
        """The vectors of another model, in the same place; `keep` then spares them as well."""
        other = copy(self)
        other.model, other.dimension = model, dimension
        self._kept.add(model)
        return other

    @property
    def _vectors(self) -> lmdb.Database:
        return self.environment.db("vectors")

    def _address(self, mark: bytes, model: str = "") -> bytes:
        return blake2b(mark + (model or self.model).encode(), digest_size=16, key=self._key).digest()

    def put(self, vectors: Iterable[tuple[str, bytes]]) -> None:
        """Store `(text, float32 numbers as bytes)` pairs."""
        rows = [
            (self._address(digest(text)), np.frombuffer(raw, np.float32).astype(np.float16)) for text, raw in vectors
        ]

        def work(transaction: lmdb.Transaction) -> None:
            for address, row in rows:
                transaction.put(address, _sealed(row.tobytes()), db=self._vectors)

        if rows:
            self.environment.write(work)

    def get(self, marks: Sequence[bytes]) -> tuple[Sequence[int], Halves]:
        """Which of these texts, named by their digest, have a vector, and those vectors as rows; a damaged one is none,
        so it is made again."""
        key, model = self._key, self.model.encode()
        addresses = [blake2b(mark + model, digest_size=16, key=key).digest() for mark in marks]  # as `_address`, inline
        with self.environment.read() as transaction:
            found = _sound(transaction.cursor(self._vectors).getmulti(addresses), CHECK + 2 * self.dimension)
        places: Sequence[int] = range(len(addresses))
        if len(found) < len(addresses):
            having = {address for address, _ in found}
            places = [number for number, address in enumerate(addresses) if address in having]
        rows = np.frombuffer(b"".join([sealed for _, sealed in found]), np.uint8)
        return places, rows.reshape(-1, CHECK + 2 * self.dimension)[:, CHECK:].copy().view(np.float16)

    def keep(self, texts: Iterable[str]) -> None:
        """Drop every vector but those of these texts by the models in use since the start (T10)."""
        wanted = {self._address(mark, model) for mark in map(digest, texts) for model in self._kept}

        def work(transaction: lmdb.Transaction) -> None:
            held = [address for address, _ in transaction.cursor(self._vectors).iternext()]
            for address in held:
                if address not in wanted:
                    transaction.delete(address, db=self._vectors)

        self.environment.write(work)

    def size_bytes(self) -> int:
        """Bytes on disk."""
        return self.environment.size_bytes()

    def close(self) -> None:
        """Bring everything to the disk and close."""
        self.environment.sync()
        self.environment.close()


def _sealed(row: bytes) -> bytes:
    """With a checksum of its own alone: a vector whose key changed is merely missing, and made again."""
    return zlib.crc32(row).to_bytes(CHECK) + row


def _sound(found: list[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    """Those rows that have their size and their checksum; many at once: at a start there are a hundred thousand."""
    crc32 = zlib.crc32
    return [row for row in found if len(row[1]) == size and crc32(row[1][CHECK:]).to_bytes(CHECK) == row[1][:CHECK]]


class ExactIndex:
    """Exact search over the vectors of one pool: ids in, cosines out. Exact is fastest up to some 20,000.

    One thread puts and drops. What is dropped stays in the index, unseen, until its place is taken or a quarter of them
    is dead: deleting from it is a use after free, and a label that comes back after that kills the process.
    """

    def __init__(self, dimension: int, capacity: int = FIRST_CAPACITY) -> None:
        self._dimension = dimension
        self._lock = threading.Lock()
        self._slot: dict[str, int] = {}
        self._ids: list[str] = []
        self._free: list[int] = []
        self._dead: set[int] = set()
        self._rows: NDArray[np.float16] = np.zeros((0, dimension), np.float16)
        self._resize(capacity)

    def _resize(self, capacity: int) -> None:
        """An index of that size over the live rows; searches go on against the old one while it is built."""
        rows = np.zeros((capacity, self._dimension), np.float16)
        rows[: len(self._rows)] = self._rows
        index = hnswlib.BFIndex("ip", self._dimension)
        index.init_index(capacity)
        index.set_num_threads(1)
        if self._slot:
            used = np.fromiter(self._slot.values(), np.int64, len(self._slot))
            index.add_items(rows[used].astype(np.float32), used)
        with self._lock:
            self._rows, self._index = rows, index
            self._dead.clear()

    def put(self, ids: Sequence[str], vectors: Vector | Halves) -> None:
        """Insert or replace the vectors of these records, one row each."""
        wanted = len(self._slot) + len(ids)
        if wanted > len(self._rows):
            self._resize(max(wanted, 2 * len(self._rows)))
        with self._lock:
            for id in ids:
                self._drop(id)
            slots = np.fromiter((self._take(id) for id in ids), np.int64, len(ids))
            self._rows[slots] = vectors
            if len(ids):
                self._index.add_items(vectors.astype(np.float32, copy=False), slots)

    def _take(self, id: str) -> int:
        if self._free:
            slot = self._free.pop()
            self._ids[slot] = id
            self._dead.discard(slot)
        else:
            slot = len(self._ids)
            self._ids.append(id)
        self._slot[id] = slot
        return slot

    def drop(self, id: str) -> None:
        """Take a record out, if it is in."""
        with self._lock:
            self._drop(id)
        if len(self._dead) > max(64, len(self._slot) // 4):
            self._resize(len(self._rows))

    def _drop(self, id: str) -> None:
        slot = self._slot.pop(id, None)
        if slot is not None:
            self._free.append(slot)
            self._dead.add(slot)

    def nearest(self, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """At most `limit` records by falling cosine, in [-1, 1]."""
        with self._lock:
            count = min(limit, len(self._slot)) + len(self._dead)
            if count == len(self._dead):
                return []
            labels, distances = self._index.knn_query(vector[None, :], k=count)
            slots: list[int] = labels[0].tolist()
            cosines: list[float] = (1.0 - distances[0]).tolist()
            pairs = zip(slots, cosines, strict=True)
            return [(self._ids[slot], cosine) for slot, cosine in pairs if slot not in self._dead][:limit]

    def __len__(self) -> int:
        return len(self._slot)


def embedded_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """The row of a live record: the digest of the text whose vector stands for it."""
    if record.status in LIVE:
        yield digest(record.pool) + record.id.encode(), digest(record.description)


def embedded(records: Records, pool: str) -> list[tuple[str, bytes]]:
    """The live records of a pool, each with the digest of the text that its vector stands for."""
    mark = digest(pool)
    rows: list[tuple[str, bytes]] = []
    with records.environment.read() as transaction:
        cursor = transaction.cursor(records.environment.db("embedded"))
        if cursor.set_range(mark):
            for key, value in cursor.iternext():
                if not key.startswith(mark):
                    break
                rows.append((key[16:].decode(), unseal(key, value, "the place of a vector")))
    return rows


def lacking(store: VectorStore, records: Records) -> tuple[list[str], int]:
    """The live records that have no vector in this store, and how many live ones there are in all."""
    ids: list[str] = []
    total = 0
    for pool in records.tally():
        for rows in _slices(embedded(records, pool), SLICE):
            having = set(store.get([mark for _, mark in rows])[0])
            ids += [id for number, (id, _) in enumerate(rows) if number not in having]
            total += len(rows)
    return ids, total


def put_standing(store: VectorStore, records: Records, vectors: Sequence[tuple[str, str, bytes]]) -> None:
    """Store `(id, text, vector)` where the record still says that text: a forgotten one does not (T10).

    Called by the writing thread, so that nothing is forgotten in between.
    """
    standing = {id: record.description for id, record in records.many(id for id, _, _ in vectors).items()}
    store.put((text, raw) for id, text, raw in vectors if standing.get(id) == text)


class Vectors:
    """The projection: one index a pool over live records, in memory, filled from the store when the daemon starts."""

    name = "vectors"

    def __init__(self, store: VectorStore, records: Records, applied_seq: int, *, later: bool = False) -> None:
        """`later`: `load` fills it, or whoever first needs it and waits for it; 100,000 vectors take half a second."""
        self.store = store
        self._records = records
        self._applied, self._filled, self._filling = applied_seq, False, threading.Lock()
        if not later:
            self.load()

    def load(self) -> None:
        """Fill it, unless it is filled. What is committed meanwhile is applied after that, once more if need be."""
        if not self._filled:
            with self._filling:
                if not self._filled:
                    self.reset(self._applied)

    def reset(self, applied_seq: int) -> None:
        """Fill everything anew from the tables, which are at `applied_seq`, and the store."""
        pools: dict[str, ExactIndex] = {}
        pool_of: dict[str, str] = {}
        missing: dict[str, None] = {}
        for pool in self._records.tally():
            live = embedded(self._records, pool)
            index = ExactIndex(self.store.dimension, max(FIRST_CAPACITY, len(live) * 5 // 4))
            for rows in _slices(live, SLICE):
                places, vectors = self.store.get([mark for _, mark in rows])
                ids = [rows[number][0] for number in places]
                index.put(ids, vectors)
                for id in pool_of.keys() & set(ids):  # it moved while we read
                    pools[pool_of[id]].drop(id)
                pool_of.update(dict.fromkeys(ids, pool))
                if len(ids) < len(rows):
                    missing.update(dict.fromkeys(id for id, _ in rows if id not in pool_of))
            if len(index):
                pools[pool] = index
        self._pools, self._pool_of, self._missing, self._applied = pools, pool_of, missing, applied_seq
        self._filled = True

    def adopt(self, fresh: Vectors) -> None:
        """Take over what `fresh` holds; called by the writing thread. One of another model came too late."""
        if fresh.store.model != self.store.model:
            return
        self._pools, self._pool_of, self._missing = fresh._pools, fresh._pool_of, fresh._missing
        self._applied, self._filled = fresh._applied, True

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in."""
        return self._applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Move the records these operations touched in or out of their pool's index."""
        self.load()
        check_order(self.name, self._applied, entries)
        self._show(dict.fromkeys(id for entry in entries for id in touched(entry.operation)))
        if entries:
            self._applied = entries[-1].seq

    def _show(self, ids: Iterable[str]) -> None:
        for group in _slices(list(ids), SLICE):
            records = self._records.many(group)
            for id in group:
                self._missing.pop(id, None)
                if pool := self._pool_of.pop(id, ""):
                    self._pools[pool].drop(id)
            live = [record for record in records.values() if record.status in LIVE]
            places, vectors = self.store.get([digest(record.description) for record in live])
            having = set(places)
            for number, record in enumerate(live):
                if number not in having:
                    self._missing[record.id] = None
            for number, vector in zip(places, vectors, strict=True):
                record = live[number]
                self._index(record.pool).put([record.id], vector[None, :])
                self._pool_of[record.id] = record.pool

    def _index(self, pool: str) -> ExactIndex:
        if pool not in self._pools:
            self._pools[pool] = ExactIndex(self.store.dimension)
        return self._pools[pool]

    def nearest(self, vector: Vector, pools: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """At most `limit` live records of these pools by falling cosine."""
        self.load()
        found = [pair for pool in pools if (index := self._pools.get(pool)) for pair in index.nearest(vector, limit)]
        return sorted(found, key=lambda pair: -pair[1])[:limit] if len(pools) > 1 else found

    def holds(self, id: str) -> bool:
        """Whether a record's vector is in an index now."""
        return bool(self.holding((id,)))

    def holding(self, ids: Iterable[str]) -> frozenset[str]:
        """Those of these records whose vector is in an index now."""
        self.load()
        held = self._pool_of
        return frozenset([id for id in ids if id in held])

    def lost(self, more_than: int) -> bool:
        """Whether there are more live records than that, and none of the first so many has a vector; without `load`."""
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("embedded"))
            rows = list(islice(cursor.iternext(), more_than + 1))
        marks = [unseal(*row, "the place of a vector") for row in rows]
        return len(marks) > more_than and not self.store.get(marks)[0]

    def missing(self, limit: int) -> list[tuple[str, str]]:
        """At most `limit` live records that have no vector of this model yet: `(id, text)`."""
        self.load()
        ids = list(islice(list(self._missing), limit))
        return [(id, record.description) for id, record in self._records.many(ids).items()]

    @property
    def waiting(self) -> int:
        """How many live records have no vector yet; 0 while the vectors are not loaded."""
        return len(self._missing) if self._filled else 0

    @property
    def counts(self) -> tuple[int, int]:
        """How many live records are in an index, and how many are to be."""
        self.load()
        held = len(self._pool_of)
        return held, held + len(self._missing)

    def fill(self, vectors: Sequence[tuple[str, str, bytes]]) -> None:
        """Vectors for records that had none: `(id, text, float32 numbers as bytes)`."""
        self.load()
        put_standing(self.store, self._records, vectors)
        self._show([id for id, _, _ in vectors])


def _slices(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[start : start + size] for start in range(0, len(values), size))
