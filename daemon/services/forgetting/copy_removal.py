"""Removes backups and restored-over stores that contain forgotten text, after a new backup is written.

A copy goes if it has a payload that the live log has no more, or another one, or if it can't be read. The new backup
contains the redaction, so restoring it does not bring the text back.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Event

from ....protocol.block import REMOVED
from ....protocol.errors import MemdError
from ....protocol.operation import Redacted
from ...projections.stores import Stores
from ...storage.backup import FOLDER, write_backup
from ...storage.durable_files import sync
from ...storage.log import Log
from ...storage.migrations import is_first, stored_in_first
from ...world import World

NAMES = ("journal", "archive")
PARTIAL = ".partial-"
log = logging.getLogger("memd.forget")


def drop_copies(stores: Stores, redacted: Redacted, world: World, stopping: Event) -> tuple[list[str], str]:
    """Delete every copy with redacted text, and write a new backup if one was deleted; return both by name."""
    backups = stores.folder / FOLDER
    entries = [remnant.seq for remnant in redacted.entries]
    captures = sorted({*redacted.captures, *(cut.seq for cut in redacted.cuts)})
    doomed: list[Path] = []
    for copy in _copies(stores.folder):
        if _holds(copy / "journal", stores.journal.log, entries, world) or _holds(
            copy / "archive", stores.archive.log, captures, world
        ):
            doomed.append(copy)
    written = ""
    if any(copy.parent == backups and not copy.name.startswith(PARTIAL) for copy in doomed):
        try:
            written = write_backup(stores.journal, stores.archive, backups, world, stopping).name
        except MemdError as error:
            log.error("could not write a new backup to replace the deleted ones: %s", error.message)
    for copy in doomed:
        _drop(copy)
    return [copy.name for copy in doomed], written


def _copies(data: Path) -> Iterable[Path]:
    """Return every folder with a copy of a store below the data folder."""
    places = {path.parent.parent for name in NAMES for path in data.rglob(f"{name}/data.mdb")}
    return sorted(place for place in places if place != data)


def _holds(folder: Path, live: Log, seqs: Sequence[int], world: World) -> bool:
    """Return whether a copy has a payload that the live log removed or cut. A copy of another history counts too."""
    if not seqs or not (folder / "data.mdb").exists():
        return False
    try:
        held, present = _stored(folder, world, seqs), live.stored(seqs)
    except MemdError:
        return True
    return any(stored not in (REMOVED, present.get(seq)) for seq, stored in held.items())


def _stored(folder: Path, world: World, seqs: Sequence[int]) -> dict[int, bytes]:
    if is_first(folder):  # what a migration keeps
        return stored_in_first(folder, seqs)
    log_ = Log(folder, world, readonly=True, alone=True)
    try:
        return log_.stored(seqs)
    finally:
        log_.close()


def _drop(copy: Path) -> None:
    doomed = copy if copy.name.startswith(PARTIAL) else copy.with_name(PARTIAL + copy.name)
    if doomed != copy:
        copy.rename(doomed)  # a half-deleted copy must not look complete
        sync(copy.parent)
    shutil.rmtree(doomed, ignore_errors=True)
    sync(copy.parent)
