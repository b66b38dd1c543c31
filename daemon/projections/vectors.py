"""The vectors of live records, one index per pool, in memory.

Invariants: only vectors of the model in use are compared (P-14); a record without a vector is listed as missing; a
graph on the disk is deleted when something is forgotten, and built again later.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from ..storage.checksummed_rows import rows_with, unseal
from .lines import MARK
from .ports import VectorIndex
from .projection import check_order
from .record_reducer import touched
from .records import Records, digest
from .vector_index import FIRST_CAPACITY, GRAPH_ABOVE, ExactIndex, GraphIndex, NeighbourGraph, has_graphs, read
from .vector_store import Vector, VectorStore

T = TypeVar("T")
SLICE = 5000


def shelved_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """Return the row of an archived record: the digest of its embedded text (T7)."""
    if record.status == "archived":
        yield digest(record.pool) + record.id.encode(), digest(record.description)


def embedded(records: Records, pool: str, table: str = "lines") -> list[tuple[str, bytes]]:
    """Return the live records of a pool, or its `shelved` ones, each with the digest of its embedded text."""
    with records.environment.read() as transaction:
        return [
            (key[16:].decode(), unseal(key, stored, "the place of a vector")[:MARK])
            for key, stored in rows_with(transaction, records.environment.db(table), digest(pool))
        ]


def lacking(store: VectorStore, records: Records) -> tuple[list[str], int]:
    """Return the live records without a vector in this store, and the number of all live records."""
    ids: list[str] = []
    total = 0
    for pool in records.tally():
        for rows in _slices(embedded(records, pool), SLICE):
            having = set(store.get([mark for _, mark in rows])[0])
            ids += [id for number, (id, _) in enumerate(rows) if number not in having]
            total += len(rows)
    return ids, total


def put_standing(store: VectorStore, records: Records, vectors: Sequence[tuple[str, str, bytes]]) -> None:
    """Store `(id, text, vector)` if the record still has that text, so never a forgotten one (T10).

    Called by the write thread, which also forgets.
    """
    standing = {id: record.description for id, record in records.many(id for id, _, _ in vectors).items()}
    store.put((text, raw) for id, text, raw in vectors if standing.get(id) == text)


class VectorIndexes:
    """The projection: one index per pool over live records, filled from the store."""

    name = "vectors"

    def __init__(
        self,
        store: VectorStore,
        records: Records,
        applied_seq: int,
        graphs: Path | None = None,
        *,
        later: bool = False,
        graph_above: int = GRAPH_ABOVE,
    ) -> None:
        """`graphs`: the folder of graphs; without it every index is exact. `later`: `load` or the first read fills it,
        in half a second for 100,000 vectors."""
        self.store = store
        self._records, self._graphs, self._graph_above = records, graphs, graph_above
        self._applied, self._filled, self._filling = applied_seq, False, threading.Lock()
        self.swept = 0
        """How often the graphs were deleted."""
        if not later:
            self.load()

    def load(self) -> None:
        """Fill it, unless it is filled. Operations committed meanwhile are applied afterwards, perhaps twice."""
        if not self._filled:
            with self._filling:
                if not self._filled:
                    self.reset(self._applied)

    def reset(self, applied_seq: int) -> None:
        """Fill everything from the store and the tables, which are at `applied_seq`."""
        pools: dict[str, VectorIndex] = {}
        pool_of: dict[str, str] = {}
        missing: dict[str, None] = {}
        for pool in self._records.tally():
            live = embedded(self._records, pool)
            graph = read(self.place(pool), self.store.model) if self._graphs and len(live) > self._graph_above else None
            index, held, without = self._made(live, graph)
            for id in pool_of.keys() & held:  # it moved during the read
                pools[pool_of[id]].drop(id)
            pool_of.update(dict.fromkeys(held, pool))
            missing.update(dict.fromkeys(id for id in without if id not in pool_of))
            if len(index):
                pools[pool] = index
        self._pools, self._pool_of, self._missing, self._applied = pools, pool_of, missing, applied_seq
        self._filled = True

    def _made(
        self, live: Sequence[tuple[str, bytes]], graph: NeighbourGraph | None
    ) -> tuple[VectorIndex, set[str], Sequence[str]]:
        """Return an index over live records of a pool, the ids in it, and those without a vector."""
        if graph is None:
            index = ExactIndex(self.store.dimension, max(FIRST_CAPACITY, len(live) * 5 // 4))
        else:
            index = GraphIndex(graph, dict(live))
        held, without = {id for id, _ in live if index.holds(id)}, list[str]()
        for rows in _slices([row for row in live if row[0] not in held], SLICE):
            places, vectors = self.store.get([mark for _, mark in rows])
            index.put(ids := [rows[number][0] for number in places], vectors)
            held.update(ids)
            if len(ids) < len(rows):
                without += [id for id, _ in rows if id not in held]
        return index, held, without

    # --- graphs ------------------------------------------------------------------------------------------------------
    def place(self, pool: str) -> Path:
        """Return the folder of a pool's graph."""
        assert self._graphs is not None
        return self._graphs / digest(f"{self.store.model} {pool}").hex()

    def outgrown(self) -> str | None:
        """Return a pool for which a new graph would be faster, or None; always None without hnswlib."""
        if self._graphs is None or not self._filled:
            return None
        large = [(pool, index) for pool, index in list(self._pools.items()) if len(index) > self._graph_above]
        return next((pool for pool, index in large if index.is_outgrown and has_graphs()), None)

    def take_graph(self, pool: str, graph: NeighbourGraph) -> None:
        """Search a pool through this graph from now on. Called by the write thread."""
        self._pools[pool], _, _ = self._made(embedded(self._records, pool), graph)

    def sweep(self) -> None:
        """Delete the graphs on the disk, which have vectors of forgotten records (T10)."""
        self.swept += 1
        if self._graphs is not None:
            shutil.rmtree(self._graphs, ignore_errors=True)

    def adopt(self, fresh: VectorIndexes) -> None:
        """Take over the content of `fresh`, unless the model changed meanwhile. Called by the write thread."""
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

    def _index(self, pool: str) -> VectorIndex:
        if pool not in self._pools:
            self._pools[pool] = ExactIndex(self.store.dimension)
        return self._pools[pool]

    def nearest(self, vector: Vector, pools: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """Return at most `limit` live records of these pools by falling cosine."""
        self.load()
        pairs = [pair for pool in pools if (index := self._pools.get(pool)) for pair in index.nearest(vector, limit)]
        return sorted(pairs, key=lambda pair: -pair[1])[:limit] if len(pools) > 1 else pairs

    def cosines(self, vector: Vector, ids: Iterable[str]) -> dict[str, float]:
        """Return the cosines of those of these records that have a vector."""
        self.load()
        by_pool: dict[str, list[str]] = {}
        for id in ids:
            if pool := self._pool_of.get(id):
                by_pool.setdefault(pool, []).append(id)
        indexes = [(index, of_pool) for pool, of_pool in by_pool.items() if (index := self._pools.get(pool))]
        cosines: dict[str, float] = {}
        for index, of_pool in indexes:
            cosines |= index.cosines(vector, of_pool, self.store.get)
        return cosines

    def nearest_shelved(self, vector: Vector, pools: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """Return the nearest archived records, read from the disk: 6 µs each."""
        pairs: list[tuple[str, float]] = []
        for pool in pools:
            for rows in _slices(embedded(self._records, pool, "shelved"), SLICE):
                places, vectors = self.store.get([mark for _, mark in rows])
                cosines = vectors.astype(np.float32) @ vector
                best = np.argsort(-cosines, kind="stable")[:limit].tolist()
                pairs += [(rows[places[n]][0], float(cosines[n])) for n in best]
        return sorted(pairs, key=lambda pair: -pair[1])[:limit]

    def holds(self, id: str) -> bool:
        """Whether a record's vector is in an index."""
        self.load()
        return id in self._pool_of

    def lost(self, more_than: int) -> bool:
        """Whether there are more live records than that, and none of the first ones has a vector; needs no `load`."""
        with self._records.environment.read() as transaction:
            rows = list(islice(rows_with(transaction, self._records.environment.db("lines"), b""), more_than + 1))
        marks = [unseal(*row, "the place of a vector")[:MARK] for row in rows]
        return len(marks) > more_than and not self.store.get(marks)[0]

    def missing(self, limit: int) -> list[tuple[str, str]]:
        """Return at most `limit` live records without a vector of this model, as `(id, text)`."""
        self.load()
        ids = list(islice(list(self._missing), limit))
        return [(id, record.description) for id, record in self._records.many(ids).items()]

    @property
    def waiting(self) -> int:
        """The number of live records without a vector; 0 before `load`."""
        return len(self._missing) if self._filled else 0

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of live records in an index, and of all live records."""
        self.load()
        held = len(self._pool_of)
        return held, held + len(self._missing)

    def fill(self, vectors: Sequence[tuple[str, str, bytes]]) -> None:
        """Store and index missing vectors: `(id, text, float32 numbers as bytes)`."""
        self.load()
        put_standing(self.store, self._records, vectors)
        self._show([id for id, _, _ in vectors])


def _slices(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[start : start + size] for start in range(0, len(values), size))
