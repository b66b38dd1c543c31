"""What a host already reads of a playbook: memd's block in the file for agents of a project (G5).

The block is written by `memd pi agents`; its two marker lines are those of `clients/pi/agents_block.py`.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from ....protocol.record import Record
from ....protocol.repository_folder import repository_folder
from ..playbook_belief import statement

_BEGIN, _END = "<!-- memd:begin -->", "<!-- memd:end -->"
_READ_BY = {"claude-code": "CLAUDE.md", "gemini-cli": "GEMINI.md"}
_DEFAULT = "AGENTS.md"
"""The file of every other host."""

BYTES = 256_000
"""Most bytes of a file that are read; a longer one has no block for memd."""

Stated = frozenset[str]
"""Lines of a block."""

NOTHING: Stated = frozenset()


def stated(document: str, cwd: str) -> Stated:
    """Return the lines of the block that the host of a session reads in its folder or its repository."""
    if not document or not cwd:
        return NOTHING
    name = _READ_BY.get(document.partition(":")[0], _DEFAULT)
    here = Path(cwd)
    folders = dict.fromkeys((here, repository_folder(here) or here))
    return NOTHING.union(*(_block(str(folder / name)) for folder in folders))


def is_stated(record: Record, lines: Stated) -> bool:
    """Whether a block has a record's statement."""
    return f"- {' '.join(statement(record).split())}" in lines


def _block(path: str) -> Stated:
    try:
        seen = os.stat(path)
    except OSError:
        return NOTHING
    return _lines(path, seen.st_mtime_ns, seen.st_size) if seen.st_size <= BYTES else NOTHING


@lru_cache(64)
def _lines(path: str, _changed_at: int, _size: int) -> Stated:
    """Return the lines between the markers of a file in this state."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip() for line in file]
    except OSError:
        return NOTHING
    if lines.count(_BEGIN) != 1 or lines.count(_END) != 1:
        return NOTHING
    return frozenset(lines[lines.index(_BEGIN) + 1 : lines.index(_END)])
