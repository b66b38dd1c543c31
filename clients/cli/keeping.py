"""`memd backup`, `memd restore-backup`, `memd du`, `memd expire`: what keeps the memory safe and small.

Comes in: a wish. Goes out: what is true afterwards. Invariants: restoring needs the daemon down and the user's word,
and says first what would be lost; long work runs in the daemon and shows its progress here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import (
    InvalidRequest,
    JournalLocked,
    MemdError,
    NotFound,
    Refused,
    StoreError,
    Unavailable,
)
from ...protocol.reply import BackupInfo, BackupList, DiskUse, JobState
from ..python import launch
from ..python.client import places_here
from .contact import path, reach
from .offline import offline, reported
from .output import Answer, JsonFlag, is_watched, plain, styled, wrapped
from .overview import size
from .progress import wait_for_job
from .wording import age, count

app = typer.Typer(rich_markup_mode=None, add_completion=False)
_BY_EXIT_CODE: dict[int, type[MemdError]] = {2: InvalidRequest, 4: NotFound, 5: StoreError, 7: Refused}


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """Of `restore-backup`: the backup, what the present memory has beyond it (-1: unreadable), where that went."""

    backup: BackupInfo
    verified: bool
    newer: dict[str, int]
    replaced: str = ""


@app.command()
def backup(
    to: Annotated[Path | None, typer.Option(parser=path, help="A folder of yours, instead of memd's own.")] = None,
    keep: Annotated[int, typer.Option(min=0, help="In memd's own folder, keep only the newest so many.")] = 0,
    show: Annotated[bool, typer.Option("--list", help="Make none: list those there are.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a backup while memd goes on, and read it back before it counts.

    \b
    Examples:
      memd backup
      memd backup --to /media/stick/memd
      memd backup --list
    """
    folder = os.path.abspath(to) if to else ""
    if show:
        _list(folder, as_json, "backup")
        return
    with Answer("backup", as_json) as answer, reach() as client:
        done = wait_for_job(client, client.backup(folder, keep), answer)
        answer.give(done.report, _backup_lines(done))


def _list(folder: str, as_json: bool, command: str) -> None:
    """Lists backups, also while the daemon is down: it may be down because of what a backup is to mend."""
    with Answer(command, as_json) as answer:
        told = reported(offline("list-backups", folder), BackupList)
        answer.give(told, _list_lines(told))


def _list_lines(told: BackupList) -> Iterator[str]:
    for each in told.backups:
        yield f"{styled(each.name, 'cyan')}  {_contents(each)}"
    if not told.backups:
        yield f"no backup in {plain(told.folder)}: `memd backup` makes one"


def _contents(each: BackupInfo) -> str:
    parts = [size(each.size_bytes)]
    if each.journal_seq >= 0:
        parts[:0] = [count(each.journal_seq, "operation"), count(each.archive_seq, "capture")]
    parts.append(f"by memd {plain(each.version)}" if each.version else "kept by an upgrade")
    if not each.current:
        parts.append(f"of layout {each.layout}")
    return f"{age(each.at)}: {', '.join(parts)}"


def _backup_lines(done: JobState) -> Iterator[str]:
    report = done.report
    yield f"backed up and read back: {plain(str(report['path']))}"
    taken = size(int(str(report["size_bytes"])))
    operations, captures = int(str(report["operations"])), int(str(report["captures"]))
    yield f"{count(operations, 'operation')}, {count(captures, 'capture')}, {taken}"
    removed = report.get("removed")
    if isinstance(removed, list) and removed:
        yield f"{count(len(removed), 'older backup')} removed: {', '.join(removed)}"


