"""Everything on disk, opened in order and kept in step: archive, journal, and the projections of the journal.

Comes in: the data folder. Goes out: one object that the committer writes through and reads look into. Invariants: the
folder's lock is held before anything is opened; `commit` is journal first, projections after; a projection that is
behind is brought up by replay before the door opens.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from ..models.registry import ModelInfo
from ..protocol.errors import JournalLocked
from ..protocol.operation import AnyOperation
from ..protocol.reply import Logged
from .projections.folded import open_folded
from .projections.keywords import Keywords
from .projections.profile import ProfileCards
from .projections.projection import Projection
from .projections.swap import settle
from .projections.turns import Turns
from .projections.vectors import Vectors, VectorStore
from .store import restore
from .store.archive import Archive
from .store.journal import Journal
from .world import World

REPLAY_GROUP = 500


class FolderLock:
    """An exclusive lock on a folder, held as long as the process lives. Raises JournalLocked, naming the holder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = (folder / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise JournalLocked(
                f"{folder} is in use by process {holder}", hint="one daemon per home: `memd status`, or `memd down`"
            ) from error
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Let go of the folder."""
        self._file.truncate(0)
        self._file.close()


def boot_mark() -> str:
    """What changes when the machine starts anew: unsynced pages of before are gone."""
    file = Path("/proc/sys/kernel/random/boot_id")
    return file.read_text(encoding="ascii").strip() if file.exists() else "unknown"


class Stores:
    """The stores of one home. One thread commits; any thread reads."""

    def __init__(self, folder: Path, world: World, model: ModelInfo) -> None:
        self.folder = folder
        self.lock = FolderLock(folder)
        restore.finish(folder)
        self._mark = folder / "running"
        self._discard_torn()
        self.archive = Archive(folder / "archive", world)
        self.journal = Journal(folder / "journal", world)
        self.projections_folder = folder / "projections"
        settle(self.projections_folder)
        folded = open_folded(self.projections_folder / "tables")
        self.records, self.keys, self.graph = folded.records, folded.keys, folded.graph
        self.sources, self.tables = folded.sources, folded.tables
        self.keywords = Keywords(self.projections_folder / "keywords", self.records)
        self.turns = Turns(self.projections_folder / "turns", self.archive)
        self.vector_store = VectorStore(folder / "vectors", model.id, model.dimension, world)
        self.catch_up(self.tables)
        self.vectors = Vectors(self.vector_store, self.records, self.journal.last)
        self.profile = ProfileCards(self.records, self.journal.last)
        self.catch_up(self.keywords)

    def _discard_torn(self) -> None:
        """After a power cut, projections may hold half a write: throw them away, the journal has it all."""
        if self._mark.exists() and self._mark.read_text(encoding="ascii") != boot_mark():
            shutil.rmtree(self.folder / "projections", ignore_errors=True)
            shutil.rmtree(self.folder / "vectors", ignore_errors=True)
        self._mark.write_text(boot_mark(), encoding="ascii")

    @property
    def projections(self) -> tuple[Projection, ...]:
        """All projections, in the order in which an operation reaches them."""
        return (self.tables, self.keywords, self.vectors, self.profile)

    def catch_up(self, projection: Projection, progress: Callable[[int], None] | None = None) -> None:
        """Replay what a projection has not seen yet."""
        while group := self.journal.slice(projection.applied_seq, REPLAY_GROUP):
            projection.apply(group)
            if progress:
                progress(projection.applied_seq)

    def commit(self, operations: Sequence[AnyOperation]) -> list[Logged]:
        """Journal first, durably, then every projection. Raises StorageFull: then nothing was written."""
        entries = self.journal.commit(operations)
        for projection in self.projections:
            if projection.applied_seq + 1 == entries[0].seq:
                projection.apply(entries)
            else:  # it failed on an earlier group: the journal has that
                self.catch_up(projection)
        return entries

    def size_bytes(self) -> dict[str, int]:
        """Bytes on disk by store."""
        return {
            "journal": self.journal.log.environment.size_bytes(),
            "archive": self.archive.log.environment.size_bytes(),
            "tables": self.tables.environment.size_bytes(),
            "keywords": _size_bytes(self.keywords.folder),
            "turns": _size_bytes(self.turns.folder),
            "vectors": self.vector_store.size_bytes(),
        }

    def close(self) -> None:
        """Close everything in order; the mark of a running daemon goes last."""
        self.keywords.close()
        self.turns.close()
        self.tables.close()
        self.vector_store.close()
        self.journal.close()
        self.archive.close()
        self._mark.unlink(missing_ok=True)
        self.lock.release()


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*") if file.is_file())
