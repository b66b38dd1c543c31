"""One LMDB environment: shared reads, one writer, growth of the map and a full disk.

Invariants: only the thread that owns writing begins a write transaction; when the map is full it grows and the whole
transaction runs again; no reader is active while the map grows; a refused write leaves the environment readable and
usable (tested: the default mode survives ENOSPC, `writemap` dies by SIGBUS).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypeVar

import lmdb

from ...protocol.errors import InvalidRequest, JournalCorrupt, StorageFull, StoreError
from .durable_files import sync

T = TypeVar("T")
Transaction = lmdb.Transaction
Table: TypeAlias = "lmdb.Database"  # the class has no public name at run time
DAMAGED = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError, lmdb.PanicError)
CLOSE_S = 10.0
"""Seconds that `close` waits for readers."""

MAP_SIZE = 16 << 30
"""Bytes of address space reserved at first; unused address space costs nothing."""

REWRITE_ROWS = 256
MADV_DONTNEED = 4


def _append(transaction: lmdb.Transaction, database: lmdb.Database, rows: Sequence[tuple[bytes, bytes]]) -> None:
    consumed, _ = transaction.cursor(database).putmulti(rows, append=True)
    if consumed != len(rows):
        raise AssertionError(f"{len(rows) - consumed} rows were not taken")


class Environment:
    """An LMDB environment with its named databases opened. `durable=False` is for what replay can rebuild."""

    def __init__(
        self,
        folder: Path,
        databases: tuple[str, ...],
        *,
        durable: bool,
        map_size: int = MAP_SIZE,
        readonly: bool = False,
        alone: bool = False,
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        """`readonly`: for a child of the process that owns the folder. `alone`: for a folder that no other process
        opens, without LMDB's lock file, which is mapped and on a full disk kills the process that writes it. `on_full`
        is called when the disk refused a write, before StorageFull is raised.

        Raises JournalCorrupt, StorageFull, StoreError where address space is limited.
        """
        self.folder = folder
        self._databases, self._durable, self._readonly, self._alone = databases, durable, readonly, alone
        self._gate = threading.Condition()
        self._readers = 0
        self._growing = False
        self._on_full = on_full
        self.suspect = False
        """Whether anything read from it was damaged: the next start must check all of it."""
        self._open(map_size)

    def _open(self, map_size: int) -> None:
        new = not self._readonly and not (self.folder / "data.mdb").exists()
        try:
            if new:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lmdb = lmdb.open(
                str(self.folder),
                map_size=map_size,
                max_dbs=len(self._databases),
                mode=0o600,
                sync=self._durable,
                metasync=self._durable,
                readonly=self._readonly,
                create=not self._readonly,
                lock=not self._alone,
            )
            self._lmdb.reader_check()
            self._inode = _inode(self.folder / "data.mdb")
            create = not self._readonly
            self._db = {name: self._lmdb.open_db(name.encode(), create=create) for name in self._databases}
            if new and self._durable:  # LMDB syncs what is in the file, not that there is one
                sync(self.folder)
                sync(self.folder.parent)
        except (lmdb.DiskError, OSError) as error:
            raise self._full(error) from error
        except lmdb.MemoryError as error:
            raise self._limited(map_size) from error
        except lmdb.Error as error:
            raise JournalCorrupt(
                f"{self.folder} can't be opened: {error}", hint="restore the newest backup, or move the folder away"
            ) from error

    def mark_suspect(self) -> None:
        """Note that a reader found damage."""
        self.suspect = True

    def replace(self, move: Callable[[], None]) -> None:
        """Close, let `move` replace the files, open them. Readers wait; only the writer calls it.

        Earlier handles are invalid afterwards: call `db` again. An open environment would serve the old files.
        """
        with self._gate:
            self._growing = True
            while self._readers:
                self._gate.wait()
            try:
                map_size = self._lmdb.info()["map_size"]
                self._lmdb.close()
                try:
                    move()
                finally:
                    self._open(map_size)
            finally:
                self._growing = False
                self._gate.notify_all()

    @property
    def handles(self) -> Mapping[str, lmdb.Database]:
        """The handles of all named databases by name, valid until `replace`."""
        return self._db

    def db(self, name: str) -> lmdb.Database:
        """Return the handle of a named database; ask within `read` or `write`, as `replace` makes it invalid."""
        return self._db[name]

    @contextmanager
    def read(self) -> Generator[lmdb.Transaction]:
        """Open a snapshot of the last commit. Keep it short: it pins old pages."""
        with self._gate:
            while self._growing:
                self._gate.wait()
            self._readers += 1
        try:
            with self._lmdb.begin(buffers=False) as transaction:
                yield transaction
        except lmdb.BadValsizeError as error:
            raise InvalidRequest(
                "a name is empty or too long", hint="check the names and ids of the request"
            ) from error
        except lmdb.Error as error:
            raise self._damaged(error) from error
        finally:
            with self._gate:
                self._readers -= 1
                self._gate.notify_all()

    def write(self, work: Callable[[lmdb.Transaction], T]) -> T:
        """Run `work` in one write transaction, again from the start if the map was full.

        Raises StorageFull or JournalCorrupt: then nothing was written.
        """
        while True:
            try:
                with self._lmdb.begin(write=True) as transaction:
                    return work(transaction)
            except lmdb.MapFullError:
                self._grow()
            except DAMAGED as error:
                raise self._damaged(error) from error
            except lmdb.Error as error:  # its class differs by file system
                self._on_full()
                raise self._full(error) from error

    def _full(self, error: Exception) -> StorageFull:
        return StorageFull(
            f"could not write to {self.folder.name}: {error}",
            hint="free some space; memd still answers reads and resumes writes automatically",
        )

    def _limited(self, size: int) -> StoreError:
        return StoreError(
            f"{self.folder.name} needs {size >> 30} GiB of address space, more than this process may use",
            hint="raise the limit (`ulimit -v unlimited`; in a service LimitAS=infinity); address space uses no memory",
        )

    def _damaged(self, error: Exception) -> JournalCorrupt:
        self.suspect = True
        return JournalCorrupt(
            f"{self.folder.name} is damaged: {error}",
            hint="run `memd down && memd up`: at the start memd checks every page and says what to do",
        )

    def _grow(self) -> None:
        with self._gate:
            self._growing = True
            while self._readers:
                self._gate.wait()
            size = self._lmdb.info()["map_size"] * 2
            try:
                self._lmdb.set_mapsize(size)
            except lmdb.MemoryError as error:
                raise self._limited(size) from error
            finally:
                self._growing = False
                self._gate.notify_all()

    def sync(self) -> None:
        """Flush everything committed so far to the disk."""
        self._lmdb.sync(True)

    def rewrite(self, folder: Path) -> None:
        """Write and flush the rows of the last commit to a new environment in a new folder, while writes go on.

        LMDB's own copy keeps removed bytes in the unused ends of pages (observed); rows carry nothing else. Raises
        StorageFull.
        """
        size = self._lmdb.info()["map_size"]
        fresh = Environment(folder, self._databases, durable=False, map_size=size, alone=True)
        try:
            with self.read() as snapshot:
                for name in self._databases:
                    rows = snapshot.cursor(self._db[name]).iternext()
                    while group := list(islice(rows, REWRITE_ROWS)):
                        fresh.write(
                            lambda transaction, name=name, group=group: _append(transaction, fresh.db(name), group)
                        )
            fresh.sync()
        finally:
            fresh.close()
        for path in (folder / "data.mdb", folder):
            sync(path)

    def free_bytes(self) -> int:
        """Return the bytes of the data file that a compact copy would save."""
        with self.read() as transaction:
            stats = [self._lmdb.stat(), *(transaction.stat(database) for database in self._db.values())]
        pages = sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)
        used = (self._lmdb.info()["last_pgno"] + 1) * stats[0]["psize"]
        return max(0, used - (pages + 2) * stats[0]["psize"])

    @property
    def is_in_place(self) -> bool:
        """Whether the data file is still the file at its path. Writes to a deleted file succeed, and are lost."""
        return self._inode == _inode(self.folder / "data.mdb")

    def size_bytes(self) -> int:
        """Return the bytes of the data file on disk."""
        return (self.folder / "data.mdb").stat().st_blocks * 512

    def close(self) -> None:
        """Close after the last reader. One that reads for longer keeps the map, which ends with the process: closed
        under it, it would read unmapped memory."""
        with self._gate:
            if self._gate.wait_for(lambda: not self._readers, CLOSE_S):
                self._lmdb.close()


def _inode(file: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, None if it does not exist."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def evict_pages(folder: Path) -> None:
    """Take the mapped read-only pages of the files below `folder` out of resident memory (P-2), on Linux.

    A start reads a hundred thousand rows through LMDB's map, and every page of them would count as memd's. A page that
    is read again comes from the system's cache at the cost of a minor fault.
    """
    if sys.platform != "linux":
        return
    below = f"{folder.resolve()}/"
    with suppress(OSError):
        libc = ctypes.CDLL(None)
        for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            fields = line.split(maxsplit=5)  # from-to, rights, offset, device, inode, path
            if len(fields) == 6 and fields[5].startswith(below) and "w" not in fields[1]:
                start, end = (int(address, 16) for address in fields[0].split("-"))
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_DONTNEED)
