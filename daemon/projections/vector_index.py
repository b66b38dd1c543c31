"""The nearest vectors of a pool: exact search in a small pool, a graph in a large one (Q2).

Invariants: an index never returns what was dropped; one thread writes, any thread searches; a child process builds a
graph, which is read-only here: later vectors are in an exact index beside it, dropped ones are marked. Graphs need
hnswlib, which is optional; without it every pool is searched exactly.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..world import World
from .vector_store import StoredVectors, Vector, VectorStore

if TYPE_CHECKING:
    import hnswlib

FIRST_CAPACITY = 1024

GRAPH_ABOVE = 10_000
"""Vectors of a pool above which memd uses a graph, if hnswlib is installed. Measured on one thread: exact search takes
0.9 ms there and grows with the pool, the graph hardly (docs/decisions/0007-graphs-are-optional.md)."""

STALE = 0.2
"""Share of dropped or later vectors above which memd builds a new graph."""

LINKS, BUILT_WITH, SEARCHED_WITH = 16, 128, 128
"""M, ef while building and ef while searching (Malkov and Yashunin 2016)."""

SLICE = 2000


@cache
def has_graphs() -> bool:
    """Whether hnswlib is installed, so that large pools get graphs."""
    try:
        import_module("hnswlib")
    except ImportError:
        return False
    return True


class ExactIndex:
    """Exact search over the vectors of one pool. No row is empty: the last one moves to the place of a dropped one."""

    def __init__(self, dimension: int, capacity: int = FIRST_CAPACITY) -> None:
        self._lock = threading.Lock()
        self._slot: dict[str, int] = {}
        self._ids: list[str] = []
        self._rows: NDArray[np.float32] = np.empty((capacity, dimension), np.float32)

    def put(self, ids: Sequence[str], vectors: Vector) -> None:
        """Insert or replace the vectors of these records, one row each."""
        with self._lock:
            self._reserve(len(self._ids) + len(ids))
            self._rows[[self._take(id) for id in ids]] = vectors

    def _reserve(self, count: int) -> None:
        if count > len(self._rows):
            rows = np.empty((max(count, 2 * len(self._rows)), self._rows.shape[1]), np.float32)
            rows[: len(self._ids)] = self._rows[: len(self._ids)]
            self._rows = rows

    def _take(self, id: str) -> int:
        slot = self._slot.setdefault(id, len(self._ids))
        if slot == len(self._ids):
            self._ids.append(id)
        return slot

    def drop(self, id: str) -> None:
        """Remove a record, if it is present."""
        with self._lock:
            slot = self._slot.pop(id, None)
            if slot is None:
                return
            last = self._ids.pop()
            if last != id:
                self._ids[slot], self._slot[last] = last, slot
                self._rows[slot] = self._rows[len(self._ids)]

    def nearest(self, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """Return at most `limit` records by falling cosine, in [-1, 1], equal ones by id."""
        with self._lock:
            count = len(self._ids)
            if not count or limit < 1:
                return []
            cosines = self._rows[:count] @ vector
            least = np.partition(cosines, -limit)[-limit] if limit < count else -np.inf
            near: list[int] = np.flatnonzero(cosines >= least).tolist()
            pairs = [(self._ids[slot], cosines.item(slot)) for slot in near]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def cosines(self, vector: Vector, ids: Sequence[str], stored: StoredVectors) -> dict[str, float]:
        """Return the cosines of those of these records whose vector it has."""
        with self._lock:
            slots = {id: slot for id in ids if (slot := self._slot.get(id)) is not None}
            rows = self._rows[list(slots.values())]
        return dict(zip(slots, (rows @ vector).tolist(), strict=True))

    def holds(self, id: str) -> bool:
        """Whether it has the vector of a record."""
        return id in self._slot

    @property
    def is_outgrown(self) -> bool:
        """Always True; the caller checks the size."""
        return True

    def __len__(self) -> int:
        return len(self._slot)


class Rows(msgspec.Struct, frozen=True, array_like=True):
    """The content of a graph: model, records by slot with the digest of their text, checksum of the graph's file."""

    model: str
    dimension: int
    ids: tuple[str, ...]
    marks: tuple[bytes, ...]
    check: int = 0


_rows = msgspec.msgpack.Decoder(Rows)


class NeighbourGraph(NamedTuple):
    """A loaded graph and its rows."""

    links: hnswlib.Index
    rows: Rows


def save_rows(folder: Path, rows: Rows) -> None:
    """Write the rows of a graph durably."""
    with (folder / "rows").open("wb") as file:
        file.write(msgspec.msgpack.encode(rows))
        file.flush()
        os.fsync(file.fileno())


