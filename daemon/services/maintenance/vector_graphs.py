"""Builds vector graphs of large pools in the maintenance child and swaps them in on the write thread.

At most one is built at a time; a graph from before a deletion is thrown away.
"""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path

from ....protocol.errors import MemdError
from ...projections.stores import Stores
from ...projections.vector_index import NeighbourGraph, Rows, read, save_rows
from ...projections.vectors import embedded
from ..maintenance_process import MaintenanceProcess
from ..write_thread import Writer

log = logging.getLogger("memd.graphs")


def write_graph_rows(stores: Stores, pool: str, folder: Path) -> Path:
    """Write the list of vectors that a pool's graph is to contain; return the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    live, store = embedded(stores.records, pool), stores.vectors.store
    save_rows(folder, Rows(store.model, store.dimension, tuple(id for id, _ in live), tuple(mark for _, mark in live)))
    return folder


class VectorGraphBuilder:
    """Builds graphs for pools that outgrew their index."""

    def __init__(self, stores: Stores, writer: Writer, maintenance: MaintenanceProcess) -> None:
        self._stores, self._writer, self._maintenance = stores, writer, maintenance
        self._thread: threading.Thread | None = None

    def tick(self) -> None:
        """Start to build the most needed graph, unless one is being built."""
        if self._thread is not None and self._thread.is_alive():
            return
        if pool := self._stores.vectors.outgrown():
            self._thread = threading.Thread(target=self._make, args=(pool,), name="graphs", daemon=True)
            self._thread.start()

    def _make(self, pool: str) -> None:
        vectors = self._stores.vectors
        place = vectors.place(pool)
        building, swept = place.with_suffix(".new"), vectors.swept
        try:
            write_graph_rows(self._stores, pool, building)
            report = self._maintenance.run(
                "graph", self._stores.folder, [str(building)], lambda done, total, detail: None
            )
            graph = read(building, vectors.store.model)
            if graph is not None and self._writer.run(lambda: self._take(pool, graph, building, swept)).result():
                log.info("built a graph of %s vectors for %s", report["vectors"], pool)
        except (MemdError, OSError) as error:  # busy, stopping, swept, or a full disk: memd tries again
            log.info("could not build a vector graph for %s: %s", pool, error)
        finally:
            shutil.rmtree(building, ignore_errors=True)

    def _take(self, pool: str, graph: NeighbourGraph, building: Path, swept: int) -> bool:
        vectors = self._stores.vectors
        if vectors.swept != swept or vectors.store.model != graph.rows.model:
            return False
        place = vectors.place(pool)
        shutil.rmtree(place, ignore_errors=True)
        building.rename(place)
        vectors.take_graph(pool, graph)
        return True

    def stop(self) -> None:
        """Wait for the builder's thread; its child has ended."""
        if self._thread is not None:
            self._thread.join(5.0)
