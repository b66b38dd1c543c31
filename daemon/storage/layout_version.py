"""The layout of the data folder: its number and history in `format.json`, and migrations from older layouts.

Invariants: memd never makes an empty store beside an existing one: a folder is new, known, migrated or rejected;
`format.json` is written after the stores it describes are on the disk; a migration works on stores that are copied to
`backups/`, and an interrupted one starts again from that copy, which the file `migrating` names until the end, unless
an older memd changed the stores meanwhile: then they are copied again.
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
"""Names that may exist in a folder without stores."""

LIKE_OURS = (".", "replaced-", "running", "format.json.", "ballast.", "sums.json", "model.json")
"""Prefixes of such names: hidden files, stores that a restore moved aside, files of an interrupted start."""

MIGRATING = "migrating"
"""The file that names the copy from which an interrupted migration starts again. Without it a copy belongs to a
finished migration, and the folder is newer."""

Migration = Callable[[Path, World], None]
MIGRATIONS: Mapping[int, Migration] = {1: to_blocks}
"""By their first layout: each changes the stores of a folder in place to the next layout."""

log = logging.getLogger("memd.store")


class Written(msgspec.Struct, frozen=True):
    """One line of the history: the version of memd that made this layout, and when."""

    layout: int
    memd: str
    at: str


class Format(msgspec.Struct, frozen=True):
    """`format.json`."""

    layout: int
    history: tuple[Written, ...] = ()


def read_format(folder: Path) -> Format | None:
    """Return the content of `format.json`, None without it. Raises UnsupportedFormat if it does not parse."""
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
    """Migrate a folder to `layout`; True if it is new, and the caller has to call `settle` after it made the stores.

    Raises UnsupportedFormat for a layout without a migration, JournalCorrupt for a missing store, StorageFull.
    """
    format = read_format(folder)
    if format is None:
        return _check_without_format(folder)
    _refuse_newer(folder, format, layout)
    while format.layout < layout:
        if format.layout not in migrations:
            raise UnsupportedFormat(
                f"{folder} has layout {format.layout}, which this version cannot migrate to {layout}",
                hint="migrate it with an intermediate version first",
            )
        format = _migrate(folder, format, migrations[format.layout], world)
    if (folder / MIGRATING).exists():  # also if only its removal was interrupted
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
    """Raise UnsupportedFormat for a folder of another layout, for programs that read it beside the daemon."""
    format = read_format(folder)
    if format is None:
        return
    _refuse_newer(folder, format, LAYOUT)
    if format.layout < LAYOUT:
        raise UnsupportedFormat(
            f"{folder} has layout {format.layout}, of an older memd; memd {__version__} reads {LAYOUT}",
            hint="`memd up` migrates it and keeps a copy of the old layout",
        )


def _refuse_newer(folder: Path, format: Format, layout: int) -> None:
    if format.layout > layout:
        newest = format.history[-1].memd if format.history else "a later version"
        raise UnsupportedFormat(
            f"{folder} has layout {format.layout}, written by memd {newest}; memd {__version__} reads layout {layout}",
            hint=f"install memd {newest} or later",
        )


def _check_without_format(folder: Path) -> bool:
    """Raise UnsupportedFormat unless a folder without `format.json` is new, or its creation was interrupted."""
    names = {path.name for path in folder.iterdir()} - PASSING
    strange = sorted(name for name in names - OURS if not name.startswith(LIKE_OURS))
    if strange or ("archive" in names and "journal" not in names):
        raise UnsupportedFormat(
            f"{folder} holds {', '.join(strange) or 'an archive without its journal'} and no format.json",
            hint="memd needs an empty folder or one of its own: move these files, or set MEMD_HOME to another folder",
        )
    return True


def settle(folder: Path, world: World, *, layout: int = LAYOUT) -> None:
    """Flush the stores of a new folder and write `format.json`, so that they are never made again."""
    for name in STORES:
        sync_tree(folder / name)
    _write(folder, Format(layout), layout, world)


def _write(folder: Path, before: Format, layout: int, world: World) -> Format:
    line = Written(layout, __version__, from_micros(world.now()))
    after = Format(layout, (*before.history, line))
    replace(folder / "format.json", msgspec.json.format(msgspec.json.encode(after), indent=2) + b"\n")
    return after


def prepare(folder: Path, incoming: Path, world: World) -> None:
    """Write a `format.json` beside the incoming stores, which have the current layout, if the folder's differs. Delete
    the unfinished files of an interrupted migration, whose space the stores may need."""
    for left in (*(folder / f"{name}.new" for name in STORES), *(folder / "backups").glob("layout-*.new")):
        shutil.rmtree(left, ignore_errors=True)
    try:
        format = read_format(folder) or Format(0)
    except UnsupportedFormat:  # its history is lost
        format = Format(0)
    if format.layout != LAYOUT:
        _write(incoming, format, LAYOUT, world)


def take_over(folder: Path, incoming: Path) -> None:
    """Take the `format.json` of the incoming stores after they are in place, and end an interrupted migration, so that
    its copy never replaces them. Idempotent and flushed."""
    if (incoming / "format.json").exists():
        for name in DISPOSABLE:
            shutil.rmtree(folder / name, ignore_errors=True)
        (incoming / "format.json").rename(folder / "format.json")
        sync(folder)
    remove(folder / MIGRATING)


def _migrate(folder: Path, format: Format, migration: Migration, world: World) -> Format:
    log.info("migrating %s from layout %d", folder, format.layout)
    copy = folder / "backups" / _copy_name(folder, format.layout)
    try:
        if copy.exists():  # an interrupted migration: the folder may be half migrated
            for path in folder.iterdir():
                if path.is_dir() and path.name != "backups" and not (copy / path.name).exists():
                    shutil.rmtree(path)  # made by the interrupted migration
            _copy(copy, folder)
        else:
            _snapshot(folder, copy)
        reach("migration:begun")
        migration(folder, world)
        for name in DISPOSABLE:
            shutil.rmtree(folder / name, ignore_errors=True)
        remove(folder / "sums.json")  # its files were replaced
        sync_tree(folder)
        reach("migration:done")
        return _write(folder, format, format.layout + 1, world)
    except OSError as error:
        raise StorageFull(
            f"could not migrate from layout {format.layout}: {error.strerror}",
            hint=f"free some space and start again; the old stores are safe in {copy}",
        ) from error


def _copy_name(folder: Path, layout: int) -> str:
    """Return the name of the copy of an interrupted migration from this layout, or an unused name."""
    name = f"layout-{layout}"
    marked = (folder / MIGRATING).read_text() if (folder / MIGRATING).exists() else ""
    if (marked == name or marked.startswith(f"{name}-")) and not _changed_since(folder, folder / "backups" / marked):
        return marked
    free = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(name for name in free if not (folder / "backups" / name).exists())


def _changed_since(folder: Path, copy: Path) -> bool:
    """Whether the stores differ from their copy, because an older memd, which ignores the mark, wrote to them. A
    migration keeps the last seq and hash of each store; an interrupted one may leave unreadable stores."""
    if not copy.exists():
        return False
    try:
        now, then = check_in_child(folder), check_in_child(copy)
    except JournalCorrupt:
        return False
    if all((now[name].last, now[name].fingerprint) == (then[name].last, then[name].fingerprint) for name in STORES):
        return False
    log.warning("%s changed after it was copied to %s; copying it again", folder, copy)
    return True


def _snapshot(folder: Path, copy: Path) -> None:
    """Copy the stores, then name the copy in the mark: a copy without a mark belongs to a finished migration."""
    fresh = copy.with_name(copy.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700, parents=True)
    _copy(folder, fresh)
    replace(folder / MIGRATING, copy.name.encode())
    reach("migration:marked")
    fresh.rename(copy)
    sync(copy.parent)
    sync(folder)


def _copy(source: Path, target: Path) -> None:
    for path in sorted(source.iterdir()):
        if path.is_dir() and path.name not in (*DISPOSABLE, "backups") and path.suffix != ".new":
            shutil.rmtree(target / path.name, ignore_errors=True)
            shutil.copytree(path, target / path.name, ignore=shutil.ignore_patterns("lock.mdb"))
            sync_tree(target / path.name)
            reach("migration:snapshot")
    sync(target)
