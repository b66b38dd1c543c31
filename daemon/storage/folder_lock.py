"""One process a home: an exclusive lock on the data folder, taken before anything in it is opened (P-11, P-26).

Comes in: a folder. Goes out: the lock, or the process that holds it. Invariant: the kernel lets go of it with the
process, so nothing stale is ever left behind.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from ...protocol.errors import JournalLocked

HOLDER_S, HOLDER_TRIES = 1.0, 100
"""How long, and how often, the holder's number is looked for."""


class FolderLock:
    """An exclusive lock on a folder, held as long as the process lives. Raises JournalLocked, naming the holder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = (folder / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = self._holder()
            self._file.close()
            raise JournalLocked(
                f"process {holder} already uses {folder}",
                hint="only one daemon may use a home: see `memd status`, or run `memd down`",
            ) from error
        self._file.truncate(0)
        with suppress(OSError):  # a full disk: the number only says who it is
            os.write(self._file.fileno(), str(os.getpid()).encode())

    def _holder(self) -> str:
        """Who holds it: a process that has only just taken it writes its number a moment later."""
        for _ in range(HOLDER_TRIES):
            self._file.seek(0)
            if found := self._file.read().strip():
                return found
            time.sleep(HOLDER_S / HOLDER_TRIES)
        return "unknown"

    def release(self) -> None:
        """Let go of the folder."""
        self._file.truncate(0)
        self._file.close()
