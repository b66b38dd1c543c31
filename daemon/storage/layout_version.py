"""The layout of the data folder: its number, the history beside it, and the way from an older one.

Comes in: a locked data folder, before anything in it is opened. Goes out: the same in the layout this version knows, or
an error. Invariants: an empty store is never made beside one that was there: a folder is new, known, migrated or
refused; `format.json` is written after what it speaks of is on the disk; a migration works on stores of which a copy
lies in `backups/`, and one that was cut off starts again from that copy, which the file `migrating` names until all is
done; unless an older memd wrote to the stores meanwhile: then they are copied anew.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ... import __version__
from ...protocol.errors import JournalCorrupt, StorageFull, UnsupportedFormat
from ...protocol.instant import from_micros
from ..failpoint import reach
from ..world import World
from .backup import check_in_child
from .durable_files import remove, replace, sync, sync_tree
from .migrations import LAYOUT, to_blocks

STORES = ("journal", "archive")
DISPOSABLE = ("projections", "vectors")
OURS = frozenset({*STORES, *DISPOSABLE, "backups"})
PASSING = frozenset({"lock", "ballast", "lost+found"})
"""Names that may stand in a folder without stores."""

LIKE_OURS = (".", "replaced-", "running", "format.json.", "ballast.", "sums.json", "model.json")
"""Beginnings of the same: hidden files, what a restore set aside, what a start that was cut off left."""

MIGRATING = "migrating"
"""The file that names the copy from which a migration that was cut off starts again. Without it a copy is one of a
migration that was finished, and what stands in the folder is newer."""

Migration = Callable[[Path, World], None]
MIGRATIONS: Mapping[int, Migration] = {1: to_blocks}
"""By the layout they start from: each changes the stores of a folder in place to the next layout."""

log = logging.getLogger("memd.store")


class Written(msgspec.Struct, frozen=True):
    """One line of the history: which memd brought the folder to this layout, when."""

    layout: int
    memd: str
    at: str


class Format(msgspec.Struct, frozen=True):
    """`format.json`."""

    layout: int
    history: tuple[Written, ...] = ()


def read_format(folder: Path) -> Format | None:
    """What `format.json` says, None without one. Raises UnsupportedFormat where it can't be understood."""
    try:
        return msgspec.json.decode((folder / "format.json").read_bytes(), type=Format)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise UnsupportedFormat(
            f"{folder / 'format.json'} does not parse: {error}",
            hint="correct it by hand; `memd restore-backup` rewrites it",
        ) from error


def bring_up(
    folder: Path, world: World, *, layout: int = LAYOUT, migrations: Mapping[int, Migration] = MIGRATIONS
) -> bool:
    """Bring a folder to `layout`; True if its stores are new and `settle` is to be called once they are made.

    Raises UnsupportedFormat for a layout without a way, JournalCorrupt for a store that is gone, StorageFull.
    """
    found = read_format(folder)
    if found is None:
        return _look_without_format(folder)
    _refuse_newer(folder, found, layout)
    while found.layout < layout:
        if found.layout not in migrations:
            raise UnsupportedFormat(
                f"{folder} has layout {found.layout}, which this version cannot migrate to {layout}",
                hint="migrate it with an intermediate version first",
            )
        found = _migrate(folder, found, migrations[found.layout], world)
    if (folder / MIGRATING).exists():  # also where only this was cut off
        reach("migration:written")
        remove(folder / MIGRATING)
    for name in STORES:
        if not (folder / name / "data.mdb").exists():
            raise JournalCorrupt(
                f"{folder / name} is missing; memd does not replace it with an empty store",
                hint="move it back, or see `memd restore-backup`",
            )
    return False


def require_current(folder: Path) -> None:
    """Raises UnsupportedFormat for a folder of another layout: what reads beside the daemon can't understand it."""
    found = read_format(folder)
    if found is None:
        return
    _refuse_newer(folder, found, LAYOUT)
    if found.layout < LAYOUT:
        raise UnsupportedFormat(
            f"{folder} has layout {found.layout}, of an older memd; memd {__version__} reads {LAYOUT}",
            hint="`memd up` migrates it and keeps a copy of the old layout",
        )


def _refuse_newer(folder: Path, found: Format, layout: int) -> None:
    if found.layout > layout:
        newest = found.history[-1].memd if found.history else "a later version"
        raise UnsupportedFormat(
            f"{folder} has layout {found.layout}, written by memd {newest}; memd {__version__} reads layout {layout}",
            hint=f"install memd {newest} or later",
        )


def _look_without_format(folder: Path) -> bool:
    """A folder without `format.json` is new, was cut off while it was made, or is none of ours."""
    names = {path.name for path in folder.iterdir()} - PASSING
    strange = sorted(name for name in names - OURS if not name.startswith(LIKE_OURS))
    if strange or ("archive" in names and "journal" not in names):
        raise UnsupportedFormat(
            f"{folder} holds {', '.join(strange) or 'an archive without its journal'} and no format.json",
            hint="memd needs an empty folder or one of its own: move these files, or set MEMD_HOME to another folder",
        )
    return True


