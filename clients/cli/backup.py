"""`memd backup`, `memd restore-backup`, `memd du`."""

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
from ...protocol.keeping import BackupInfo, BackupList, DiskUse
from ...protocol.reply import JobState
from ..python import launch
from ..python.client import places_here
from .connection import offline, reach, reported
from .options import path
from .output import CommandAnswer, JsonFlag, is_watched, plain, styled, wrapped
from .progress import wait_for_job
from .wording import age, count, size

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
    with CommandAnswer("backup", as_json) as answer, reach() as client:
        done = wait_for_job(client, client.backup(folder, keep), answer)
        answer.give(done.report, _backup_lines(done))


def _list(folder: str, as_json: bool, command: str) -> None:
    """Lists backups, also while the daemon is down: it may be down because of what a backup is to mend."""
    with CommandAnswer(command, as_json) as answer:
        reply = reported(offline("list-backups", folder), BackupList)
        answer.give(reply, _list_lines(reply))


def _list_lines(reply: BackupList) -> Iterator[str]:
    for each in reply.backups:
        yield f"{styled(each.name, 'cyan')}  {_contents(each)}"
    if not reply.backups:
        yield f"no backup in {plain(reply.folder)}: `memd backup` makes one"


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
    with CommandAnswer("restore-backup", as_json) as answer:
        chosen = [*(["--from", os.path.abspath(folder)] if folder else []), name]
        if not yes:
            _ask(_offline(["--preview", *chosen]), as_json)
        reply = _offline(chosen)
        lines = [
            f"restored {reply.backup.name}, verified; {_loss(reply)}",
            f"what was there lies in {plain(reply.replaced)}",
            "`memd up` starts with it; indexes are rebuilt then",
        ]
        answer.give(reply, lines)
        # what was forgotten is forgotten again at the next start; a cut leaves its turn, which is back as it was
        answer.warn("what `memd scan` took out since that backup is back: once memd is up, run `memd scan`")


def _ask(preview: Restored, as_json: bool) -> None:
    print(f"{preview.backup.name}: {_contents(preview.backup)}; verified\n{_loss(preview)}", file=sys.stderr)
    if as_json or not is_watched():
        raise Refused("restoring needs your word", hint="say it with --yes")
    typer.confirm("restore it?", abort=True, err=True)


def _loss(reply: Restored) -> str:
    operations, captures = reply.newer["journal"], reply.newer["archive"]
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
    with CommandAnswer("du", as_json) as answer, reach() as client:
        reply = client.disk_usage()
        answer.give(reply, _disk_lines(reply))


def _disk_lines(reply: DiskUse) -> Iterator[str]:
    for part in reply.parts:
        yield f"{size(part.size_bytes):>10}  {plain(part.name)}"
        if part.freed_by:
            free = f"{size(part.free_bytes)} can be freed: " if part.free_bytes else ""
            yield from (styled(line, "dim") for line in wrapped(f"{free}{part.freed_by}", " " * 12, " " * 12))
    yield styled(f"{size(reply.total_bytes):>10}  in all", "bold")
