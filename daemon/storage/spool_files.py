"""Files of a client's spool: frames, or lines of JSON from a client that can't lock."""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
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


def try_lock(path: Path, until: ExitStack) -> bool:
    """Lock a spool of frames against its clients until `until` closes; return False if a client delivers or writes."""
    for suffix in (".drain", ".lock"):
        file = os.open(path.with_suffix(suffix), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        until.callback(os.close, file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def bodies_in(content: bytes) -> tuple[list[bytes], int, bool]:
    """Return the requests of a spool, the offset of their end, and whether they are lines of JSON. A shell writes a
    command or folder in the bytes that it has: what is not UTF-8 is replaced, as `memd spool` does."""
    if content[:1] == b"{":
        end = content.rfind(b"\n") + 1
        return content[:end].decode(errors="replace").encode().splitlines(), end, True
    bodies, end = frames(content)
    return bodies, end, False
