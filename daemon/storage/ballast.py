"""The ballast: a file that only takes up room, so that a full disk still leaves some for what must go on.

Comes in: refused writes. Goes out: room, and whether the disk is full. Invariants: the disk counts as full from the
first refused write until the ballast, and a margin beside it, could be written again: that is the probe, so memd
resumes by itself and not before there is room for what it promises (finishing a group, forgetting, a clean stop).
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from ..world import World
from .durable_files import sync

MARGIN = 1 << 20
"""Bytes that must be free beside the ballast before memd takes new things."""

PROBE_S = 1.0
"""The least time between two probes while the disk is full."""

log = logging.getLogger("memd.store")


class Ballast:
    """`size` bytes kept in one file; 0 keeps none and still probes."""

    def __init__(self, file: Path, size: int, world: World) -> None:
        self._file, self._size, self._world = file, size, world
        self._probed = float("-inf")
        self.full = False
        if self.size_bytes() < size and not self._probe():
            self.release()

    def size_bytes(self) -> int:
        """Bytes it holds on the disk now."""
        return self._file.stat().st_blocks * 512 if self._file.exists() else 0

    def release(self) -> None:
        """The disk refused a write: give the room back."""
        if not self.full:
            log.error("the disk is full: memd rejects captures until there is free space")
        self.full = True
        self._probed = self._world.monotonic()
        self._file.unlink(missing_ok=True)

    def regained(self) -> bool:
        """Whether the disk takes writes again; probes at most once a second."""
        if not self.full:
            return True
        if self._world.monotonic() - self._probed < PROBE_S or not self._probe():
            return False
        self.full = False
        log.info("the disk has free space again")
        return True

    def _probe(self) -> bool:
        self._probed = self._world.monotonic()
        fresh, margin = self._file.with_suffix(".new"), self._file.with_suffix(".probe")
        try:
            self._fill(fresh, self._size)
            self._fill(margin, MARGIN)
            margin.unlink()
            fresh.replace(self._file) if self._size else fresh.unlink()
            sync(self._file.parent)
        except OSError:
            for file in (fresh, margin):
                with contextlib.suppress(OSError):
                    file.unlink()
            return False
        return True

    def _fill(self, file: Path, size: int) -> None:
        """A file that has its blocks, not only its length. Raises OSError."""
        with file.open("wb") as opened:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(opened.fileno(), 0, size)
            else:
                for start in range(0, size, MARGIN):
                    opened.write(self._world.token(min(MARGIN, size - start)))
                opened.flush()
            os.fsync(opened.fileno())
