"""Backups of journal and archive, taken while writes go on and read back before they count (U3).

Layout: `<folder>/<UTC time>/{journal,archive,manifest.json}`. Invariants:
- the journal is copied first, so that the archive's copy has every capture that an operation names;
- a backup gets its name after a child process verified chain and checksums and its manifest is on the disk; an
  unfinished one has a name that starts with a dot, and the next backup deletes it;
- a manifest has the last seqs, the hashes of the last headers and of the files, and the format.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b, file_digest
from pathlib import Path
from threading import Event

import msgspec

from ... import __version__
from ...protocol.errors import JournalCorrupt, NotFound, Refused, Stopping, StorageFull
from ...protocol.instant import from_micros
from ...protocol.places import Places
from ...protocol.reply import BackupInfo, BackupList
from ..world import World
from .archive import Archive
from .durable_files import replace, sync
from .journal import JournalLog
from .log import FORMAT, Log
from .migrations import LAYOUT, check_first, is_first

FOLDER = "backups"
STORES = ("journal", "archive")
MANIFEST = "manifest.json"
CHECK_POLL_S = 0.2
MIGRATION_COPY = re.compile(r"layout-(\d+)(-\d+)?")
"""The name of a migration's copy of that layout: a backup without a manifest, never the newest."""

UNCOUNTED = -1


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """One store in a backup; `fingerprint` is the hash of its last header."""

    last: int
    fingerprint: str
    file_hash: str
    size_bytes: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a backup, written after its verification. `at` in microseconds in UTC."""

    format: int
    layout: int = 1
    version: str
    at: int
    stores: dict[str, Copied]

    def info(self, name: str) -> BackupInfo:
        """Return the manifest as the protocol's type."""
        return BackupInfo(
            name=name,
            at=from_micros(self.at),
            version=self.version,
            journal_seq=self.stores["journal"].last,
            archive_seq=self.stores["archive"].last,
            size_bytes=sum(copied.size_bytes for copied in self.stores.values()),
            layout=self.layout,
            current=self.layout == LAYOUT,
        )


def write_backup(journal: JournalLog, archive: Archive, folder: Path, world: World, stopping: Event) -> Path:
    """Write a backup to a new folder below `folder`, verify it and return its path. Never two at once.

    Raises StorageFull, JournalCorrupt if the verification fails, Stopping, Refused for a folder of another user.
    """
    _private(folder)
    for left in folder.glob(".partial-*"):
        shutil.rmtree(left, ignore_errors=True)
    at = world.now()
    name = _free_name(folder, at)
    partial = folder / f".partial-{name}"
    try:
        partial.mkdir(mode=0o700)
        for store, log in (("journal", journal.log), ("archive", archive.log)):
            log.environment.rewrite(partial / store)
        stores = check_in_child(partial, stopping)
        manifest = Manifest(format=FORMAT, layout=LAYOUT, version=__version__, at=at, stores=stores)
        replace(partial / MANIFEST, msgspec.json.encode(manifest))
        (partial / MANIFEST).chmod(0o600)
        partial.rename(folder / name)
        sync(folder)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise StorageFull(
            f"could not write a backup to {folder}: {error.strerror}", hint="free some space there"
        ) from error
    return folder / name


def _private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.stat().st_uid
    except OSError as error:
        raise Refused(f"{folder}: {error.strerror}", hint="name a folder that memd can write: --to DIR") from error
    if owner != os.getuid():
        raise Refused(
            f"{folder} belongs to uid {owner}", hint="a backup is as private as the memory: use a folder of your own"
        )


def _free_name(folder: Path, at: int) -> str:
    base = datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y%m%dT%H%M%SZ")
    name, number = base, 1
    while (folder / name).exists():
        number += 1
        name = f"{base}-{number}"
    return name


