"""The mark of a running daemon: a file that a clean stop changes back, and what it says about the last one.

Comes in: a data folder. Goes out: how the last daemon ended. Invariants: the mark is on the disk before any store is
opened, and taken back only after everything else is on the disk; so a store that may hold half a write is never taken
for a whole one. Where the machine does not say when it was started, every unclean end counts as a power cut.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal

from .durable_files import replace

End = Literal["clean", "killed", "opening", "power"]
"""`clean`; `killed` while serving; killed while `opening` (what it opened may be why); the machine went down."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_mark() -> str:
    """What changes when the machine starts anew, "" where that can't be told."""
    if BOOT_ID.exists():
        return BOOT_ID.read_text(encoding="ascii").strip()
    try:  # macOS
        told = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], check=False, capture_output=True, text=True
        )
    except OSError:
        return ""
    return told.stdout.strip()


CLEAN, LENGTH = "clean", 64


class Marker:
    """The file `running` in a data folder: `<boot mark> opening`, `<boot mark> serving` or, after a clean end, `clean`.

    It is changed in its place: on a disk that is full to the last block there is no room for another. What a cut-off
    write leaves of it names no boot, so it counts as a power cut.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "running"
        self._boot = boot_mark()

    def last_end(self) -> End:
        """How the last daemon of this folder ended."""
        try:
            boot, _, phase = self._file.read_text(encoding="ascii", errors="replace").strip().partition(" ")
        except FileNotFoundError:
            return "clean"
        if boot == CLEAN:
            return "clean"
        if not self._boot or boot != self._boot:
            return "power"
        return "killed" if phase == "serving" else "opening"

    def opening(self) -> None:
        """From here on the stores may be touched. Raises OSError on a full disk."""
        self._put(f"{self._boot} opening")

    def serving(self) -> None:
        """The stores are open. Not synced: if it is lost, the next start is the more careful."""
        self._put(f"{self._boot} serving", synced=False)

    def clear(self) -> None:
        """Everything is on the disk."""
        self._put(CLEAN)

    def _put(self, words: str, *, synced: bool = True) -> None:
        content = words.ljust(LENGTH).encode("ascii")
        if not self._file.exists():
            replace(self._file, content)
            return
        with self._file.open("r+b", buffering=0) as file:
            file.write(content)
            if synced:
                os.fsync(file.fileno())
