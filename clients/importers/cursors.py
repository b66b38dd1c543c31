"""How far each file was imported: a small file for each, in the state folder, of names, places and hashes alone.

Comes in: paths, and what an import came to. Goes out: the mark to read on from. Invariants: a cursor never decides what
memd knows, only where reading begins: it holds as long as the bytes before its mark are the same ones, and the caller
reads the whole file where the daemon does not know the turn at the mark; it is written after all before it is durable;
no words of a session stand in it (T10).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from .transcript import Mark

CHUNK = 1024 * 1024
KEY_BYTES = 32


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """What an import came to. `digest`: of the bytes before the mark; `probe`: document and turn of the line there;
    `times`: of a document's turns, when first met."""

    path: str
    agent: str
    size: int
    mtime_ns: int
    imported_at: str
    mark: Mark | None = None
    digest: str = ""
    probe: tuple[str, str] = ("", "")
    times: dict[str, str] = {}


class Cursors:
    """The cursors of one home."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "imports"
        self._passed_over: set[Path] = set()

    def pass_over(self, paths: Iterable[Path]) -> None:
        """Takes these files for new ones, until a cursor is kept for them again."""
        self._passed_over.update(paths)

    def _place(self, path: Path) -> Path:
        return self._folder / f"{blake2b(bytes(path.resolve()), digest_size=16).hexdigest()}.json"

    def get(self, path: Path) -> Cursor | None:
        """The cursor of a file, None if there is none that can be read: then all of it is read."""
        if path in self._passed_over:
            return None
        try:
            found = msgspec.json.decode(self._place(path).read_bytes(), type=Cursor)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return found if found.path == str(path.resolve()) else None

    def put(self, cursor: Cursor) -> None:
        """Keeps a cursor, whole or not at all. Raises StoreError."""
        self._write(self._place(Path(cursor.path)), msgspec.json.encode(cursor))

    def _write(self, place: Path, content: bytes) -> None:
        fresh = place.with_suffix(f".{os.getpid()}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(place)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()
            why = f"{place} can't be written: {error.strerror}"
            raise StoreError(why, hint="see the room and the owner of that folder") from error

    def key(self, create: bool = True) -> bytes:
        """What the names of this home's documents' turns are hashed with. Raises StoreError."""
        place = self._folder / "key"
        with suppress(OSError):
            if len(found := place.read_bytes()) == KEY_BYTES:
                return found
        fresh = secrets.token_bytes(KEY_BYTES)
        if create:
            self._write(place, fresh)
        return fresh

    def all(self) -> Iterator[Cursor]:
        """Every cursor that can be read, in no order."""
        for place in self._folder.glob("*.json"):
            with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
                yield msgspec.json.decode(place.read_bytes(), type=Cursor)


def holds(cursor: Cursor | None, path: Path) -> Mark | None:
    """The mark to read on from, None if the file is another one than it was: then it is read whole."""
    if cursor is None or cursor.mark is None:
        return None
    try:
        return cursor.mark if digest_of(path, cursor.mark.offset) == cursor.digest else None
    except OSError:
        return None


def digest_of(path: Path, size: int) -> str:
    """A hash of a file's first `size` bytes, "" if there are fewer. Raises OSError."""
    hashed = blake2b(digest_size=16)
    with path.open("rb") as file:
        while size and (chunk := file.read(min(CHUNK, size))):
            hashed.update(chunk)
            size -= len(chunk)
    return "" if size else hashed.hexdigest()
