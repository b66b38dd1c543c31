"""Everything on disk, opened in order and kept in step: archive, journal, and the projections of the journal.

Comes in: the data folder. Goes out: one object that the committer writes through and reads look into. Invariants: the
folder's lock is held before anything is opened; `commit` is journal first, projections after; a projection that is
behind is brought up by replay before the door opens.
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
from ...protocol.errors import StorageFull
from ...protocol.event import Captured
from ...protocol.operation import AnyOperation
from ...protocol.reply import Logged
from ..failpoint import reach
from ..storage import restore
from ..storage.archive import Archive, Fate
from ..storage.ballast import Ballast
from ..storage.folder_lock import FolderLock
from ..storage.journal import JournalLog
from ..storage.lmdb_environment import Environment
from ..storage.page_eviction import let_go
from ..storage.startup_checks import CHECKPOINT_AT_CLOSE, StartupChecks, checkpoint, due
from ..world import World
from .folded import open_folded
from .keywords import Keywords, beside
from .lines import ConversationOrder
from .profile import ProfileCards
from .projection import Projection
from .projection_driver import ProjectionDriver
from .turns import TurnIndex
from .vector_store import VectorStore
from .vectors import VectorIndexes

INDEX_GROUP, TURNS_S = 128, 0.03
"""While captures keep coming, their index has this much of each second: all of it would halve their rate."""

T = TypeVar("T")
log = logging.getLogger("memd.store")


class Stores:
    """The stores of one home. One thread commits; any thread reads."""

    def __init__(self, folder: Path, world: World, model: ModelInfo, *, ballast_bytes: int = 0) -> None:
        self.folder = folder
        self._monotonic = world.monotonic
        self.changed = threading.Event()
        """Set when something came in, or was given: there is something to index and to save."""
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
        self._opening = StartupChecks(folder, world, self.ballast)
        self.journal = JournalLog(folder / "journal", world)
        self.archive = Archive(folder / "archive", world)
        self._checkpoint = self._opening.opened(self.journal, self.archive)
        self.following = ProjectionDriver(self.journal, lambda: self.projections)
        folded = open_folded(self.projections_folder / "tables")
        self.records, self.keys, self.graph = folded.records, folded.keys, folded.graph
        self.sources, self.forgotten, self.tables = folded.sources, folded.forgotten, folded.tables
        self.aliases, self.counters = folded.aliases, folded.counters
        self.lessons = folded.lessons
        self.letters, self.unfinished, self.inbox = folded.letters, folded.unfinished, folded.inbox
        self.grants = folded.grants
        around = beside(self.archive, self.sources, self.aliases)
        self.keywords = Keywords(self.projections_folder / "keywords", self.records, around)
        self.turns = TurnIndex(self.projections_folder / "turns", self.archive)
        self.vector_store = VectorStore(folder / "vectors", model.id, model.dimension, world)
        self.catch_up(self.tables)
        self.graphs = self.projections_folder / "graphs"
        self.vectors = VectorIndexes(self.vector_store, self.records, self.journal.last, self.graphs, later=True)
        self.lines = ConversationOrder(self.records, self.journal.last)
        self.profile = ProfileCards(self.records, self.journal.last)
        self.catch_up(self.keywords)
        for environment in self._environments:
            environment.refused = self.ballast.release
        self._distilled = self.sources.progress().archive_seq
        self._opening.serving()

    @property
    def _environments(self) -> tuple[Environment, ...]:
        logs = (self.journal.log.environment, self.archive.log.environment)
        return (*logs, self.tables.environment, self.vector_store.environment)

    @property
    def projections(self) -> tuple[Projection, ...]:
        """All projections, in the order in which an operation reaches them."""
        return (self.tables, self.keywords, self.vectors, self.lines, self.profile)

    def catch_up(self, projection: Projection, progress: Callable[[int], None] | None = None) -> None:
        """Replay what a projection has not seen yet."""
        self.following.catch_up(projection, progress)

    def take(self, captures: Sequence[Captured]) -> list[Fate]:
        """Captures into the archive, durably, as one group. Raises StorageFull: then none was written."""
        self._admit()
        fates = self.archive.take(captures)
        self.changed.set()
        reach("archive:appended")
        return fates

    def commit(self, operations: Sequence[AnyOperation], *, reserve: bool = False) -> list[Logged]:
        """Journal first, durably, then every projection; `reserve`: also while the disk is full (forgetting is).

        Raises StorageFull or StoreError: then nothing was written, or it is in the journal and the projections follow
        before the next commit; so it may be done again.
        """
        if not reserve:
            self._admit()
        self._with_ballast(self.following.follow)
        if due(self._checkpoint, self.journal, self.archive):
            self._checkpoint = checkpoint(self.journal, self.archive)
            operations = (*operations, self._checkpoint)
        entries = self._with_ballast(lambda: self.journal.commit(operations))
        self.changed.set()
        self._with_ballast(lambda: self.following.follow(entries))
        self._distilled = self.sources.progress().archive_seq
        return entries

    def load(self) -> None:
        """Fill what is held in memory alone: half a second for 100,000 records."""
        self.lines.load()
        self.keywords.know(self.lines)
        self.vectors.load()
        self.let_go()

    def let_go(self) -> None:
        """Give back the memory of what was read and is not needed now."""
        let_go(self.folder)

    def search_in(self, vectors: VectorIndexes) -> None:
        """Let these vectors, brought up to the journal's end, be the ones that are searched and written."""
        self.vector_store, self.vectors = vectors.store, vectors

    def keep_vectors(self) -> None:
        """Drop the vectors that no record needs, and those of models that are in use no more."""
        self.vector_store.keep(record.description for record in self.records.everything())
        self.vectors.sweep()

    def doubt(self) -> None:
        """Something was found damaged: let the next start look at everything, however clean the stop."""
        self.journal.log.environment.suspect = True

    @property
    def pending(self) -> int:
        """Captures whose records can't be recalled yet: the cursor counts once every projection has passed it."""
        return self.archive.last - self._distilled

    def _admit(self) -> None:
        if not self.ballast.regained():
            raise StorageFull(
                "the disk is full: memd rejects writes until there is free space",
                hint="free some space (`memd du` shows memd's share); memd then resumes writes automatically",
            )

    def _with_ballast(self, work: Callable[[], T]) -> T:
        """`work`; if the disk refuses a write, once more with the room that the ballast gave back."""
        held = not self.ballast.full
        try:
            return work()
        except StorageFull:
            if not held:
                raise
            return work()

    def index(self) -> bool:
        """Commit the keyword indexes; one that fails goes back to what it holds. One thread calls it. Whether all is in
        them that there is."""
        for index in (self.keywords, self.turns):
            try:
                if index is self.turns:
                    self._index_turns()
                index.commit()
            except Exception as error:  # a full disk, or a writer that died
                self.following.broke(index.name, error)
                index.reopen()
        return not self.following.broken and self.turns.applied >= self.archive.last

    def _index_turns(self) -> None:
        """Take turns into their index; while captures keep coming they go first, and a search takes in what waits."""
        end = self._monotonic() + TURNS_S
        while self.turns.applied < (last := self.archive.last):
            self.turns.catch_up(INDEX_GROUP)
            if self.archive.last > last and self._monotonic() > end:
                return

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is wrong with the stores now, in words, for `memd status`."""
        broken = (f"{name} is behind the journal: {why}" for name, why in self.following.broken.items())
        return ("the disk is full: memd rejects writes until there is free space", *broken)[not self.ballast.full :]

    def size_bytes(self) -> dict[str, int]:
        """Bytes on disk by store."""
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
        """Close everything in order; the mark of a running daemon goes last, and stays if anything went wrong."""
        whole = True
        for end in (
            self._last_checkpoint,
            self.keywords.close,
            self.turns.close,
            self.tables.close,
            self.vector_store.close,
            self.journal.close,
            self.archive.close,
        ):
            try:
                end()
            except Exception:  # the others must be closed all the same
                log.exception("could not stop cleanly")
                whole = False
        if any(environment.suspect for environment in self._environments):
            self._opening.doubt()
        elif whole and not self.following.broken:
            self._opening.closed()
        self.lock.release()

    def _last_checkpoint(self) -> None:
        if self.ballast.full:  # what room there is the next start needs
            return
        self.archive.index()
        if due(self._checkpoint, self.journal, self.archive, CHECKPOINT_AT_CLOSE):
            self.commit([checkpoint(self.journal, self.archive)])


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder; one that is removed while we look counts as nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total
