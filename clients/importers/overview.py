"""What an import of files would take, told from their heads and names alone: sessions, projects, and a rough time.

The rates are of `memd import` until every capture is processed, on two cores that other programs used too: 6.3 MB of
Claude Code's sessions took 31 s; a session of text alone, 28 kB with 40 events, took 5 s with the start of the worker.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...protocol.errors import StoreError
from .store_reader import database

HEAD = 64 * 1024
"""Bytes at the begin of a file in which its project's folder is looked for."""
DATABASE_LIMIT = 1024 * 1024 * 1024
"""Bytes of the largest database that is opened to count its sessions."""

START_S = 3
BYTES_A_SECOND = {"aider": 20_000, "specstory": 20_000}
OTHER_BYTES_A_SECOND = 200_000

_FOLDER = re.compile(rb'"(?:cwd|directory|workspacePath)"\s*:\s*("(?:[^"\\]|\\.){1,1000}")')
_COUNTS = {
    "opencode.db": ("SELECT count(*) FROM session", "SELECT DISTINCT directory FROM session"),
    "state.vscdb": ("SELECT count(*) FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'", ""),
}


class Overview(NamedTuple):
    """The sessions in files, the number of their projects as far as it is known, and about how long an import takes."""

    sessions: int
    projects: int
    seconds: int


def overview(agent: str, files: Sequence[tuple[Path, int]]) -> Overview:
    """Return the overview of files of an agent, each with its size in bytes."""
    sessions, projects, total = 0, set[str](), 0
    for path, size_bytes in files:
        count, folders = _counted(path, size_bytes) if path.name in _COUNTS else (1, {_folder(agent, path)})
        sessions, total = sessions + count, total + size_bytes
        projects |= folders
    seconds = START_S + int(reading_s(agent, total)) if files else 0
    return Overview(sessions, len(projects - {""}), seconds)


def reading_s(agent: str, size_bytes: int) -> float:
    """Return about how many seconds files of that size take, without the start of the worker."""
    return size_bytes / BYTES_A_SECOND.get(agent, OTHER_BYTES_A_SECOND)


def _counted(path: Path, size_bytes: int) -> tuple[int, set[str]]:
    count, folders = _COUNTS[path.name]
    if size_bytes > DATABASE_LIMIT:
        return 1, set()
    with suppress(StoreError, sqlite3.Error), database(path) as connection:
        listed = {str(row[0]) for row in connection.execute(folders)} if folders else set[str]()
        return int(connection.execute(count).fetchone()[0]), listed
    return 1, set()


def _folder(agent: str, path: Path) -> str:
    """Return what tells the project of a file's first session, "" if nothing does."""
    if agent == "aider":
        return str(path.parent)
    with suppress(OSError), path.open("rb") as file:
        if told := _FOLDER.search(file.read(HEAD)):
            with suppress(msgspec.MsgspecError):
                return msgspec.json.decode(told[1], type=str)
    if agent == "cline":
        return ""
    return str(path.parent if agent in {"claude-code", "pi"} else path.parent.parent)
