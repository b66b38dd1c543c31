"""Files of a client's spool: frames, or lines of JSON from a client that can't lock."""

from __future__ import annotations

import os
from pathlib import Path

from ...protocol.frames import frames

LINES = ".lines"
"""Suffix of a file of JSON lines from a client that can't lock: it has one writer, and a reader renames it first."""


def take_lines(path: Path, taken: Path) -> None:
    """Rename a file of lines, and leave an empty one of the user's alone in its place: its writer goes on, and would
    make it with a umask of its own."""
    path.rename(taken)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)


def bodies_in(content: bytes) -> tuple[list[bytes], int, bool]:
    """Frames, or lines of JSON from a client that has nothing else; and where they end."""
    if content[:1] == b"{":
        end = content.rfind(b"\n") + 1
        return content[:end].splitlines(), end, True
    bodies, end = frames(content)
    return bodies, end, False
