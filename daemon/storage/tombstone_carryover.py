"""Carries tombstones over a restore: what the present journal has forgotten stays forgotten in an older one (T10).

Invariants: the present journal may be damaged, so a child reads it, and an unreadable one carries nothing; the file
holds names only, and is deleted after its turns are forgotten in the restored journal."""

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
    """Every turn that is forgotten: `(document, turn)`."""

    turns: tuple[Turn, ...] = ()


def redactions_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`read-redactions FOLDER`: the turns that the journal there has forgotten."""
    found = [each for each in _operations(Path(arguments[0]) / "journal", world) if isinstance(each, Redacted)]
    return {"turns": [(one.document, turn) for each in found for one in each.turns for turn in one.turns]}


def _operations(folder: Path, world: World) -> Iterator[AnyOperation]:
    """Those of any layout that can carry what was forgotten: an upgrade may have been cut off before it came here."""
    if is_first(folder):
        yield from (decode(REDACTED, payload) for payload in payloads_in_first(folder, REDACTED))
        return
    journal = JournalLog(folder, world)
    yield from (entry.operation for entry in journal.read())
    journal.close()


def carry(data: Path) -> int:
    """Before a restore moves the stores: note what they have forgotten; how many turns."""
    if not (data / "journal" / "data.mdb").exists():
        return 0
    command = [sys.executable, "-P", "-m", "memd.daemon", "read-redactions", str(data)]
    told = subprocess.run(command, capture_output=True, check=False, cwd="/")
    found = msgspec.json.decode(told.stdout, type=Carried) if not told.returncode else Carried()
    turns = tuple(dict.fromkeys((*found.turns, *carried(data))))
    if turns:
        replace(data / FILE, msgspec.json.encode(Carried(turns)))
    return len(turns)


def carried(data: Path) -> tuple[Turn, ...]:
    """The turns that a restore carried over and that are not forgotten again yet."""
    try:
        return msgspec.json.decode((data / FILE).read_bytes(), type=Carried).turns
    except (OSError, msgspec.MsgspecError):
        return ()


def settle(data: Path) -> None:
    """They are forgotten again: the file goes."""
    if (data / FILE).exists():
        remove(data / FILE)
