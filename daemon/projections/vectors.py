"""Vectors: a store by content, and one exact index a pool over the live records.

Comes in: vectors from the worker, and the operations that change which records are live. Goes out: nearest records with
their cosine. Invariants: a vector is stored under the model's id and a keyed hash of the text it stands for, so another
model never meets it (P-14) and the file says nothing about texts; a record without a vector yet is listed, never lost.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import hnswlib
import lmdb
import numpy as np
from numpy.typing import NDArray

from ...protocol.operation import Added, Invalidated, Updated
from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from ..store.environment import Environment
from ..world import World
from .projection import seal, unseal
from .records import Records

Vector = NDArray[np.float32]
FIRST_CAPACITY = 1024


class VectorStore:
    """Vectors on disk as 16-bit floats, content-addressed by (model id, keyed hash of the text)."""

    def __init__(self, folder: Path, model: str, dimension: int, world: World) -> None:
        self.model, self.dimension = model, dimension
        self._environment = Environment(folder, ("meta", "vectors"), durable=False)
        self._vectors, meta = self._environment.db("vectors"), self._environment.db("meta")

        def secret(transaction: lmdb.Transaction) -> bytes:
            found = transaction.get(b"key", db=meta)
            if found is None:
                found = world.token(32)
                transaction.put(b"key", found, db=meta)
            return found

        self._key = self._environment.write(secret)

    def _address(self, text: str) -> bytes:
        return blake2b(f"{self.model}\0{text}".encode(), digest_size=16, key=self._key).digest()

    def put(self, vectors: Iterable[tuple[str, bytes]]) -> None:
        """Store `(text, 384 float32 as bytes)` pairs."""
        rows = [(self._address(text), np.frombuffer(raw, np.float32).astype(np.float16)) for text, raw in vectors]

        def work(transaction: lmdb.Transaction) -> None:
            for address, row in rows:
                transaction.put(address, seal(row.tobytes()), db=self._vectors)

        if rows:
            self._environment.write(work)

    def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors of those texts that have one."""
        found: dict[str, Vector] = {}
        with self._environment.read() as transaction:
            for text in texts:
                if stored := transaction.get(self._address(text), db=self._vectors):
                    found[text] = np.frombuffer(unseal(stored, "a vector"), np.float16).astype(np.float32)
        return found

    def size_bytes(self) -> int:
        """Bytes on disk."""
        return self._environment.size_bytes()

    def close(self) -> None:
        """Bring everything to the disk and close."""
        self._environment.sync()
        self._environment.close()


class ExactIndex:
    """Exact search over the vectors of one pool: ids in, cosines out. Exact is fastest up to some 20,000."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._lock = threading.Lock()
        self._label: dict[str, int] = {}
        self._id: dict[int, str] = {}
        self._next = 0
        self._rows: dict[int, Vector] = {}
        self._index = self._empty(FIRST_CAPACITY)

    def _empty(self, capacity: int) -> hnswlib.BFIndex:
        index = hnswlib.BFIndex("ip", self._dimension)
        index.init_index(capacity)
        index.set_num_threads(1)
        self._capacity = capacity
        return index

    def put(self, id: str, vector: Vector) -> None:
        """Insert or replace the vector of a record."""
        with self._lock:
            self._drop(id)
            if len(self._label) >= self._capacity:
                self._grow()
            label, self._next = self._next, self._next + 1
            self._index.add_items(vector[None, :], np.array([label]))
            self._label[id], self._id[label] = label, id
            self._rows[label] = vector

    def drop(self, id: str) -> None:
        """Take a record out, if it is in."""
        with self._lock:
            self._drop(id)

    def _drop(self, id: str) -> None:
        label = self._label.pop(id, None)
        if label is not None:
            self._index.delete_vector(label)
            del self._id[label], self._rows[label]

    def _grow(self) -> None:
        self._index = self._empty(self._capacity * 2)
        self._index.add_items(np.stack(list(self._rows.values())), np.array(list(self._rows)))

    def nearest(self, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """At most `limit` records by falling cosine, in [-1, 1]."""
        with self._lock:
            count = min(limit, len(self._label))
            if not count:
                return []
            labels, distances = self._index.knn_query(vector[None, :], k=count)
            return [(self._id[int(n)], 1.0 - float(d)) for n, d in zip(labels[0], distances[0], strict=True)]

    def __len__(self) -> int:
        return len(self._label)


class Vectors:
    """The projection: one index a pool over live records, in memory, filled from the store when the daemon starts."""

    name = "vectors"

    def __init__(self, store: VectorStore, records: Records, applied_seq: int) -> None:
        self.store = store
        self._records = records
        self._pools: dict[str, ExactIndex] = {}
        self._missing: dict[str, str] = {}
        self._applied = applied_seq
        self._show(records.everything())

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in."""
        return self._applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Move the records these operations touched in or out of their pool's index."""
        touched: set[str] = set()
        for entry in entries:
            match entry.operation:
                case Added() | Updated():
                    touched.add(entry.operation.record.id)
                    touched.update(retirement.id for retirement in entry.operation.retires)
                case Invalidated():
                    touched.add(entry.operation.id)
                case _:
                    pass
        self._show(self._records.many(touched).values())
        if entries:
            self._applied = entries[-1].seq

    def _show(self, records: Iterable[Record]) -> None:
        for group in _groups(records, 1000):
            found = self.store.get([record.description for record in group])
            for record in group:
                self._hide(record)
                if record.status not in LIVE:
                    continue
                vector = found.get(record.description)
                if vector is None:
                    self._missing[record.id] = record.description
                else:
                    self._index(record.pool).put(record.id, vector)

    def _hide(self, record: Record) -> None:
        self._missing.pop(record.id, None)
        for index in list(self._pools.values()):
            index.drop(record.id)

    def _index(self, pool: str) -> ExactIndex:
        if pool not in self._pools:
            self._pools[pool] = ExactIndex(self.store.dimension)
        return self._pools[pool]

    def nearest(self, vector: Vector, pools: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """At most `limit` live records of these pools by falling cosine."""
        found = [pair for pool in pools if (index := self._pools.get(pool)) for pair in index.nearest(vector, limit)]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def missing(self, limit: int) -> list[tuple[str, str]]:
        """At most `limit` live records that have no vector of this model yet: `(id, text)`."""
        return list(self._missing.items())[:limit]

    def fill(self, vectors: Sequence[tuple[str, str, bytes]]) -> None:
        """Vectors for records that had none: `(id, text, 384 float32 as bytes)`."""
        self.store.put((text, raw) for _, text, raw in vectors)
        self._show(self._records.many(id for id, _, _ in vectors).values())


def _groups(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    group: list[Record] = []
    for record in records:
        group.append(record)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