def build(folder: Path, vectors_folder: Path, world: World) -> int:
    """Build the graph over the rows in `folder` and return their number; takes seconds, so in a child process.

    Raises OSError, RuntimeError if the folder is deleted meanwhile, ImportError without hnswlib.
    """
    import hnswlib

    rows = _rows.decode((folder / "rows").read_bytes())
    store = VectorStore(vectors_folder, rows.model, rows.dimension, world, readonly=True)
    index = hnswlib.Index("ip", rows.dimension)
    index.init_index(max(1, len(rows.ids)), M=LINKS, ef_construction=BUILT_WITH, random_seed=7)
    index.set_num_threads(1)
    held: list[int] = []
    for start in range(0, len(rows.ids), SLICE):
        places, vectors = store.get(rows.marks[start : start + SLICE])
        if len(places):
            index.add_items(vectors, np.arange(len(held), len(held) + len(places)))
            held += [start + place for place in places]
    index.save_index(str(folder / "graph"))
    check = zlib.crc32((folder / "graph").read_bytes())
    with (folder / "graph").open("rb") as file:
        os.fsync(file.fileno())
    ids, marks = tuple(rows.ids[n] for n in held), tuple(rows.marks[n] for n in held)
    save_rows(folder, Rows(rows.model, rows.dimension, ids, marks, check))
    return len(held)


def read(folder: Path, model: str) -> NeighbourGraph | None:
    """Load the graph in `folder`; None unless it is undamaged and of that model, and this hnswlib reads it: a fork of
    the library has a format of its own."""
    try:
        import hnswlib

        rows = _rows.decode((folder / "rows").read_bytes())
        if rows.model != model or rows.check != zlib.crc32((folder / "graph").read_bytes()):
            return None
        index = hnswlib.Index("ip", rows.dimension)
        index.load_index(str(folder / "graph"), max_elements=len(rows.ids))
    except (ImportError, OSError, RuntimeError, msgspec.MsgspecError):
        return None
    index.set_num_threads(1)
    return NeighbourGraph(index, rows)


class GraphIndex:
    """Search through a graph (HNSW) and an exact index of later vectors."""

    def __init__(self, graph: NeighbourGraph, standing: Mapping[str, bytes]) -> None:
        """`standing`: the live records of the pool with the digest of their text; the graph's others are dropped."""
        self._lock = threading.Lock()
        self._index, rows = graph
        self._ids, self._marks = rows.ids, rows.marks
        self._slot: dict[str, int] = {}
        self._fresh = ExactIndex(rows.dimension)
        for slot, (id, mark) in enumerate(zip(rows.ids, rows.marks, strict=True)):
            if standing.get(id) == mark:
                self._slot[id] = slot
            else:
                self._index.mark_deleted(slot)

    def holds(self, id: str) -> bool:
        """Whether it has the vector of a record."""
        return id in self._slot or self._fresh.holds(id)

    def put(self, ids: Sequence[str], vectors: Vector) -> None:
        """Insert or replace the vectors of these records, one row each."""
        for id in ids:
            self._drop(id)
        self._fresh.put(ids, vectors)

    def drop(self, id: str) -> None:
        """Remove a record, if it is present."""
        self._drop(id)
        self._fresh.drop(id)

    def _drop(self, id: str) -> None:
        with self._lock:
            slot = self._slot.pop(id, None)
            if slot is not None:
                self._index.mark_deleted(slot)

    def nearest(self, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """Return at most `limit` records by falling cosine, in [-1, 1]; nearly always the nearest."""
        with self._lock:
            pairs = self._search(vector, min(limit, len(self._slot)))
        pairs += self._fresh.nearest(vector, limit)
        return sorted(pairs, key=lambda pair: -pair[1])[:limit]

    def cosines(self, vector: Vector, ids: Sequence[str], stored: StoredVectors) -> dict[str, float]:
        """Return the cosines of those of these records whose vector it has."""
        with self._lock:
            slots = [(id, slot) for id in ids if (slot := self._slot.get(id)) is not None]
        places, rows = stored([self._marks[slot] for _, slot in slots])  # the graph itself gives them as Python's lists
        cosines = (rows @ vector).tolist()
        held = {slots[place][0]: cosine for place, cosine in zip(places, cosines, strict=True)}
        return held | self._fresh.cosines(vector, ids, stored)

    def _search(self, vector: Vector, count: int) -> list[tuple[str, float]]:
        effort = max(SEARCHED_WITH, count)
        while count:
            self._index.set_ef(effort)
            try:
                labels, distances = self._index.knn_query(vector[None, :], k=count)
            except RuntimeError:  # too many are dropped, so it finds fewer
                if effort > 2 * len(self._ids):
                    return []
                effort *= 4
                continue
            slots: list[int] = labels[0].tolist()
            cosines: list[float] = (1.0 - distances[0]).tolist()
            return [(self._ids[slot], cosine) for slot, cosine in zip(slots, cosines, strict=True)]
        return []

    @property
    def is_outgrown(self) -> bool:
        """Whether a new graph would be faster."""
        size = len(self._ids)
        return len(self._fresh) > STALE * size or size - len(self._slot) > STALE * size

    def __len__(self) -> int:
        return len(self._slot) + len(self._fresh)
