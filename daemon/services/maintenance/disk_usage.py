"""Disk usage by part, and how to reduce it; counts each file of the data and state folders once."""

from __future__ import annotations

from pathlib import Path

from ....protocol.places import Places
from ....protocol.reply import DiskPart, DiskUse
from ...projections.stores import Stores
from ...storage.backup import FOLDER

BLOCK = 512
REBUILT = "`memd rebuild all` rebuilds it from the journal"


def disk_use(stores: Stores, places: Places) -> DiskUse:
    """Return the bytes on disk by part, biggest first."""
    sizes: dict[str, int] = {}
    for root in dict.fromkeys((places.data, places.state)):
        for path in root.rglob("*"):
            size = _allocated(path)
            if size:
                name = _part(path.relative_to(root), places, path)
                sizes[name] = sizes.get(name, 0) + size
    free = {
        "journal": stores.journal.log.environment.free_bytes(),
        "archive": stores.archive.log.environment.free_bytes(),
        "tables": stores.tables.environment.free_bytes(),
    }
    parts = [_described(name, size, free.get(name, 0)) for name, size in sizes.items()]
    parts.sort(key=lambda part: (-part.size_bytes, part.name))
    return DiskUse(parts=tuple(parts), total_bytes=sum(sizes.values()))


def _allocated(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:  # removed while we look
        return 0
    return status.st_blocks * BLOCK if path.is_file() and not path.is_symlink() else 0


def _part(below: Path, places: Places, path: Path) -> str:
    first = below.parts[0]
    if path.is_relative_to(places.spool):
        return "spool"
    if path.name.startswith(places.log.name):
        return "logs"
    if first == "projections" and len(below.parts) > 2:
        return below.parts[1]
    if first.startswith(("replaced-", "incoming-")):
        return "replaced"
    return first if len(below.parts) > 1 or first == "ballast" else "other"


def _described(name: str, size: int, free: int) -> DiskPart:
    match name:
        case "journal" | "archive":
            return DiskPart(
                name=name, size_bytes=size, free_bytes=free, freed_by="`memd maintain compact`" if free else ""
            )
        case "tables":
            return DiskPart(name=name, size_bytes=size, free_bytes=free, freed_by=REBUILT if free else "")
        case "replaced":
            freed_by = "delete the folders replaced-… in the data folder once you have checked the restored memory"
            return DiskPart(name=name, size_bytes=size, free_bytes=size, freed_by=freed_by)
        case _ if name == FOLDER:
            return DiskPart(name=name, size_bytes=size, freed_by="`memd backup --keep 1`, or the setting backup_keep")
        case "spool":
            return DiskPart(
                name=name, size_bytes=size, free_bytes=size, freed_by="`memd up` delivers the waiting requests"
            )
        case "logs":
            return DiskPart(name=name, size_bytes=size, freed_by="memd rotates it; the setting log_bytes sets its size")
        case _:
            return DiskPart(name=name, size_bytes=size)
