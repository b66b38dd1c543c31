"""The mark of a running daemon: a file that a clean stop removes, and what its presence says about the last one.

Comes in: a data folder. Goes out: how the last daemon ended. Invariants: the mark is on the disk before any store is
opened, and removed only after everything else is on the disk; so a store that may hold half a write is never taken for
a whole one. Where the machine does not say when it was started, every unclean end counts as a power cut.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

from .durable import remove, replace

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


class Marker:
    """The file `running` in a data folder: `<boot mark> opening` or `<boot mark> serving`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "running"
        self._boot = boot_mark()

    def last_end(self) -> End:
        """How the last daemon of this folder ended."""
        try:
            boot, _, phase = self._file.read_text(encoding="ascii", errors="replace").partition(" ")
        except FileNotFoundError:
            return "clean"
        if not self._boot or boot != self._boot:
            return "power"
        return "killed" if phase == "serving" else "opening"

    def opening(self) -> None:
        """From here on the stores may be touched. Raises OSError on a full disk."""
        replace(self._file, f"{self._boot} opening".encode())

    def serving(self) -> None:
        """The stores are open. Not synced: if it is lost, the next start is the more careful."""
        self._file.write_text(f"{self._boot} serving", encoding="ascii")

    def clear(self) -> None:
        """Everything is on the disk."""
        remove(self._file)
