"""The reading of stores that hold whole sessions: SQLite databases, and files of one JSON value.

Invariant: nothing is written, locked or created beside a program's database; one that its program has open is read from
a private copy.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from ...protocol.errors import StoreError
from .json_line import BadLine, checked_time, output_words
from .session_reader import Document, SessionReader, unreadable
from .transcript import CapturedSession

FILE_LIMIT = 256 * 1024 * 1024
"""Bytes of the largest file of one JSON value that is read."""

_BESIDE = ("-wal", "-journal")
_COPIES = 3


class StoreReader(SessionReader):
    """Reads the messages of several sessions, each of which the store has whole. `document`: of the next message."""

    has_whole_sessions = True
    document: Document

    @property
    def main(self) -> Document | None:
        """None: no session owns the store."""
        return None

    @property
    def is_settled(self) -> bool:
        """Whether a mark may stand here: never, since a store has no lines."""
        return False

    def state(self) -> bytes:
        """Return an empty state."""
        return b""

    def take_output(self, call: str, output: object) -> str:
        """Take the output of a tool call of this session, decoded or as JSON; return the line's kind."""
        words = output_words(output)
        self.sources.returned(call, words)
        return self.document.take_output(call, self.time, words, self.output_limit)

    def sessions(self, cwd: str) -> tuple[CapturedSession, ...]:
        """Return the sessions with events, each with its start and its end."""
        return tuple(document.close(self.host, True, cwd) for document in self.documents.values() if document.events)


def instant_of(milliseconds: float | None) -> str:
    """Return a time in milliseconds since 1970 as an event's time. Raises BadLine."""
    if milliseconds is None:
        raise BadLine("it has no time")
    try:
        return checked_time(datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds"))
    except (OverflowError, OSError, ValueError) as error:
        raise BadLine(f"{milliseconds} is not a time in milliseconds") from error


def read_whole(path: Path) -> bytes:
    """Return the content of a file of one JSON value. Raises BadLine for one over the limit, StoreError."""
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise BadLine(f"longer than {FILE_LIMIT:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


@contextmanager
def database(path: Path) -> Generator[sqlite3.Connection]:
    """Open a SQLite database for reading, without a lock. Raises StoreError."""
    with tempfile.TemporaryDirectory(prefix="memd-") as folder:
        place, is_copy = _settled_copy(path, Path(folder))
        options = "mode=ro" if is_copy else "mode=ro&immutable=1"
        try:
            connection = sqlite3.connect(f"file:{quote(str(place))}?{options}", uri=True)
        except sqlite3.Error as error:
            raise _damaged(path, error) from error
        connection.text_factory = _text
        try:
            yield connection
        except sqlite3.Error as error:
            raise _damaged(path, error) from error
        finally:
            connection.close()


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _settled_copy(path: Path, folder: Path) -> tuple[Path, bool]:
    """Return the database, and whether it is a copy: of one with changes beside it. Raises StoreError."""
    try:
        for _ in range(_COPIES):
            beside = {suffix: _stamp(path, suffix) for suffix in _BESIDE}
            if not any(size for size, _ in beside.values()):
                return path.resolve(), False
            for suffix in (*_BESIDE, ""):
                if suffix == "" or beside[suffix][0]:
                    shutil.copyfile(f"{path}{suffix}", folder / f"copy.db{suffix}")
            if beside == {suffix: _stamp(path, suffix) for suffix in _BESIDE}:
                return folder / "copy.db", True
    except OSError as error:
        raise unreadable(path, error) from error
    raise StoreError(f"{path} changes all the time", hint="quit its program, then import it again")


def _stamp(path: Path, suffix: str) -> tuple[int, int]:
    with suppress(FileNotFoundError):
        status = Path(f"{path}{suffix}").stat()
        return status.st_size, status.st_mtime_ns
    return 0, 0


def _damaged(path: Path, error: sqlite3.Error) -> StoreError:
    return StoreError(f"{path} is no database that can be read: {error}", hint="quit its program, then import it again")


_QUOTED = re.compile(r'\A\s*"([^"]*)"\s*\Z', re.DOTALL)


def unquoted(text: str) -> str:
    """Return a text without the quotes that a program put around an argument of its command line."""
    quoted_text = _QUOTED.match(text)
    return quoted_text[1] if quoted_text else text
