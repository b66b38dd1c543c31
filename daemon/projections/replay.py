"""A replay beside the daemon: read-only journal and archive, fresh tables, and progress reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..storage.archive import Archive
from ..storage.journal import JournalLog
from ..world import World
from .folded import TableSet

GROUP = 2000
"""Operations that a replay applies at once: fewer rewrite pages more often, more need more memory."""

ReportProgress = Callable[[int, int, str], None]
"""Takes a task's progress: units done, total, description."""

TaskReport = dict[str, str | int | float | list[str]]
"""The result of a task."""


class ReplayProgress:
    """The progress of several steps of known lengths as one."""

    def __init__(self, report: ReportProgress, *steps: int) -> None:
        self._report, self._total, self._base = report, sum(steps), 0

    def at(self, done: int, detail: str) -> None:
        """Report the units done in this step."""
        self._report(min(self._base + done, self._total), self._total, detail)

    def finish(self, step: int, detail: str) -> None:
        """End a step of that length; `detail` describes the next one."""
        self._base += step
        self.at(0, detail)


class ReplayLogs:
    """Journal and archive of a data folder whose owner may go on writing, opened read-only."""

    def __init__(self, folder: Path, world: World) -> None:
        self.folder = folder
        self.projections = folder / "projections"
        self.journal = JournalLog(folder / "journal", world, readonly=True)
        self.archive = Archive(folder / "archive", world, readonly=True)

    def fold(self, place: Path, progress: ReplayProgress) -> TableSet:
        """Replay the journal into fresh tables at `place`."""
        table_set = TableSet(place, alone=True)
        while group := self.journal.slice(table_set.tables.applied_seq, GROUP):
            table_set.tables.apply(group)
            progress.at(table_set.tables.applied_seq, "replaying the journal")
        return table_set
