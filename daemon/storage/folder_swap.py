"""A fresh projection takes the place of an old one: built aside, complete, then renamed; safe to cut off anywhere.

Comes in: the folder of the projections. Goes out: folders in their places. Invariants: what lies below `building` is of
no use to anybody after a stop, and goes; a folder `NAME.next` is complete, and becomes `NAME` whenever it is found.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

BUILDING = "building"
NEXT, OLD = ".next", ".old"


def fresh_folder(projections: Path) -> Path:
    """An empty folder to build in."""
    folder = projections / BUILDING
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return folder


def promote(projections: Path, name: str) -> None:
    """Move `building/NAME`, closed and on the disk, to its place."""
    (projections / BUILDING / name).rename(projections / (name + NEXT))
    _sync(projections)
    _finish(projections, name)


def settle(projections: Path) -> None:
    """Finish the swaps that a stop cut off, and discard what was only half built."""
    if projections.exists():
        shutil.rmtree(projections / BUILDING, ignore_errors=True)
        for complete in projections.glob("*" + NEXT):
            _finish(projections, complete.name.removesuffix(NEXT))
        for old in projections.glob("*" + OLD):
            shutil.rmtree(old, ignore_errors=True)


def _finish(projections: Path, name: str) -> None:
    place, old = projections / name, projections / (name + OLD)
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    (projections / (name + NEXT)).rename(place)
    _sync(projections)
    shutil.rmtree(old, ignore_errors=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
