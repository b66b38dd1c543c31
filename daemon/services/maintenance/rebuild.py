"""`memd rebuild`: builds projections in a child process while reads use the old ones, then swaps them.

Operations of the meantime are applied twice, first beside the write thread and then on it, so that it waits for few of
them. A swap is one rename on the write thread; the next start removes unfinished builds.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from ....protocol.errors import InvalidRequest
from ....protocol.reply import JobState
from ...failpoint import reach
from ...projections.folded import TableSet
from ...projections.keywords import Keywords
from ...projections.lines import ConversationOrder
from ...projections.profile import ProfileCards
from ...projections.projection import Projection
from ...projections.replay import ReportProgress, TaskReport
from ...projections.stores import Stores
from ...projections.turns import TurnIndex
from ...projections.vectors import VectorIndexes
from ...storage.folder_swap import BUILDING, fresh_folder, promote
from ..jobs import Jobs, Progress, Report
from ..maintenance_process import MaintenanceProcess
from ..write_thread import Writer

NAMES = ("tables", "keywords", "turns", "vectors", "lines", "profile")
PARTS = {"records": "tables", "keys": "tables", "edges": "tables", "sources": "tables", "counters": "tables"}
"""Projections in the environment of the tables are rebuilt with them."""


def names_of(wanted: str) -> tuple[str, ...]:
    """Return the projections that a name stands for. Raises InvalidRequest."""
    if wanted in ("", "all"):
        return NAMES
    name = PARTS.get(wanted, wanted)
    if name not in NAMES:
        raise InvalidRequest(f"no projection {wanted!r}", hint=f"there are: all, {', '.join((*NAMES, *PARTS))}")
    return (name,)


class ProjectionRebuild:
    """Rebuilds on a job's thread."""

    def __init__(self, stores: Stores, writer: Writer, maintenance: MaintenanceProcess) -> None:
        self._stores, self._writer, self._maintenance = stores, writer, maintenance
        self._place = stores.projections_folder

    def run(self, names: Sequence[str], emit: ReportProgress) -> TaskReport:
        """Build, catch up, swap. Raises the child's error, StorageFull, Stopping; the old projections then stay."""
        on_disk = [name for name in names if name in ("tables", "keywords", "turns")]
        if on_disk:
            building = fresh_folder(self._place)
            self._maintenance.run("rebuild", self._stores.folder, on_disk, emit)
            for name in on_disk:
                self._swap(name)
            shutil.rmtree(building)
        if "vectors" in names:
            self._refill()
        for projection in (self._stores.lines, self._stores.profile):
            if projection.name in names:
                self._reset(projection)
        return {"rebuilt": list(names), "operations": self._stores.journal.last, "captures": self._stores.archive.last}

    def _reset(self, projection: ConversationOrder | ProfileCards) -> None:
        tables = self._stores.tables
        self._writer.run(lambda: projection.reset(tables.applied_seq)).result()

    def _swap(self, name: str) -> None:
        stores, folder = self._stores, self._place / BUILDING / name
        if name == "tables":
            folded = TableSet(folder)
            live, fresh, catch_up = stores.tables, folded, lambda: self._follow(folded.tables, stores.journal.last)
        elif name == "keywords":
            keywords = Keywords(folder, stores.records, stores.keywords.around)
            live, fresh, catch_up = stores.keywords, keywords, lambda: self._follow(keywords, stores.tables.applied_seq)
        else:
            turns = TurnIndex(folder, stores.archive)
            live, fresh, catch_up = stores.turns, turns, turns.catch_up
        catch_up()

        def finish() -> None:
            catch_up()
            fresh.close()
            live.replace(lambda: promote(self._place, name))
            reach(f"renew:{name}")

        self._writer.run(finish).result()

    def _follow(self, projection: Projection, upto: int) -> None:
        """Replay up to an operation. A projection that reads the tables may not go beyond them: a record that is not
        there yet would count as gone."""
        while group := [
            entry for entry in self._stores.journal.slice(projection.applied_seq, 500) if entry.seq <= upto
        ]:
            projection.apply(group)

    def _refill(self) -> None:
        stores = self._stores
        seq = self._writer.run(lambda: stores.tables.applied_seq).result()
        fresh = VectorIndexes(stores.vector_store, stores.records, seq, stores.graphs)

        def finish() -> None:
            self._follow(fresh, stores.tables.applied_seq)
            stores.vectors.adopt(fresh)

        self._writer.run(finish).result()


def start_verify(jobs: Jobs, maintenance: MaintenanceProcess, stores: Stores) -> JobState:
    """Start to verify all stores; after damage the next start checks them again."""

    def work(progress: Progress) -> Report:
        report = maintenance.run("verify", stores.folder, (), progress)
        if report["damage"]:
            stores.mark_suspect()
        return report

    return jobs.start("verify", work)