def backups(folder: Path) -> list[tuple[str, Manifest]]:
    """Return the complete backups in a folder, with a readable manifest and all stores, oldest first."""
    complete: list[tuple[str, Manifest]] = []
    for path in folder.glob(f"[!.]*/{MANIFEST}"):
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if manifest.stores.keys() >= {*STORES} and _is_whole(path.parent):
            complete.append((path.parent.name, manifest))
    return sorted(complete, key=lambda pair: (pair[1].at, pair[0]))


def _is_whole(path: Path) -> bool:
    return all((path / name / "data.mdb").is_file() for name in STORES)


def _migration_copies(folder: Path) -> list[tuple[str, Manifest]]:
    """Return the copies of migrations in a folder, without opening their stores."""
    copies: list[tuple[str, Manifest]] = []
    for path in folder.glob("layout-*"):
        named = MIGRATION_COPY.fullmatch(path.name)
        if not named or (path / MANIFEST).exists() or not _is_whole(path):
            continue
        sizes = {name: (path / name / "data.mdb").stat().st_size for name in STORES}
        stores = {
            name: Copied(last=UNCOUNTED, fingerprint="", file_hash="", size_bytes=size) for name, size in sizes.items()
        }
        layout, at = int(named[1]), path.stat().st_mtime_ns // 1000
        copies.append((path.name, Manifest(format=layout, layout=layout, version="", at=at, stores=stores)))
    return copies


def restorable(folder: Path) -> list[tuple[str, Manifest]]:
    """Return the backups and the copies of migrations in a folder, oldest first."""
    return sorted([*backups(folder), *_migration_copies(folder)], key=lambda pair: (pair[1].at, pair[0]))


def listed(own: Path, folder: str) -> BackupList:
    """List what can be restored from a folder, or for "" from memd's own, which may not exist. Raises NotFound."""
    where = Path(folder) if folder else own
    if folder and not os.path.isdir(where):
        raise NotFound(f"there is no folder {folder}", hint="give the folder of an earlier `memd backup --to`")
    return BackupList(folder=str(where), backups=tuple(manifest.info(name) for name, manifest in restorable(where)))


def newest(folder: Path, name: str = "newest") -> tuple[Path, Manifest]:
    """Return the backup or migration copy of that name, or the newest backup. Raises NotFound."""
    for known, manifest in reversed(backups(folder) if name == "newest" else restorable(folder)):
        if name in (known, "newest"):
            return folder / known, manifest
    names = ", ".join(known for known, _ in restorable(folder))
    hint = f"there are: {names}" if names else "`memd backup` makes one; `--from FOLDER` reads another folder"
    if not folder.is_dir():
        raise NotFound(f"no backup: there is no folder {folder}", hint=hint)
    if (folder / MANIFEST).exists() or MIGRATION_COPY.fullmatch(folder.name):
        raise NotFound(
            f"{folder} is a backup, not a folder of backups", hint=f"use `--from {folder.parent} {folder.name}`"
        )
    if "/" in name:
        raise NotFound(f"{name!r} is not the name of a backup but a path", hint="use `--from FOLDER NAME`")
    if name and name in {path.name for path in folder.iterdir()}:
        raise NotFound(f"{folder / name} is not a complete backup", hint=hint)
    raise NotFound(f"no backup in {folder}" if name == "newest" else f"no backup {name!r} in {folder}", hint=hint)


def is_newer(journal: JournalLog, archive: Archive, folder: Path) -> bool:
    """Whether something was written since the newest backup in a folder, or there is none."""
    existing = backups(folder)
    if not existing:
        return bool(journal.last or archive.last)
    stores = existing[-1][1].stores
    logs = {"journal": journal.log, "archive": archive.log}
    return any(log.fingerprint(log.last) != stores[name].fingerprint for name, log in logs.items())


def rotate(folder: Path, keep: int) -> list[str]:
    """Remove all complete backups except the newest `keep` (at least one); return the removed names."""
    removed = [name for name, _ in backups(folder)[: -max(1, keep)]]
    for name in removed:
        doomed = folder / f".partial-{name}"
        (folder / name).rename(doomed)  # so that an interrupted removal leaves no backup
        shutil.rmtree(doomed, ignore_errors=True)
    return removed


