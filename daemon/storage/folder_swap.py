"""Replaces a projection's folder by one that was built beside it; safe to interrupt anywhere.

Invariants: the content of `building` is deleted at the next start; a folder `NAME.next` is complete and becomes `NAME`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .durable_files import sync

BUILDING = "building"
NEXT, OLD = ".next", ".old"


def fresh_folder(projections: Path) -> Path:
    """Make an empty folder to build in."""
    folder = projections / BUILDING
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return folder


def promote(projections: Path, name: str) -> None:
    """Move `building/NAME`, closed and flushed, to its place."""
    (projections / BUILDING / name).rename(projections / (name + NEXT))
    sync(projections)
    _finish(projections, name)


def settle(projections: Path) -> None:
    """Finish interrupted swaps, and delete unfinished folders."""
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
    sync(projections)
    shutil.rmtree(old, ignore_errors=True)
