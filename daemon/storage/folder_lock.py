"""An exclusive lock on the data folder, taken before anything in it is opened (P-11, P-26)."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from ...protocol.errors import JournalLocked

LOCK_TRIES, LOCK_PAUSE_S = 3, 0.02
HOLDER_S, HOLDER_TRIES = 1.0, 100
"""Seconds to wait for the holder's process id, and the number of reads in them."""


class FolderLock:
    """The lock. Raises JournalLocked, naming the process that holds it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = (folder / "lock").open("a+", encoding="ascii")
        if not self._is_taken():
            holder = self._holder()
            self._file.close()
            raise JournalLocked(
                f"process {holder} already uses {folder}",
                hint="only one daemon may use a home: see `memd status`, or run `memd down`",
            )
        self._file.truncate(0)
        with suppress(OSError):  # a full disk: the id is only informative
            os.write(self._file.fileno(), str(os.getpid()).encode())

    def _is_taken(self) -> bool:
        """Take the lock, in a few tries: `memd down` holds it for a moment to learn whether a daemon does."""
        for attempt in range(LOCK_TRIES):
            if attempt:
                time.sleep(LOCK_PAUSE_S)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                continue
        return False

    def _holder(self) -> str:
        """Return the holder's process id, which it writes a moment after it takes the lock."""
        for _ in range(HOLDER_TRIES):
            self._file.seek(0)
            if holder := self._file.read().strip():
                return holder
            time.sleep(HOLDER_S / HOLDER_TRIES)
        return "unknown"

    def release(self) -> None:
        """Release the lock."""
        self._file.truncate(0)
        self._file.close()
