"""All stores of a data folder: archive, journal, and the projections of the journal, opened and kept in step.

Invariants: the folder's lock is held before any store is opened; `commit` writes the journal first, then the
projections; a projection that is behind is replayed before the daemon answers requests.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ...models.registry import ModelInfo
from ...protocol.errors import StorageFull, StoreError
from ...protocol.event import Captured
from ...protocol.operation import AnyOperation
from ...protocol.reply import Logged
from ..failpoint import reach
from ..storage import restore
from ..storage.archive import Archive, Fate
from ..storage.ballast import Ballast
from ..storage.folder_lock import FolderLock
from ..storage.journal import JournalLog
from ..storage.lmdb_environment import Environment, evict_pages
from ..storage.startup_checks import CHECKPOINT_AT_CLOSE, StartupChecks, checkpoint, due
from ..world import World
from .folded import open_tables
from .keywords import Keywords, beside
from .lines import ConversationOrder
from .profile import ProfileCards
from .projection import Projection
from .projection_driver import ProjectionDriver
from .turns import TurnIndex
from .vector_store import VectorStore
from .vectors import VectorIndexes

INDEX_GROUP, TURNS_S = 128, 0.03
"""While captures arrive, seconds of each second that their index may use: without a limit their rate halves."""

T = TypeVar("T")
log = logging.getLogger("memd.store")


class Stores:
    """The stores of one data folder. One thread commits; any thread reads."""

    def __init__(self, folder: Path, world: World, model: ModelInfo, *, ballast_bytes: int = 0) -> None:
        self.folder = folder
        self._monotonic = world.monotonic
        self.changed = threading.Event()
        """Set when there are new entries to index, or an echo ledger to save."""
        self.on_commit: Callable[[], object] = lambda: None
        """Called on the committing thread when operations are durable and applied."""
        self.lock = FolderLock(folder)
        try:
            self._open(folder, world, model, ballast_bytes)
        except BaseException:
            self.lock.release()
            raise

    def _open(self, folder: Path, world: World, model: ModelInfo, ballast_bytes: int) -> None:
        restore.finish(folder)
        self.projections_folder = folder / "projections"
        self.ballast = Ballast(folder / "ballast", ballast_bytes, world)
        on_full = self.ballast.release
        self._checks = StartupChecks(folder, world, self.ballast)
        self.journal = JournalLog(folder / "journal", world, on_full=on_full)
        self.archive = Archive(folder / "archive", world, on_full=on_full)
        self._checkpoint = self._checks.opened(self.journal, self.archive)
        self.driver = ProjectionDriver(self.journal, lambda: self.projections)
        table_set = open_tables(self.projections_folder / "tables", on_full)
        self.tables, self.records, self.graph = table_set.tables, table_set.records, table_set.graph
        self.sources, self.forgotten, self.aliases = table_set.sources, table_set.forgotten, table_set.aliases
        self.counters, self.feedback_counts = table_set.counters, table_set.feedback_counts
        self.dead_letters, self.open_sessions = table_set.dead_letters, table_set.open_sessions
        self.inbox, self.grants, self.remote = table_set.inbox, table_set.grants, table_set.remote
        self.sharing, self.patches, self.skills = table_set.sharing, table_set.patches, table_set.skills
        self.courses = table_set.courses
        self.outcomes = table_set.outcomes
        around = beside(self.archive, self.sources, self.aliases)
        self.keywords = Keywords(self.projections_folder / "keywords", self.records, around)
        self.turns = TurnIndex(self.projections_folder / "turns", self.archive)
        self.vector_store = VectorStore(folder / "vectors", model.id, model.dimension, world, on_full=on_full)
        self.catch_up(self.tables)
        self.graphs = self.projections_folder / "graphs"
        self.vectors = VectorIndexes(self.vector_store, self.records, self.journal.last, self.graphs, later=True)
        self.lines = ConversationOrder(self.records, self.journal.last)
        self.profile = ProfileCards(self.records, self.journal.last)
        self.catch_up(self.keywords)
        self._distilled = self.sources.progress().archive_seq
        self._checks.serving()

    @property
    def _environments(self) -> tuple[Environment, ...]:
        logs = (self.journal.log.environment, self.archive.log.environment)
        return (*logs, self.tables.environment, self.vector_store.environment)

    @property
    def projections(self) -> tuple[Projection, ...]:
        """All projections, in the order in which they apply an operation."""
        return (self.tables, self.keywords, self.vectors, self.lines, self.profile)

    def catch_up(self, projection: Projection, progress: Callable[[int], None] | None = None) -> None:
        """Replay the operations that a projection has not applied."""
        self.driver.catch_up(projection, progress)

    def take(self, captures: Sequence[Captured]) -> list[Fate]:
        """Append captures to the archive, durably, as one group. Raises StoreError: then none was written."""
        self._admit()
        fates = self.archive.take(captures)
        self.changed.set()
        reach("archive:appended")
        return fates

    def commit(self, operations: Sequence[AnyOperation], *, reserve: bool = False) -> list[Logged]:
        """Append operations to the journal, then apply them to every projection; with `reserve` (forgetting) also while
        the disk is full.

        Raises StorageFull or StoreError: then nothing was written, or the operations are in the journal and the
        projections catch up before the next commit.
        """
        if not reserve:
            self._admit()
        self._with_ballast(self.driver.follow)
        if due(self._checkpoint, self.journal, self.archive):
            self._checkpoint = checkpoint(self.journal, self.archive)
            operations = (*operations, self._checkpoint)
        entries = self._with_ballast(lambda: self.journal.commit(operations))
        self.changed.set()
        self._with_ballast(lambda: self.driver.follow(entries))
        self._distilled = self.sources.progress().archive_seq
        self.on_commit()
        return entries

    def load(self) -> None:
        """Fill the projections that are only in memory: half a second for 100,000 records."""
        self.lines.load()
        self.keywords.know(self.lines)
        self.vectors.load()
        self.evict_pages()

    def evict_pages(self) -> None:
        """Release the memory of mapped pages."""
        evict_pages(self.folder)

    def search_in(self, vectors: VectorIndexes) -> None:
        """Search and write these vectors from now on; they are at the journal's end."""
        self.vector_store, self.vectors = vectors.store, vectors

    def keep_vectors(self) -> None:
        """Delete the vectors that no record or used model needs."""
        self.vector_store.keep(record.description for record in self.records.everything())
        self.vectors.sweep()

    def mark_suspect(self) -> None:
        """Note that a check found damage: the next start checks everything, even after a clean stop."""
        self.journal.log.environment.mark_suspect()

    @property
    def pending(self) -> int:
        """The number of captures whose records cannot be recalled yet."""
        return self.archive.last - self._distilled

    @property
    def are_in_place(self) -> bool:
        """Whether the logs' files are still those at their paths."""
        return all(log.environment.is_in_place for log in (self.journal.log, self.archive.log))

    def _admit(self) -> None:
        if not self.are_in_place:
            raise StoreError(
                f"someone removed or replaced files of {self.folder} while memd ran: memd rejects writes",
                hint="put the folder back, or run `memd up`: it starts memd on the files that are there now",
            )
        if not self.ballast.regained():
            raise StorageFull(
                "the disk is full: memd rejects writes until there is free space",
                hint="free some space (`memd du` shows memd's share); memd then resumes writes automatically",
            )

    def _with_ballast(self, work: Callable[[], T]) -> T:
        """Run `work`; if the disk refuses a write, once more with the space that the ballast released."""
        had_ballast = not self.ballast.full
        try:
            return work()
        except StorageFull:
            if not had_ballast:
                raise
            return work()

    def index(self) -> bool:
        """Commit the keyword indexes, reopening one that fails; whether they hold everything. One thread calls it."""
        for index in (self.keywords, self.turns):
            try:
                if index is self.turns:
                    self._index_turns()
                index.commit()
            except Exception as error:  # a full disk, or a writer that died
                self.driver.note_failure(index.name, error)
                index.reopen()
        return not self.driver.broken and self.turns.applied >= self.archive.last

    def _index_turns(self) -> None:
        """Index turns, for a limited time while captures arrive; a search indexes the rest."""
        end = self._monotonic() + TURNS_S
        while self.turns.applied < (last := self.archive.last):
            self.turns.catch_up(INDEX_GROUP)
            if self.archive.last > last and self._monotonic() > end:
                return

    @property
    def troubles(self) -> tuple[str, ...]:
        """The problems of the stores, as sentences for `memd status`."""
        troubles = [f"{name} is behind the journal: {why}" for name, why in self.driver.broken.items()]
        if self.ballast.full:
            troubles.insert(0, "the disk is full: memd rejects writes until there is free space")
        if not self.are_in_place:
            troubles.insert(0, f"files of {self.folder} were removed while memd ran: `memd up` starts it again")
        return tuple(troubles)

    def size_bytes(self) -> dict[str, int]:
        """Return the bytes on disk by store; nothing once the files are gone."""
        if not self.are_in_place:
            return {}
        return {
            "journal": self.journal.log.environment.size_bytes(),
            "archive": self.archive.log.environment.size_bytes(),
            "tables": self.tables.environment.size_bytes(),
            "keywords": size_of(self.keywords.folder),
            "turns": size_of(self.turns.folder),
            "vectors": self.vector_store.size_bytes() + size_of(self.graphs),
            "ballast": self.ballast.size_bytes(),
        }

    def close(self) -> None:
        """Close everything in order; keep the mark of an unclean stop if anything fails."""
        clean = True
        for close in (
            self._last_checkpoint,
            self.keywords.close,
            self.turns.close,
            self.tables.close,
            self.vector_store.close,
            self.journal.close,
            self.archive.close,
        ):
            try:
                close()
            except Exception:  # close the others all the same
                log.exception("could not stop cleanly")
                clean = False
        if any(environment.suspect for environment in self._environments):
            self._checks.mark_suspect()
        elif clean and not self.driver.broken and self.are_in_place:
            self._checks.closed()
        self.lock.release()

    def _last_checkpoint(self) -> None:
        if self.ballast.full:  # the next start needs the remaining space
            return
        self.archive.index()
        if due(self._checkpoint, self.journal, self.archive, CHECKPOINT_AT_CLOSE):
            self.commit([checkpoint(self.journal, self.archive)])


def size_of(folder: Path) -> int:
    """Return the bytes of the files below a folder; a file removed meanwhile counts 0."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total
