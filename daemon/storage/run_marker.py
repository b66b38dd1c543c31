"""A marker file that tells the next start how the last daemon ended.

Invariants: the mark is on the disk before any store is opened, and `clean` only after everything else is on the disk.
Where the machine does not tell its boot, every unclean end counts as a power failure.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal

from .durable_files import replace

End = Literal["clean", "killed", "opening", "power"]
"""`killed`: while serving; `opening`: killed while it opened the stores, perhaps by them; `power`: power failure."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_mark() -> str:
    """Return an id of the machine's current boot, "" if unknown."""
    if BOOT_ID.exists():
        return BOOT_ID.read_text(encoding="ascii").strip()
    try:  # macOS
        result = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], check=False, capture_output=True, text=True
        )
    except OSError:
        return ""
    return result.stdout.strip()


CLEAN, LENGTH = "clean", 64


class Marker:
    """The file `running` in a data folder: `<boot mark> opening`, `<boot mark> serving` or, after a clean end, `clean`.

    It is written in place, because a full disk has no space for another file. An interrupted write leaves no boot id
    and counts as a power failure.
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
        """Mark that the stores may change from now on. Raises OSError on a full disk."""
        self._put(f"{self._boot} opening")

    def serving(self) -> None:
        """Mark that the stores are open. Not flushed: if it is lost, the next start checks more."""
        self._put(f"{self._boot} serving", synced=False)

    def clear(self) -> None:
        """Mark that everything is on the disk."""
        self._put(CLEAN)

    def _put(self, text: str, *, synced: bool = True) -> None:
        content = text.ljust(LENGTH).encode("ascii")
        if not self._file.exists():
            replace(self._file, content)
            return
        with self._file.open("r+b", buffering=0) as file:
            file.write(content)
            if synced:
                os.fsync(file.fileno())