def settle(folder: Path, world: World, *, layout: int = LAYOUT) -> None:
    """The stores of a new folder are made and on the disk: from now on they are never made again."""
    for name in STORES:
        sync_tree(folder / name)
    _write(folder, Format(layout), layout, world)


def _write(folder: Path, before: Format, layout: int, world: World) -> Format:
    line = Written(layout, __version__, from_micros(world.now()))
    after = Format(layout, (*before.history, line))
    replace(folder / "format.json", msgspec.json.format(msgspec.json.encode(after), indent=2) + b"\n")
    return after


def prepare(folder: Path, incoming: Path, world: World) -> None:
    """Beside stores of today's layout that are to take the place of the folder's: a `format.json`, where its own says
    anything else. What a migration that was cut off was still making goes: it may be the room that they need."""
    for left in (*(folder / f"{name}.new" for name in STORES), *(folder / "backups").glob("layout-*.new")):
        shutil.rmtree(left, ignore_errors=True)
    try:
        found = read_format(folder) or Format(0)
    except UnsupportedFormat:  # its history is lost
        found = Format(0)
    if found.layout != LAYOUT:
        _write(incoming, found, LAYOUT, world)


def take_over(folder: Path, incoming: Path) -> None:
    """Those stores are in place: their `format.json` counts, and the copy of a migration that was cut off never comes
    over them. May be done twice, and is on the disk when this returns."""
    if (incoming / "format.json").exists():
        for name in DISPOSABLE:
            shutil.rmtree(folder / name, ignore_errors=True)
        (incoming / "format.json").rename(folder / "format.json")
        sync(folder)
    remove(folder / MIGRATING)


def _migrate(folder: Path, found: Format, migration: Migration, world: World) -> Format:
    log.info("migrating %s from layout %d", folder, found.layout)
    kept = folder / "backups" / _copy_name(folder, found.layout)
    try:
        if kept.exists():  # cut off before: what stands in the folder may be half migrated
            for path in folder.iterdir():
                if path.is_dir() and path.name != "backups" and not (kept / path.name).exists():
                    shutil.rmtree(path)  # made by the migration: it would stand in its own way
            _copy(kept, folder)
        else:
            _snapshot(folder, kept)
        reach("migration:begun")
        migration(folder, world)
        for name in DISPOSABLE:
            shutil.rmtree(folder / name, ignore_errors=True)
        remove(folder / "sums.json")  # of files that are no more
        sync_tree(folder)
        reach("migration:done")
        return _write(folder, found, found.layout + 1, world)
    except OSError as error:
        raise StorageFull(
            f"could not migrate from layout {found.layout}: {error.strerror}",
            hint=f"free some space and start again; the old stores are safe in {kept}",
        ) from error


def _copy_name(folder: Path, layout: int) -> str:
    """The copy of the migration from this layout that was cut off; a name that none has where none was."""
    name = f"layout-{layout}"
    marked = (folder / MIGRATING).read_text() if (folder / MIGRATING).exists() else ""
    if (marked == name or marked.startswith(f"{name}-")) and not _went_on(folder, folder / "backups" / marked):
        return marked
    free = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(each for each in free if not (folder / "backups" / each).exists())


def _went_on(folder: Path, kept: Path) -> bool:
    """Whether the stores say anything else than the copy of them: then an older memd, which knows of no mark, wrote
    them since. A migration keeps the last seq and hash of each; one that was cut off may leave what does not read."""
    if not kept.exists():
        return False
    try:
        now, then = check_in_child(folder), check_in_child(kept)
    except JournalCorrupt:
        return False
    if all((now[name].last, now[name].fingerprint) == (then[name].last, then[name].fingerprint) for name in STORES):
        return False
    log.warning("%s changed after it was copied to %s; copying it again", folder, kept)
    return True


def _snapshot(folder: Path, kept: Path) -> None:
    """Copy the stores, then name the copy in the mark: so a copy without its mark is none that was cut off."""
    fresh = kept.with_name(kept.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700, parents=True)
    _copy(folder, fresh)
    replace(folder / MIGRATING, kept.name.encode())
    reach("migration:marked")
    fresh.rename(kept)
    sync(kept.parent)
    sync(folder)


def _copy(source: Path, target: Path) -> None:
    for path in sorted(source.iterdir()):
        if path.is_dir() and path.name not in (*DISPOSABLE, "backups") and path.suffix != ".new":
            shutil.rmtree(target / path.name, ignore_errors=True)
            shutil.copytree(path, target / path.name, ignore=shutil.ignore_patterns("lock.mdb"))
            sync_tree(target / path.name)
            reach("migration:snapshot")
    sync(target)