# --- reading back ------------------------------------------------------------------------------------------------
def check_in_child(folder: Path, stopping: Event | None = None) -> dict[str, Copied]:
    """Run `check` in a child process at low priority, because a damaged page may kill the reader.

    Raises JournalCorrupt with the child's reason, Stopping if the daemon stops meanwhile.
    """
    command = [sys.executable, "-P", "-m", "memd.daemon", "check-backup", str(folder)]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"
    )
    while True:
        try:
            output, errors = process.communicate(timeout=CHECK_POLL_S)
            break
        except subprocess.TimeoutExpired as error:
            if stopping is not None and stopping.is_set():
                process.kill()
                process.wait()
                raise Stopping("memd is stopping", hint="memd makes the backup after the next start") from error
    if process.returncode:
        lines = errors.decode(errors="replace").splitlines()
        named = [line.removeprefix("memd: ") for line in lines if line.startswith("memd: ")]
        reason = (named or lines[-1:] or [f"the process that read it ended with status {process.returncode}"])[0]
        raise JournalCorrupt(
            f"{folder.name.removeprefix('.partial-')} failed verification: {reason}",
            hint="`memd verify` checks the live store; `memd backup --list` shows the others",
        )
    return msgspec.json.decode(output, type=dict[str, Copied])


def check(folder: Path, world: World) -> dict[str, Copied]:
    """Check every hash and link of a backup, first its files, if it has a manifest. Raises JournalCorrupt, NotFound."""
    file = folder / MANIFEST
    manifest = msgspec.json.decode(file.read_bytes(), type=Manifest) if file.exists() else None
    hashes = file_hashes(folder, manifest)
    stores: dict[str, Copied] = {}
    for name, digest in hashes.items():
        size = (folder / name / "data.mdb").stat().st_size
        last, tip = check_first(folder / name) if is_first(folder / name) else _check_log(folder / name, world)
        stores[name] = Copied(last=last, fingerprint=tip, file_hash=digest, size_bytes=size)
    if manifest and manifest.stores != stores:
        raise JournalCorrupt(f"{folder.name} does not match its manifest", hint="use another backup")
    return stores


def _check_log(folder: Path, world: World) -> tuple[int, str]:
    log = Log(folder, world, readonly=True, alone=True)
    try:
        log.verify()
        return log.last, log.fingerprint(log.last)
    finally:
        log.close()


def file_hashes(folder: Path, manifest: Manifest | None) -> dict[str, str]:
    """Return the hash of each file of a backup, compared with its manifest. Raises JournalCorrupt, NotFound."""
    hashes: dict[str, str] = {}
    for name in STORES:
        file = folder / name / "data.mdb"
        if not file.exists():
            raise NotFound(f"{folder} has no {name}", hint="it is not a backup of memd")
        with file.open("rb") as stream:
            hashes[name] = file_digest(stream, lambda: blake2b(digest_size=32)).hexdigest()
        if manifest and manifest.stores[name].file_hash != hashes[name]:
            raise JournalCorrupt(f"the {name} of {folder.name} does not match its checksum", hint="use another backup")
    return hashes


def check_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """Run `check-backup FOLDER`, which `check_in_child` starts."""
    os.nice(10)
    return check(Path(arguments[0]), world)


def list_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """Run `list-backups [FOLDER]`: list backups without a daemon. Raises NotFound."""
    return msgspec.to_builtins(listed(places.data / FOLDER, *arguments or [""]))


def tips_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """Run `read-tips FOLDER JOURNAL_SEQ ARCHIVE_SEQ`: return the last seqs, and the hashes of the headers at those."""
    tips: dict[str, object] = {}
    for name, seq in zip(STORES, arguments[1:], strict=True):
        if (Path(arguments[0]) / name / "data.mdb").exists():
            log = Log(Path(arguments[0]) / name, world, readonly=True, alone=True)
            tips[name] = {"last": log.last, "fingerprint": log.fingerprint(int(seq))}
            log.close()
    return tips
