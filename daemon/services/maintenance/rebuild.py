"""`memd rebuild`: projections made anew from the journal and the archive, while reads go on against the old ones.

Comes in: names. Goes out: the same, fresh, in the place of the old. Invariants: a child builds; what was committed
meanwhile is caught up twice, beside the writer and then on its thread, so that the writer waits for a few operations
only; a swap is one rename on the writer's thread, and what is half built is thrown away by the next start.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Protocol

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
"""What shares the tables' environment is rebuilt with them."""


class ReplacementProjection(Protocol):
    """What is swapped in: a projection that can be closed."""

    def close(self) -> None:
        """Bring everything to the disk and close."""
        ...


def names_of(wanted: str) -> tuple[str, ...]:
    """The projections that a name stands for. Raises InvalidRequest."""
    if wanted in ("", "all"):
        return NAMES
    name = PARTS.get(wanted, wanted)
    if name not in NAMES:
        raise InvalidRequest(f"no projection {wanted!r}", hint=f"there are: all, {', '.join((*NAMES, *PARTS))}")
    return (name,)


class ProjectionRebuild:
    """One rebuild, on the thread of a job."""

    def __init__(self, stores: Stores, writer: Writer, maintenance: MaintenanceProcess) -> None:
        self._stores, self._writer, self._maintenance = stores, writer, maintenance
        self._place = stores.projections_folder

    def run(self, names: Sequence[str], emit: ReportProgress) -> TaskReport:
        """Build, catch up, swap. Raises what the child raises, StorageFull, Stopping; the old ones then stay."""
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
        """Replay up to an operation. What reads the tables may not go beyond them: beside the writer they come after
        the journal, and a record that is not in them yet would count as gone."""
        while group := [each for each in self._stores.journal.slice(projection.applied_seq, 500) if each.seq <= upto]:
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
    """Start to look at all stores, a job; what is found damaged makes the next start look again."""

    def work(progress: Progress) -> Report:
        report = maintenance.run("verify", stores.folder, (), progress)
        if report["damage"]:
            stores.mark_suspect()
        return report

    return jobs.start("verify", work)
