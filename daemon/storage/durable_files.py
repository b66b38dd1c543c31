"""Files that survive a power failure: written whole, with file and folder flushed.

Invariant: a new, renamed or removed name is durable only after a flush of its folder.
"""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Flush every file and every name below a folder."""
    for at, _, names in os.walk(folder):
        for name in names:
            sync(Path(at) / name)
        sync(Path(at))


def replace(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically and flush it. Raises OSError."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file, if it exists, and flush its folder."""
    path.unlink(missing_ok=True)
    sync(path.parent)
