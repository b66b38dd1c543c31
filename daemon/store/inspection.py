"""Stores looked at after an unclean stop, in a child process, before the daemon maps them.

Comes in: a data folder and the names of its stores. Goes out: what is wrong with each, or nothing. Invariants: LMDB
does not check the pages it maps, and a bad one kills the process that reads it; so the pages are first walked as plain
bytes, then the log's chain is followed, all in a child whose death is a finding; the daemon opens what passed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import lmdb.verify as pages
import msgspec

from ...protocol.errors import MemdError
from ...protocol.operation import Checkpoint
from ..world import real_world
from .archive import Archive
from .journal import Journal

TIMEOUT_S = 600.0
PROBLEMS = 3


class Finding(msgspec.Struct, frozen=True):
    """A store with what is wrong with it, "" if nothing is; `done` is False in the line that announces it."""

    store: str
    done: bool = False
    problem: str = ""


def inspect(folder: Path, stores: Sequence[str]) -> dict[str, str]:
    """The damaged ones among `stores`, each with what is wrong with it. A store that does not exist is sound."""
    left = [store for store in stores if (folder / store / "data.mdb").exists()]
    found: dict[str, str] = {}
    while left:
        command = [sys.executable, "-P", "-m", __name__, str(folder), *left]
        told = subprocess.run(
            command, check=False, capture_output=True, stdin=subprocess.DEVNULL, cwd="/", timeout=TIMEOUT_S
        )
        lines = [msgspec.json.decode(line, type=Finding) for line in told.stdout.splitlines()]
        for line in lines:
            if line.done:
                left.remove(line.store)
                if line.problem:
                    found[line.store] = line.problem
        if told.returncode and left:  # it died of the store it had announced last, or before any
            culprit = left.pop(0)
            found[culprit] = f"reading it ended the process: {_death(told.returncode, told.stderr)}"
    return found


def _death(code: int, said: bytes) -> str:
    if code < 0:
        return signal.Signals(-code).name
    return said.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {code}"


class _Child:
    """The stores of one folder, looked at in order. Reading any of them may end the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._point = Checkpoint()

    def problem(self, store: str) -> str:
        """What is wrong with one store, "" if nothing is."""
        try:
            wrong = pages.verify(str(self._folder / store))
        except (pages.VerifyError, OSError) as error:
            wrong = [str(error)]
        if wrong:
            more = f" and {len(wrong) - PROBLEMS} more" if len(wrong) > PROBLEMS else ""
            return "; ".join(wrong[:PROBLEMS]) + more
        try:
            if store == "journal":
                journal = Journal(self._folder / store, real_world())
                self._point = journal.checkpoint()
                journal.log.verify(self._point.journal_seq, self._point.journal_tip)
            elif store == "archive":
                archive = Archive(self._folder / store, real_world())
                archive.log.verify(self._point.archive_seq, self._point.archive_tip)
        except MemdError as error:
            return error.message
        return ""


def main(folder: Path, stores: Sequence[str]) -> None:
    """The child: one line before each store, one after it."""
    child = _Child(folder)
    for store in stores:
        for found in (Finding(store), None):
            line = found or Finding(store, True, child.problem(store))
            sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
