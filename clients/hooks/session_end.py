"""Captures the sessions of a host without hooks: its MCP server ends with a session, and notes the files that grew."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ...protocol.places import Places
from ..importers.agent_files import IMPORTABLE, find
from ..python.folder import make_private
from . import follow
from .notes import SessionNote, folder


def capture(places: Places, agent: str, since_s: float) -> int:
    """Have the session files of an agent read that changed since a time; return their number. Raises OSError,
    Refused."""
    importable = IMPORTABLE[agent]
    files = find(importable.places(os.environ), importable.patterns, importable.example)
    grown = [file for file in files if _changed_s(file) >= since_s]
    if not grown or "MEMD_PASS" in os.environ or (places.config / "disabled").exists():
        return 0
    make_private(folder(places.state))
    lines = b"".join(msgspec.json.encode(SessionNote(agent=agent, path=str(file))) + b"\n" for file in grown)
    with (folder(places.state) / "queue").open("ab") as queue:
        queue.write(lines)
    follow.start()
    return len(grown)


def _changed_s(path: Path) -> float:
    """Return when a file changed; a database's newest changes are in a file beside it."""
    beside = path.with_name(f"{path.name}-wal")
    return max(each.stat().st_mtime for each in (path, beside) if each.exists())
