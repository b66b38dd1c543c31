"""Files that are still there after a power cut: written whole, synced, and their names synced.

Comes in: paths and bytes. Goes out: the same on the disk. Invariant: a name is on the disk only when its folder was
synced after it was made; so whoever makes, renames or removes a file that matters syncs the folder too.
"""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """What was written to this file, or the names in this folder, is on the disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Every file and every name below a folder is on the disk when this returns."""
    for at, _, names in os.walk(folder):
        for name in names:
            sync(Path(at) / name)
        sync(Path(at))


def replace(path: Path, content: bytes) -> None:
    """Put `content` into a file, all or nothing, on the disk when this returns. Raises OSError."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file, if it is there; its name is gone from the disk when this returns."""
    path.unlink(missing_ok=True)
    sync(path.parent)
