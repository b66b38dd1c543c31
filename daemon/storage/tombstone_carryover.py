"""Carries tombstones over a restore: what the present journal has forgotten stays forgotten in an older one (T10).

Invariants: the present journal may be damaged, so a child reads it, and an unreadable one carries nothing; the file
holds names only, and is deleted after its turns are forgotten in the restored journal.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ...protocol.operation import AnyOperation, Redacted, decode
from ...protocol.places import Places
from ..world import World
from .durable_files import remove, replace
from .journal import JournalLog
from .migrations import is_first, payloads_in_first

FILE = "forgotten.json"
REDACTED = "redacted"
Turn = tuple[str, str]


class Carried(msgspec.Struct, frozen=True):
    """Every forgotten turn, as `(document, turn)`, and the marks of turns whose names are forgotten too."""

    turns: tuple[Turn, ...] = ()
    marks: tuple[bytes, ...] = ()


def redactions_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """Run `read-redactions FOLDER`: return the turns that the journal in FOLDER has forgotten."""
    operations = _operations(Path(arguments[0]) / "journal", world)
    redactions = [operation for operation in operations if isinstance(operation, Redacted)]
    documents = (turns for redacted in redactions for turns in redacted.turns)
    marks = tuple(mark for redacted in redactions for mark in redacted.marks)
    turns = tuple((turns.document, turn) for turns in documents for turn in turns.turns)
    return msgspec.to_builtins(Carried(turns, marks))


def _operations(folder: Path, world: World) -> Iterator[AnyOperation]:
    """Yield at least the redactions of a journal of any layout: an upgrade may have been interrupted."""
    if is_first(folder):
        yield from (decode(REDACTED, payload) for payload in payloads_in_first(folder, REDACTED))
        return
    journal = JournalLog(folder, world)
    yield from (entry.operation for entry in journal.read())
    journal.close()


def carry(data: Path) -> int:
    """Note the forgotten turns before a restore moves the stores, and return their number."""
    if not (data / "journal" / "data.mdb").exists():
        return 0
    command = [sys.executable, "-P", "-m", "memd.daemon", "read-redactions", str(data)]
    result = subprocess.run(command, capture_output=True, check=False, cwd="/")
    forgotten = msgspec.json.decode(result.stdout, type=Carried) if not result.returncode else Carried()
    earlier = carried(data)
    turns = tuple(dict.fromkeys((*forgotten.turns, *earlier.turns)))
    marks = tuple(dict.fromkeys((*forgotten.marks, *earlier.marks)))
    if turns or marks:
        replace(data / FILE, msgspec.json.encode(Carried(turns, marks)))
    return len(turns) + len(marks)


def carried(data: Path) -> Carried:
    """Return the turns that a restore carried over and that are not yet forgotten again."""
    try:
        return msgspec.json.decode((data / FILE).read_bytes(), type=Carried)
    except (OSError, msgspec.MsgspecError):
        return Carried()


def settle(data: Path) -> None:
    """Delete the file, after its turns are forgotten again."""
    if (data / FILE).exists():
        remove(data / FILE)
