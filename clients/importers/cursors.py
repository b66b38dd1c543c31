"""The position up to which each file was imported: one small file each in the state folder.

Invariants: a cursor is valid while the bytes before its mark are the same; it is written after all before it is
durable; it has names, positions and hashes, no words of a session (T10), and placeholders for secrets (P-18).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from ..python.folder import client_gate, write_whole
from .transcript import Mark

CHUNK = 1024 * 1024
KEY_BYTES = 32
UNFINISHED = "unfinished"
"""Name of the file with the import that has not ended."""


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a file's import. `digest`: of the bytes before the mark; `probe`: document and turn of the line at
    it; `times`: when each of a document's turns was first read."""

    path: str
    agent: str
    size: int
    mtime_ns: int
    imported_at: str
    mark: Mark | None = None
    digest: str = ""
    probe: tuple[str, str] = ("", "")
    times: dict[str, str] = {}


class UnfinishedImport(msgspec.Struct, frozen=True, kw_only=True):
    """An import that has not ended: when it began, and the names of its files' cursors."""

    started_at: str
    files: tuple[str, ...]


class Cursors:
    """The cursors of one home. `folder`: the name of their folder."""

    def __init__(self, state: Path, folder: str = "imports") -> None:
        self._folder, self._gate = state / folder, client_gate(state)
        self._ignored: set[Path] = set()

    def ignore(self, paths: Iterable[Path]) -> None:
        """Treat these files as new, until they have a cursor again."""
        self._ignored.update(paths)

    def _place(self, path: Path) -> Path:
        return self._folder / f"{blake2b(bytes(path.resolve()), digest_size=16).hexdigest()}.json"

    def get(self, path: Path) -> Cursor | None:
        """Return the cursor of a file, None without a readable one."""
        if path in self._ignored:
            return None
        try:
            cursor = msgspec.json.decode(self._place(path).read_bytes(), type=Cursor)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return cursor if cursor.path == self._gate.identifier(str(path.resolve())) else None

    def put(self, cursor: Cursor) -> None:
        """Store a cursor, whole or not at all. Raises StoreError."""
        self._write(self._place(Path(cursor.path)), msgspec.json.encode(self._gate.request(cursor)))

    def _write(self, place: Path, content: bytes) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(place, content)
        except OSError as error:
            why = f"{place} can't be written: {error.strerror}"
            raise StoreError(why, hint="check the free space and the owner of that folder") from error

    def key(self, create: bool = True) -> bytes:
        """Return the key for the hashed names of document turns, unique to this home. Raises StoreError."""
        place = self._folder / "key"
        with suppress(OSError):
            if len(key := place.read_bytes()) == KEY_BYTES:
                return key
        fresh = secrets.token_bytes(KEY_BYTES)
        if create:
            self._write(place, fresh)
        return fresh

    def begin(self, paths: Iterable[Path], now: str) -> tuple[int, int] | None:
        """Note that an import of files begins; return how many files of an import that broke off are done, and of how
        many, None without one that had these files. Raises StoreError."""
        names = {self._place(path).name for path in paths}
        broken_off = self._unfinished()
        before = set(broken_off.files) if broken_off else set[str]()
        started_at = broken_off.started_at if broken_off and before & names else now
        content = msgspec.json.encode(UnfinishedImport(started_at=started_at, files=tuple(sorted(before | names))))
        self._write(self._folder / UNFINISHED, content)
        if not broken_off or not before & names:
            return None
        done = {self._place(Path(cursor.path)).name for cursor in self.all() if cursor.imported_at >= started_at}
        return len(before & done), len(before)

    def end(self) -> None:
        """Note that an import ended: nothing of it is open. Raises StoreError."""
        try:
            (self._folder / UNFINISHED).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._folder} can't be written: {error.strerror}", hint="check its owner") from error

    def _unfinished(self) -> UnfinishedImport | None:
        try:
            return msgspec.json.decode((self._folder / UNFINISHED).read_bytes(), type=UnfinishedImport)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def all(self) -> Iterator[Cursor]:
        """Yield every readable cursor, in no order."""
        for place in self._folder.glob("*.json"):
            with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
                yield msgspec.json.decode(place.read_bytes(), type=Cursor)


def stamp(path: Path) -> tuple[int, int]:
    """Return the size of a file in bytes and when it changed, in nanoseconds. A database counts with the changes that
    its program keeps beside it. Raises OSError."""
    status = path.stat()
    size, changed = status.st_size, status.st_mtime_ns
    with suppress(OSError):
        beside = path.with_name(f"{path.name}-wal").stat()
        size, changed = size + beside.st_size, max(changed, beside.st_mtime_ns)
    return size, changed


def holds(cursor: Cursor | None, path: Path) -> Mark | None:
    """Return the mark to read on from, None if the file is another one than before."""
    if cursor is None or cursor.mark is None:
        return None
    try:
        return cursor.mark if digest_of(path, cursor.mark.offset) == cursor.digest else None
    except OSError:
        return None


def digest_of(path: Path, size: int) -> str:
    """Return a hash of a file's first `size` bytes, "" if there are fewer. Raises OSError."""
    hashed = blake2b(digest_size=16)
    with path.open("rb") as file:
        while size and (chunk := file.read(min(CHUNK, size))):
            hashed.update(chunk)
            size -= len(chunk)
    return "" if size else hashed.hexdigest()
