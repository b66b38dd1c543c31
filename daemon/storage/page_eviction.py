"""Pages of mapped files that were read once and are not needed now leave this process (P-2).

Comes in: a folder. Goes out: nothing. Invariants: whatever is read again is found again, from the system's cache, at
the cost of a minor fault; nothing is written, and where the system offers no such thing nothing happens.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from pathlib import Path

MADV_DONTNEED = 4


def let_go(folder: Path) -> None:
    """Take the mapped pages of the files below `folder` out of resident memory.

    A start reads a hundred thousand rows through LMDB's map, and every page it passed would count as memd's for good.
    """
    if sys.platform != "linux":
        return
    below = f"{folder.resolve()}/"
    with suppress(OSError):
        libc = ctypes.CDLL(None)
        for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            fields = line.split(maxsplit=5)  # from-to, rights, offset, device, inode, path
            if len(fields) == 6 and fields[5].startswith(below) and "w" not in fields[1]:
                start, end = (int(each, 16) for each in fields[0].split("-"))
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_DONTNEED)