@app.command("restore-backup")
def restore_backup(
    name: Annotated[str, typer.Argument(help="A backup of `memd backup --list`, or newest.")] = "newest",
    folder: Annotated[
        Path | None, typer.Option("--from", parser=path, help="The folder it lies in, if not memd's own.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Restore none: list those there are.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Put a backup in the place of the present memory, which is moved aside. Needs `memd down`.

    \b
    Examples:
      memd restore-backup
      memd restore-backup --list
      memd restore-backup 20260304T183000Z --yes
      memd restore-backup layout-1      # the memory as it was before an upgrade
    """
    if show:
        _list(os.path.abspath(folder) if folder else "", as_json, "restore-backup")
        return
    with Answer("restore-backup", as_json) as answer:
        chosen = [*(["--from", os.path.abspath(folder)] if folder else []), name]
        if not yes:
            _ask(_offline(["--preview", *chosen]), as_json)
        told = _offline(chosen)
        lines = [
            f"restored {told.backup.name}, verified; {_loss(told)}",
            f"what was there lies in {plain(told.replaced)}",
            "`memd up` starts with it; indexes are rebuilt then",
        ]
        answer.give(told, lines)
        # what was forgotten is forgotten again at the next start; a cut leaves its turn, which is back as it was
        answer.warn("what `memd scan` took out since that backup is back: once memd is up, run `memd scan`")


def _ask(preview: Restored, as_json: bool) -> None:
    print(f"{preview.backup.name}: {_contents(preview.backup)}; verified\n{_loss(preview)}", file=sys.stderr)
    if as_json or not is_watched():
        raise Refused("restoring needs your word", hint="say it with --yes")
    typer.confirm("restore it?", abort=True, err=True)


def _loss(told: Restored) -> str:
    operations, captures = told.newer["journal"], told.newer["archive"]
    if operations < 0:
        return "the present memory can't be read, so what it has beyond that is not known"
    if not operations and not captures:
        return "nothing of the present memory is newer"
    return f"newer than it, and not in it: {count(operations, 'operation')}, {count(captures, 'capture')}"


def _offline(arguments: list[str]) -> Restored:
    """Runs `restore-backup` of the daemon's offline commands. Raises the error that it ended with."""
    places = places_here()
    if (running := launch.answering(places, 500)) is not None:
        raise JournalLocked(f"memd runs (pid {running.pid})", hint="stop it first: `memd down`")
    command = [*launch.command(), "restore-backup", *arguments]
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, cwd="/", env=launch.surroundings(os.environ)
    )
    if done.returncode:
        said = done.stderr.splitlines()
        message = next((line[6:] for line in said if line.startswith("memd: ")), "")
        hint = next((line[6:] for line in said if line.startswith("hint: ")), "")
        kind = _BY_EXIT_CODE.get(done.returncode, Unavailable)
        raise kind(message or f"restoring ended with status {done.returncode}", hint=hint or "\n".join(said[-3:]))
    return msgspec.json.decode(done.stdout, type=Restored)


@app.command()
def du(as_json: JsonFlag = False) -> None:
    """Show what memd takes on disk, and what would free some of it.

    \b
    Examples:
      memd du
      memd du --json | jq .data.total_bytes
    """
    with Answer("du", as_json) as answer, reach() as client:
        told = client.disk_usage()
        answer.give(told, _disk_lines(told))


def _disk_lines(told: DiskUse) -> Iterator[str]:
    for part in told.parts:
        yield f"{size(part.size_bytes):>10}  {plain(part.name)}"
        if part.freed_by:
            free = f"{size(part.free_bytes)} can be freed: " if part.free_bytes else ""
            yield from (styled(line, "dim") for line in wrapped(f"{free}{part.freed_by}", " " * 12, " " * 12))
    yield styled(f"{size(told.total_bytes):>10}  in all", "bold")


@app.command()
def expire(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove captures past the archive's limits now. What a record rests on stays; it also runs daily by itself.

    \b
    Examples:
      memd expire --dry-run
      memd expire      # then `memd compact` gives the room back to the disk
    """
    with Answer("expire", as_json) as answer, reach() as client:
        report = wait_for_job(client, client.expire(dry_run), answer).report
        verb = "would be removed" if dry_run else "removed"
        removed = int(str(report["captures"]))
        lines = [f"{count(removed, 'capture')} {verb}, {size(int(str(report['bytes'])))} of words"]
        if free := int(str(report["compaction_frees"])):
            lines.append(f"`memd compact` would give {size(free)} back to the disk")
        answer.give(report, lines)
