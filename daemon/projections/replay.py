"""A replay beside the daemon: its logs opened to read, folded into fresh tables, and how far that is.

Comes in: a data folder whose owner may go on writing. Goes out: tables as the journal alone gives them. Invariant:
journal and archive are opened read-only; what is built lies where the caller says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..storage.archive import Archive
from ..storage.journal import JournalLog
from ..world import World
from .folded import TableSet

GROUP = 2000
"""Operations that a replay folds in at once: fewer write the same pages more often, more hold the memory of theirs."""

Emit = Callable[[int, int, str], None]
"""Is told how far a task is: done, total, what it does."""

Told = dict[str, str | int | float | list[str]]
"""What a task reports."""


class ReplayProgress:
    """Progress over several legs, of known lengths, as one."""

    def __init__(self, emit: Emit, *legs: int) -> None:
        self._emit, self._total, self._base = emit, sum(legs), 0

    def at(self, done: int, detail: str) -> None:
        """So far in this leg."""
        self._emit(min(self._base + done, self._total), self._total, detail)

    def finish(self, leg: int, detail: str) -> None:
        """That leg is over; the next thing is `detail`."""
        self._base += leg
        self.at(0, detail)


class ReplayLogs:
    """Journal and archive of a data folder, opened to read."""

    def __init__(self, folder: Path, world: World) -> None:
        self.folder = folder
        self.projections = folder / "projections"
        self.journal = JournalLog(folder / "journal", world, readonly=True)
        self.archive = Archive(folder / "archive", world, readonly=True)

    def fold(self, place: Path, course: ReplayProgress) -> TableSet:
        """The journal folded into fresh tables at `place`, up to where it is now."""
        folded = TableSet(place, alone=True)
        while group := self.journal.slice(folded.tables.applied_seq, GROUP):
            folded.tables.apply(group)
            course.at(folded.tables.applied_seq, "replaying the journal")
        return folded
