"""A reserve file that leaves space on a full disk for work that must finish.

Invariants: the disk counts as full from the first refused write until the reserve and a margin can be written again, so
memd resumes by itself, and only with space to finish a group, to forget and to stop.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from ..world import World
from .durable_files import sync

MARGIN = 1 << 20
"""Bytes that must be free beside the reserve before memd accepts writes."""

PROBE_S = 1.0
"""Seconds between two probes while the disk is full."""

log = logging.getLogger("memd.store")


class Ballast:
    """A file of `size` bytes; with 0 there is no file, only the probe."""

    def __init__(self, file: Path, size: int, world: World) -> None:
        self._file, self._size, self._world = file, size, world
        self._probed = float("-inf")
        self.full = False
        if self.size_bytes() < size and not self._probe():
            self.release()

    def size_bytes(self) -> int:
        """Return the bytes that it uses on the disk."""
        return self._file.stat().st_blocks * 512 if self._file.exists() else 0

    def release(self) -> None:
        """Free its space after a refused write."""
        if not self.full:
            log.error("the disk is full: memd rejects captures until there is free space")
        self.full = True
        self._probed = self._world.monotonic()
        self._file.unlink(missing_ok=True)

    def regained(self) -> bool:
        """Whether the disk accepts writes again; probes at most once a second."""
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
        """Write a file with allocated blocks. Raises OSError."""
        with file.open("wb") as stream:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(stream.fileno(), 0, size)
            else:
                for start in range(0, size, MARGIN):
                    stream.write(self._world.token(min(MARGIN, size - start)))
                stream.flush()
            os.fsync(stream.fileno())
