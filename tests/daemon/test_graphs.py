"""A graph beside the exact index finds the same, follows changes, and goes with what is forgotten (Q2, U10)."""

import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hnswlib
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.projections.records import digest
from memd.daemon.projections.vector_index import (
    ExactIndex,
    GraphIndex,
    NeighbourGraph,
    Rows,
    build,
    has_graphs,
    read,
    save_rows,
)
from memd.daemon.projections.vector_store import VectorStore
from memd.daemon.projections.vectors import VectorIndexes
from memd.daemon.services.maintenance.vector_graphs import VectorGraphBuilder
from memd.daemon.services.maintenance_process import MaintenanceProcess
from memd.daemon.world import real_world
from memd.protocol.fading import Archived, Restored
from memd.protocol.operation import Invalidated
from tests.conftest import EXAMPLES
from tests.daemon.living import Running, added

DIMENSION, MANY = 384, 500


def rows(count: int, dimension: int = DIMENSION) -> Any:
    found = np.random.default_rng(5).standard_normal((count, dimension)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def text(number: int) -> str:
    return f"The fact number {number} is a long one."


@pytest.fixture(scope="module")
def graph_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph over 300 vectors of 16 numbers, one text of them without a vector."""
    folder = tmp_path_factory.mktemp("graph")
    store = VectorStore(folder / "vectors", "m", 16, real_world())
    store.put((text(n), row.tobytes()) for n, row in enumerate(rows(300, 16)))
    store.close()
    ids = tuple(f"id{n}" for n in range(301))
    save_rows(folder, Rows("m", 16, ids, tuple(digest(text(n)) for n in range(301))))
    assert build(folder, folder / "vectors", real_world()) == 300
    return folder


def opened(folder: Path) -> NeighbourGraph:
    graph = read(folder, "m")
    assert graph is not None
    return graph


def test_a_graph_finds_what_the_exact_index_finds_Q2(graph_folder: Path) -> None:
    standing = {f"id{n}": digest(text(n)) for n in range(300)}
    graph, exact = GraphIndex(opened(graph_folder), standing), ExactIndex(16)
    store = VectorStore(graph_folder / "vectors", "m", 16, real_world())
    exact.put(list(standing), store.get(list(standing.values()))[1])
    store.close()
    for probe in rows(340, 16)[300:]:
        near, truth = graph.nearest(probe, 10), exact.nearest(probe, 10)
        assert len({id for id, _ in near} & {id for id, _ in truth}) >= 9
        assert near[0][1] == pytest.approx(truth[0][1], abs=1e-5)


def test_a_graph_of_another_model_or_with_a_flipped_bit_is_none_P14(graph_folder: Path, tmp_path: Path) -> None:
    assert read(graph_folder, "other") is None and read(tmp_path, "m") is None
    for name in ("rows", "graph"):
        (tmp_path / name).write_bytes((graph_folder / name).read_bytes())
    damaged = bytearray((tmp_path / "graph").read_bytes())
    damaged[1000] ^= 1
    (tmp_path / "graph").write_bytes(damaged)
    assert read(tmp_path, "m") is None


def test_a_graph_in_a_format_that_this_hnswlib_does_not_read_is_none_U10(graph_folder: Path, tmp_path: Path) -> None:
    rows = msgspec.msgpack.decode((graph_folder / "rows").read_bytes(), type=Rows)
    foreign = (graph_folder / "graph").read_bytes() + bytes(4 * len(rows.ids))
    (tmp_path / "graph").write_bytes(foreign)
    save_rows(tmp_path, msgspec.structs.replace(rows, check=zlib.crc32(foreign)))
    assert read(tmp_path, "m") is None


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["put", "put", "drop"]), st.integers(0, 60)), max_size=120), st.data())
def test_exact_search_gives_what_hnswlib_gives_for_the_same_rows_Q2(
    steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    vectors, index, alive = rows(61, 16), ExactIndex(16, capacity=2), set[int]()
    for step, number in steps:
        if step == "put":
            index.put([f"id{number}"], vectors[number : number + 1])
            alive.add(number)
        else:
            index.drop(f"id{number}")
            alive.discard(number)
    assert len(index) == len(alive) and all(index.holds(f"id{number}") == (number in alive) for number in range(61))
    probe, limit = rows(80, 16)[data.draw(st.integers(0, 79))], data.draw(st.integers(1, 70))
    found = index.nearest(probe, limit)
    if not alive:
        assert found == []
        return
    judge, numbers = hnswlib.BFIndex("ip", 16), sorted(alive)
    judge.init_index(len(alive))
    judge.add_items(vectors[numbers], numbers)
    labels, distances = judge.knn_query(probe[None, :], k=min(limit, len(alive)))
    assert [id for id, _ in found] == [f"id{label}" for label in labels[0]]
    assert [cosine for _, cosine in found] == pytest.approx((1 - distances[0]).tolist(), abs=1e-6)
    assert index.cosines(probe, [id for id, _ in found], lambda marks: ((), vectors[:0])) == pytest.approx(
        dict(found), abs=1e-6
    )


def test_equal_vectors_come_in_the_order_of_their_ids_wherever_they_lie_Q2() -> None:
    index, row = ExactIndex(16, capacity=2), rows(2, 16)
    index.put([f"id{n}" for n in (7, 3, 9, 1, 5)], np.repeat(row[:1], 5, axis=0))
    index.put(["other"], row[1:])
    index.drop("id7")
    assert [id for id, _ in index.nearest(row[0], 2)] == ["id1", "id3"]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_what_is_dropped_is_never_found_and_what_is_put_always_Q2(graph_folder: Path, data: st.DataObject) -> None:
    known = {f"id{n}": n for n in range(300)}
    gone = data.draw(st.sets(st.integers(0, 299), max_size=290))
    index = GraphIndex(opened(graph_folder), {id: digest(text(n)) for id, n in known.items() if n not in gone})
    alive = {id for id, n in known.items() if n not in gone}
    vectors = rows(320, 16)
    steps = st.tuples(st.booleans(), st.integers(0, 319))
    for puts, number in data.draw(st.lists(steps, max_size=30)):
        if puts:
            index.put([f"id{number}"], vectors[number : number + 1])
            alive.add(f"id{number}")
        else:
            index.drop(f"id{number}")
            alive.discard(f"id{number}")
    assert len(index) == len(alive)
    found = [id for id, _ in index.nearest(vectors[0], 400)]
    assert len(found) == len(set(found)) and set(found) <= alive
    put = [id for id in alive if id not in known]
    assert set(put) <= set(found), "what waits beside the graph is searched exactly"
    assert all(index.holds(id) for id in alive)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path / "data")
    found.stores.vector_store.put((text(n), row.tobytes()) for n, row in enumerate(rows(MANY + 1)))
    found.stores.commit([added(n) for n in range(MANY)])
    yield found
    found.close()


def searched(running: Running) -> VectorIndexes:
    """Its vectors, through graphs from 300 on."""
    stores = running.stores
    vectors = VectorIndexes(stores.vector_store, stores.records, stores.journal.last, stores.graphs, graph_above=300)
    stores.search_in(vectors)
    return vectors


def made(running: Running) -> None:
    graphing = VectorGraphBuilder(running.stores, running.writer, MaintenanceProcess())
    graphing.tick()
    graphing.tick()
    assert graphing._thread is not None
    graphing._thread.join(60)


def test_a_pool_that_outgrew_the_exact_index_is_searched_through_a_graph_Q2(running: Running) -> None:
    vectors, probes = searched(running), rows(MANY)[:20]
    assert vectors.outgrown() == "personal"
    before = [vectors.nearest(probe, ["personal"], 10) for probe in probes]
    made(running)
    assert vectors.outgrown() is None
    for probe, truth in zip(probes, before, strict=True):
        assert len(set(dict(vectors.nearest(probe, ["personal"], 10))) & set(dict(truth))) >= 9

    retired = Invalidated(id="id3", valid_to="2026-02-01T00:00:00Z", reason="a test")
    running.writer.run(lambda: running.stores.commit([retired, added(MANY)])).result()
    assert "id3" not in dict(vectors.nearest(probes[3], ["personal"], 10))
    assert vectors.nearest(rows(MANY + 1)[MANY], ["personal"], 1)[0][0] == f"id{MANY}"
    again = searched(running)
    assert again.outgrown() is None, "the graph lies on the disk"
    for probe in probes:
        assert dict(again.nearest(probe, ["personal"], 10)) == dict(vectors.nearest(probe, ["personal"], 10))


@pytest.fixture
def without_hnswlib(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A switch: `setitem` hides the library from imports, `undo` shows it again."""
    yield monkeypatch
    has_graphs.cache_clear()


def test_a_home_moves_to_a_machine_without_hnswlib_and_back_U10(
    running: Running, without_hnswlib: pytest.MonkeyPatch
) -> None:
    before, probes = searched(running), rows(MANY)[:20]
    made(running)
    near = [dict(before.nearest(probe, ["personal"], 10)) for probe in probes]

    without_hnswlib.setitem(sys.modules, "hnswlib", None)
    has_graphs.cache_clear()
    exact = searched(running)
    assert exact.outgrown() is None and exact.counts == (MANY, MANY)
    for probe, truth in zip(probes, near, strict=True):
        assert len(set(dict(exact.nearest(probe, ["personal"], 10))) & set(truth)) >= 9
    retired = Invalidated(id="id3", valid_to="2026-02-01T00:00:00Z", reason="a test")
    running.writer.run(lambda: running.stores.commit([retired, added(MANY)])).result()
    assert exact.nearest(rows(MANY + 1)[MANY], ["personal"], 1)[0][0] == f"id{MANY}"

    without_hnswlib.undo()
    has_graphs.cache_clear()
    again = searched(running)
    assert again.outgrown() is None, "the graph lies on the disk"
    assert again.counts == (MANY, MANY)
    assert "id3" not in dict(again.nearest(probes[3], ["personal"], 10))
    assert again.nearest(rows(MANY + 1)[MANY], ["personal"], 1)[0][0] == f"id{MANY}"


def test_without_hnswlib_what_is_forgotten_takes_the_graphs_with_it_T10(
    running: Running, without_hnswlib: pytest.MonkeyPatch
) -> None:
    place = searched(running).place("personal")
    made(running)
    assert (place / "graph").exists()
    without_hnswlib.setitem(sys.modules, "hnswlib", None)
    has_graphs.cache_clear()
    searched(running)
    running.writer.run(running.stores.keep_vectors).result()
    assert not place.exists()


def test_what_is_forgotten_takes_the_graphs_with_it_T10(running: Running) -> None:
    vectors = searched(running)
    made(running)
    place = vectors.place("personal")
    assert (place / "graph").exists()
    running.writer.run(running.stores.keep_vectors).result()
    assert not place.exists()
    assert searched(running).outgrown() == "personal", "it is made again"


def test_a_graph_that_was_begun_before_something_was_forgotten_is_thrown_away_T10(running: Running) -> None:
    vectors = searched(running)
    graphing = VectorGraphBuilder(running.stores, running.writer, MaintenanceProcess())
    graphing.tick()
    running.writer.run(running.stores.keep_vectors).result()
    assert graphing._thread is not None
    graphing._thread.join(60)
    assert not vectors.place("personal").exists() and not list(running.stores.graphs.glob("*"))


def test_what_is_archived_is_found_by_its_sense_in_depth_alone_T7(running: Running) -> None:
    vectors, probe = running.stores.vectors, rows(MANY)[7]
    running.writer.run(lambda: running.stores.commit([Archived(pool="personal", ids=("id7",))])).result()
    assert "id7" not in dict(vectors.nearest(probe, ["personal"], MANY))
    assert vectors.nearest_shelved(probe, ["personal"], 5) == [("id7", pytest.approx(1.0, abs=2e-3))]
    assert vectors.nearest_shelved(probe, ["project/x"], 5) == []
    running.writer.run(lambda: running.stores.commit([Restored(ids=("id7",))])).result()
    assert vectors.nearest_shelved(probe, ["personal"], 5) == []
    assert vectors.nearest(probe, ["personal"], 1)[0][0] == "id7"
