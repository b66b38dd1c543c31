"""Checks a data folder before its stores are opened, and marks a clean end.

Invariants: after an unclean stop a child reads journal and archive before the daemon maps them; projections that may
hold half a write are deleted and replayed; an end is clean if everything was on the disk before the mark changed.
"""

from __future__ import annotations

import logging
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ...protocol.errors import JournalCorrupt, NotFound, StorageFull
from ...protocol.instant import from_micros
from ...protocol.operation import Checkpoint
from ..failpoint import reach
from ..world import World
from . import folder_swap
from .archive import Archive
from .backup import FOLDER, newest
from .ballast import Ballast
from .durable_files import remove, replace, sync_tree
from .inspection import TABLES, inspect
from .journal import JournalLog
from .layout_version import DISPOSABLE, STORES, bring_up, settle
from .run_marker import Marker

CHECKPOINT_EVERY = 10_000
"""Entries of both logs after which a running daemon writes a checkpoint."""

CHECKPOINT_AT_CLOSE = 256
"""The same for a clean stop."""

LOCKS = frozenset({"lock.mdb", ".tantivy-writer.lock", ".tantivy-meta.lock"})
"""Files that change without meaning."""

CHUNK = 1 << 20
log = logging.getLogger("memd.store")


class StartupChecks:
    """The checks of one run of the daemon on one folder."""

    def __init__(self, folder: Path, world: World, ballast: Ballast) -> None:
        """Raises UnsupportedFormat, JournalCorrupt, StorageFull."""
        self._folder, self._world = folder, world
        self._sums = folder / "sums.json"
        self._changed = False
        self._new = bring_up(folder, world)
        folder_swap.settle(folder / "projections")
        self._marker = Marker(folder)
        end = self._marker.last_end()
        self._unclean = end != "clean"
        if end == "clean":
            self._compare_sums()
        else:
            log.warning("the last run did not end cleanly (%s): checking the stores", end)
            if end != "killed":
                self._discard("projections", end)
            self._inspect(thorough=end != "killed")
        try:
            self._begin()
        except OSError:
            ballast.release()
            try:
                self._begin()
            except OSError as error:
                raise StorageFull(f"cannot write to {folder}", hint="free some space") from error
        reach("marker:written")

    def _begin(self) -> None:
        self._marker.opening()
        remove(self._sums)

    def _discard(self, name: str, why: str) -> None:
        if (self._folder / name).exists():
            log.warning("rebuilding %s: %s", name, why)
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def _inspect(self, thorough: bool) -> None:
        for store, problem in inspect(self._folder, [*STORES, TABLES, "vectors"], thorough=thorough).items():
            if store in STORES:
                raise self._corrupt(f"the {store} is damaged: {problem}")
            self._discard(store.split("/")[0], problem)

    def _corrupt(self, what: str) -> JournalCorrupt:
        try:
            path, manifest = newest(self._folder / FOLDER)
            hint = f"`memd restore-backup {path.name}` restores the newest backup, of {from_micros(manifest.at)[:16]}"
        except NotFound:
            hint = f"there is no backup in {self._folder / FOLDER}; see `memd restore-backup --from FOLDER`"
        return JournalCorrupt(what, hint=hint)

    def _compare_sums(self) -> None:
        """Compare the files with the checksums of the last clean stop."""
        try:
            checksums = msgspec.json.decode(self._sums.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.MsgspecError):
            checksums = {}
        for name in (*STORES, *DISPOSABLE):
            if not (self._folder / name).exists() or sums_of(self._folder, name) == {
                path: value for path, value in checksums.items() if path.startswith(name + "/")
            }:
                continue
            if name in DISPOSABLE:
                self._discard(name, "changed since the last run")
            elif checksums:
                self._changed = True
        if self._changed:
            log.warning("journal or archive changed since the last run: checking every page")
            self._inspect(thorough=True)

    def opened(self, journal: JournalLog, archive: Archive) -> Checkpoint:
        """Verify the opened logs after the last checkpoint and return it. Raises JournalCorrupt."""
        try:
            point = journal.checkpoint()
            journal.log.verify(point.journal_seq, point.journal_tip)
            archive.log.verify(point.archive_seq, point.archive_tip)
            if self._changed or (self._unclean and not archive.is_indexed()):
                log.warning("rebuilding the archive's index")
                archive.reindex()
        except JournalCorrupt as error:
            raise self._corrupt(error.message) from error
        if self._new:
            settle(self._folder, self._world)
        return point

    def serving(self) -> None:
        """Note that every store is open and in step."""
        try:
            self._marker.serving()
        except OSError as error:  # the next start checks more
            log.warning("the mark can't be written: %s", error)

    def mark_suspect(self) -> None:
        """Note that a reader found damage: the next start checks everything."""
        try:
            self._marker.opening()
        except OSError as error:
            log.warning("the mark can't be written: %s", error)

    def closed(self) -> None:
        """Flush all closed stores, write their checksums and mark the end as clean."""
        try:
            for name in DISPOSABLE:
                sync_tree(self._folder / name)
            names = (*STORES, *DISPOSABLE)
            sums = {path: value for name in names for path, value in sums_of(self._folder, name).items()}
            replace(self._sums, msgspec.json.encode(sums))
        except OSError as error:
            log.error("could not stop cleanly: %s", error)
            return
        reach("close:synced")
        self._marker.clear()


def checkpoint(journal: JournalLog, archive: Archive) -> Checkpoint:
    """Return a checkpoint at the end of both logs."""
    return Checkpoint(
        journal_seq=journal.last, journal_tip=journal.log.tip, archive_seq=archive.last, archive_tip=archive.log.tip
    )


def due(point: Checkpoint, journal: JournalLog, archive: Archive, every: int = CHECKPOINT_EVERY) -> bool:
    """Whether at least `every` entries came since a checkpoint."""
    return journal.last + archive.last - point.journal_seq - point.archive_seq >= every


def sums_of(root: Path, name: str) -> dict[str, int]:
    """Return the CRC-32 of every file below `root / name` by path relative to `root`. Raises OSError.

    Two threads read, because zlib releases the interpreter's lock.
    """
    files = sorted(path for path in (root / name).rglob("*") if path.is_file() and path.name not in LOCKS)
    with ThreadPoolExecutor(2) as pool:
        return dict(zip((str(path.relative_to(root)) for path in files), pool.map(_sum, files), strict=True))


def _sum(file: Path) -> int:
    value = 0
    with file.open("rb", buffering=0) as stream:
        while chunk := stream.read(CHUNK):
            value = zlib.crc32(chunk, value)
    return value
