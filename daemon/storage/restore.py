"""Restores a backup: moves the present stores aside, never deletes them, and puts the backup's in their place (U3).

Invariants: a child process verifies the whole backup first; the new stores have the current layout; the plan is in a
file before any move, and every step may run twice, so that a start after a power failure finishes the restore
(`finish`); projections are deleted and replayed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...protocol.errors import InvalidRequest, StorageFull, UnsupportedFormat
from ...protocol.places import Places
from ..failpoint import reach
from ..world import World
from .backup import FOLDER, STORES, Manifest, check_in_child, newest
from .durable_files import remove, replace, sync, sync_tree
from .layout_version import LAYOUT, MIGRATIONS, prepare, take_over
from .tombstone_carryover import carry

PLAN = "restoring"
PROJECTIONS = "projections"


class Plan(msgspec.Struct, frozen=True):
    """The source of the stores and the target of the present ones, both inside the data folder."""

    incoming: str
    replaced: str


class Tip(msgspec.Struct, frozen=True):
    """The last seq of a present store, and the hash of its header at the backup's last seq."""

    last: int
    fingerprint: str


def restore_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """Run `restore-backup [--preview] [--from FOLDER] [NAME]`: verify, report what would be lost, restore.

    Raises NotFound, JournalCorrupt for a damaged backup, UnsupportedFormat for a layout without a migration,
    StorageFull, JournalLocked while a daemon runs.
    """
    words = [word for word in arguments if word != "--preview"]
    folder = places.data / FOLDER
    if "--from" in words:
        at = words.index("--from")
        folder = Path(words[at + 1])
        del words[at : at + 2]
    if len(words) > 1:
        raise InvalidRequest(f"give one backup, not {' '.join(words)}", hint="name one backup, or none for the newest")
    from .folder_lock import FolderLock

    lock = FolderLock(places.data)
    try:
        finish(places.data)  # an interrupted one: its stores are the present ones
        backup, manifest = newest(folder, *words)
        manifest = _verified(backup, manifest)
        report: dict[str, object] = {"backup": msgspec.to_builtins(manifest.info(backup.name)), "verified": True}
        report["newer"] = _newer(places.data, manifest)
        if "--preview" not in arguments:
            report["replaced"] = str(restore(places.data, backup, manifest.layout, world))
        return report
    finally:
        lock.release()


def _verified(backup: Path, manifest: Manifest) -> Manifest:
    """Return the manifest with the verified stores, which the copy of a migration does not list."""
    if manifest.layout > LAYOUT or any(layout not in MIGRATIONS for layout in range(manifest.layout, LAYOUT)):
        by = f"memd {manifest.version}" if manifest.version else f"a memd of layout {manifest.layout}"
        raise UnsupportedFormat(
            f"{backup.name} has layout {manifest.layout}, written by {by}; this version reads up to layout {LAYOUT}",
            hint=f"restore it with {by} in a separate home",
        )
    return msgspec.structs.replace(manifest, stores=check_in_child(backup))


def _newer(data: Path, manifest: Manifest) -> dict[str, int]:
    """Return how many entries of each present store are not in the backup; -1 if it is unreadable."""
    seqs = [str(manifest.stores[name].last) for name in STORES]
    command = [sys.executable, "-P", "-m", "memd.daemon", "read-tips", str(data), *seqs]
    result = subprocess.run(command, capture_output=True, check=False, cwd="/")
    if result.returncode:
        return dict.fromkeys(STORES, -1)
    tips = msgspec.json.decode(result.stdout, type=dict[str, Tip])
    newer: dict[str, int] = {}
    for name in STORES:
        tip, copied = tips.get(name), manifest.stores[name]
        if tip is None:
            newer[name] = 0
        elif not copied.last or tip.fingerprint == copied.fingerprint:
            newer[name] = tip.last - copied.last
        else:  # another history: no present entry is known to be in the backup
            newer[name] = tip.last
    return newer


def restore(data: Path, backup: Path, layout: int, world: World) -> Path:
    """Put a verified backup of that layout in place and return the folder with the previous stores. Needs the folder's
    lock. Raises StorageFull, JournalCorrupt: then nothing was moved."""
    mark = world.now()
    plan = Plan(incoming=f"incoming-{mark}", replaced=f"replaced-{mark}")
    incoming = data / plan.incoming
    try:
        incoming.mkdir(mode=0o700)
        prepare(data, incoming, world)
        for name in STORES:
            (incoming / name).mkdir(mode=0o700)
            shutil.copyfile(backup / name / "data.mdb", incoming / name / "data.mdb")
            (incoming / name / "data.mdb").chmod(0o600)
        for older in range(layout, LAYOUT):
            MIGRATIONS[older](incoming, world)
        sync_tree(incoming)
        carry(data)
        replace(data / PLAN, msgspec.json.encode(plan))
    except BaseException as error:
        (data / PLAN).unlink(missing_ok=True)
        shutil.rmtree(incoming, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise StorageFull(
            f"the backup can't be copied: {error.strerror}",
            hint="memd moved no file; run `memd restore-backup` again when there is free space",
        ) from error
    finish(data)
    return data / plan.replaced


def finish(data: Path) -> bool:
    """Carry out the rest of a restore's plan; whether there was one. Needs the folder's lock."""
    file = data / PLAN
    if not file.exists():
        for left in data.glob("incoming-*"):  # interrupted before it had a plan
            shutil.rmtree(left, ignore_errors=True)
        return False
    reach("restore:planned")
    plan = msgspec.json.decode(file.read_bytes(), type=Plan)
    incoming, replaced = data / plan.incoming, data / plan.replaced
    replaced.mkdir(mode=0o700, exist_ok=True)
    for name in STORES:
        if (incoming / name).exists():
            if (data / name).exists():
                (data / name).rename(replaced / name)
            reach("restore:moved")
            (incoming / name).rename(data / name)
            sync(replaced)
            sync(data)
    if incoming.exists():
        take_over(data, incoming)
    reach("restore:placed")
    shutil.rmtree(data / PROJECTIONS, ignore_errors=True)
    shutil.rmtree(incoming, ignore_errors=True)
    remove(file)
    return True
