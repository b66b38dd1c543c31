"""`python -m memd.clients.hooks.session_end AGENT SECONDS`: captures what an agent's sessions got since a time.

The MCP server of a host without hooks starts this program as it ends, which is with a session of most hosts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...protocol.errors import MemdError
from ...protocol.places import Places, why_disabled
from ..importers.agent_files import agent_named, find
from ..python.client import places_here
from ..python.folder import make_private
from . import follow
from .notes import SessionNote, folder


def note_changed(places: Places, agent: str, since_s: float) -> int:
    """Note the session files of an agent that changed since a time (seconds since 1970); return their number. Raises
    InvalidRequest, NotFound, OSError, Refused."""
    importable = agent_named(agent)
    files = find(importable.places(os.environ), importable.patterns, importable.example)
    grown = [file for file in files if _changed_s(file) >= since_s]
    if not grown or why_disabled(os.environ, places):
        return 0
    make_private(folder(places.state))
    lines = b"".join(msgspec.json.encode(SessionNote(agent=agent, path=str(file))) + b"\n" for file in grown)
    with (folder(places.state) / "queue").open("ab") as queue:
        queue.write(lines)
    return len(grown)


def _changed_s(path: Path) -> float:
    """Return when a file changed; a database's newest changes are in a file beside it."""
    beside = path.with_name(f"{path.name}-wal")
    return max(each.stat().st_mtime for each in (path, beside) if each.exists())


def main(arguments: Sequence[str]) -> int:
    """Note the files and read them, at low priority; without the right to write, not at all."""
    if "MEMD_PASS" in os.environ:
        return 3
    agent, since_s = arguments
    try:
        note_changed(places_here(), agent, float(since_s))
    except (MemdError, OSError, ValueError):
        return 3
    return follow.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
