"""Checks the stores after an unclean stop, in a child process, before the daemon maps them.

LMDB does not check the pages that it maps, and a damaged one kills the process that reads it: the death of the child
is a finding. If only the process was killed, the kernel's pages are whole; after a power failure, or if opening failed,
every page is checked as plain bytes.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import lmdb
import lmdb.verify as pages
import msgspec

from ...protocol.errors import JournalCorrupt, MemdError, StoreError
from ...protocol.operation import Checkpoint
from ..world import real_world
from .archive import Archive
from .checksummed_rows import unseal, walk
from .journal import JournalLog

TIMEOUT_S = 600.0
PROBLEMS = 3
MOST_TABLES = 64
TABLES = "projections/tables"
"""Every row of these has a checksum."""

REPAIRED = b"index"
"""A table that a start writes again if it is damaged: the start checks its rows."""


class InspectionFinding(msgspec.Struct, frozen=True):
    """The problem of a store, "" for none; `done` is False in the line that announces the check."""

    store: str
    done: bool = False
    problem: str = ""


def inspect(folder: Path, stores: Sequence[str], *, thorough: bool = True) -> dict[str, str]:
    """Return the damaged stores, each with its problem. A store that does not exist is sound.

    `thorough` checks each page as bytes and the whole chain; else each row, and the chain since the last checkpoint.
    """
    left = [store for store in stores if (folder / store / "data.mdb").exists()]
    problems: dict[str, str] = {}
    while left:
        command = [sys.executable, "-P", "-m", __name__, "thorough" if thorough else "quick", str(folder), *left]
        result = subprocess.run(
            command, check=False, capture_output=True, stdin=subprocess.DEVNULL, cwd="/", timeout=TIMEOUT_S
        )
        lines = [msgspec.json.decode(line, type=InspectionFinding) for line in result.stdout.splitlines()]
        for line in lines:
            if line.done:
                left.remove(line.store)
                if line.problem:
                    problems[line.store] = line.problem
        if left:  # the child died of the store that it announced last, or before any
            if (code := result.returncode) < 0:
                reason = signal.Signals(-code).name
            else:
                reason = result.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {code}"
            problems[left.pop(0)] = f"the process that read it crashed: {reason}"
    return problems


def _verify(folder: Path) -> list[str]:
    """Check every page as plain bytes: structure, order, counts, free pages. 7 µs a row."""
    try:
        return pages.verify(str(folder))
    except (pages.VerifyError, OSError) as error:
        return [str(error)]


def _walk(folder: Path, sealed: bool) -> list[str]:
    """Read every row through LMDB, and its checksum if `sealed`. A bad page may end the process. 1 µs a row."""
    problems: list[str] = []
    try:
        environment = lmdb.open(str(folder), max_dbs=MOST_TABLES, readonly=True, create=False)
        with environment.begin() as transaction:
            for name in [name for name, _ in transaction.cursor().iternext()]:
                if name == REPAIRED:
                    continue
                try:
                    for key, stored in walk(transaction, environment.open_db(name, transaction, create=False)):
                        if sealed:
                            unseal(key, stored, "a row")
                except MemdError as error:
                    problems.append(f"{name.decode()}: {error.message}")
        environment.close()
    except (lmdb.Error, UnicodeDecodeError) as error:
        return [*problems, str(error)]
    return problems


class _Child:
    """Checks the stores of one folder in order. Reading any of them may end the process."""

    def __init__(self, folder: Path, thorough: bool) -> None:
        self._folder, self._thorough = folder, thorough
        self._point = Checkpoint()

    def problem(self, store: str) -> str:
        """Return the problem of one store, "" for none."""
        problems = _verify(self._folder / store) if self._thorough else []
        if not problems and (not self._thorough or store == TABLES):
            problems = _walk(self._folder / store, sealed=store == TABLES)
        if problems:
            more = f" and {len(problems) - PROBLEMS} more" if len(problems) > PROBLEMS else ""
            return "; ".join(problems[:PROBLEMS]) + more
        try:
            if store == "journal":
                journal = JournalLog(self._folder / store, real_world())
                self._point = Checkpoint() if self._thorough else journal.checkpoint()
                journal.log.verify(self._point.journal_seq, self._point.journal_tip)
            elif store == "archive":
                archive = Archive(self._folder / store, real_world())
                archive.is_indexed()
                archive.log.verify(self._point.archive_seq, self._point.archive_tip)
        except JournalCorrupt as error:
            return error.message
        except StoreError:
            pass  # no damage: the next opening raises it again
        return ""


def main(thorough: bool, folder: Path, stores: Sequence[str]) -> None:
    """Run the child: write one line before each store and one after it."""
    child = _Child(folder, thorough)
    for store in stores:
        for announcement in (InspectionFinding(store), None):
            line = announcement or InspectionFinding(store, True, child.problem(store))
            sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1] == "thorough", Path(sys.argv[2]), sys.argv[3:])
