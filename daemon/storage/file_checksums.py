"""Checksums of the files of a folder, to tell at the next start whether they are what was left.

Comes in: a folder. Goes out: a CRC-32 for each file by its path. Invariant: locks, which change without meaning, are
left out; two threads read, because the checksum is taken without the interpreter's lock.
"""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LOCKS = frozenset({"lock.mdb", ".tantivy-writer.lock", ".tantivy-meta.lock"})
CHUNK = 1 << 20


def sums_of(root: Path, name: str) -> dict[str, int]:
    """CRC-32 by path relative to `root`, of every file below `root / name`. Raises OSError."""
    files = sorted(path for path in (root / name).rglob("*") if path.is_file() and path.name not in LOCKS)
    with ThreadPoolExecutor(2) as pool:
        return dict(zip((str(path.relative_to(root)) for path in files), pool.map(_sum, files), strict=True))


def _sum(file: Path) -> int:
    value = 0
    with file.open("rb", buffering=0) as opened:
        while chunk := opened.read(CHUNK):
            value = zlib.crc32(chunk, value)
    return value
