"""`memd backup`, `restore-backup`, `du`, `verify`, `rebuild`: what is stored on disk, and its integrity."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer

from ...protocol.errors import DaemonDown, JournalCorrupt, JournalLocked, Refused, StoreError
from ...protocol.reply import BackupInfo, BackupList, DiskUse, JobState
from ..python import launch
from ..python.client import places_here
from .connection import ended_with, offline, reach, reported
from .options import path
from .output import CommandAnswer, JsonFlag, is_watched, plain, plain_name, styled, wrapped
from .progress import wait_for_job
from .wording import age, count, report_names, report_number, size

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class RestoredBackup(msgspec.Struct, frozen=True, kw_only=True):
    """Of `restore-backup`. `newer`: operations and captures that only the current memory has, -1 if it is unreadable;
    `replaced`: the folder that this memory was moved to."""

    backup: BackupInfo
    verified: bool
    newer: dict[str, int]
    replaced: str = ""


@app.command()
def backup(
    to: Annotated[Path | None, typer.Option(parser=path, help="Write to this folder instead of memd's own.")] = None,
    keep: Annotated[int, typer.Option(min=0, help="Keep only this many backups in memd's own folder; 0: all.")] = 0,
    show: Annotated[bool, typer.Option("--list", help="List the backups and make none.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a backup while memd keeps running. memd reads it back before it reports success.

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
    """List backups offline: the daemon may be down because of the damage that a backup will repair."""
    with CommandAnswer(command, as_json) as answer:
        listed = reported(offline("list-backups", folder), BackupList)
        answer.give(listed, _list_lines(listed))


def _list_lines(listed: BackupList) -> Iterator[str]:
    for backup in listed.backups:
        yield f"{styled(backup.name, 'cyan')}  {_contents(backup)}"
    if not listed.backups:
        yield f"no backups in {plain_name(listed.folder)}; to make one: `memd backup`"


def _contents(backup: BackupInfo) -> str:
    parts = [size(backup.size_bytes)]
    if backup.journal_seq >= 0:
        parts[:0] = [count(backup.journal_seq, "operation"), count(backup.archive_seq, "capture")]
    parts.append(f"by memd {plain(backup.version)}" if backup.version else "saved by an upgrade")
    if not backup.current:
        parts.append(f"layout {backup.layout}")
    return f"{age(backup.at)}: {', '.join(parts)}"


def _backup_lines(done: JobState) -> Iterator[str]:
    report = done.report
    yield f"backed up and verified: {plain_name(str(report['path']))}"
    operations, captures = report_number(report, "operations"), report_number(report, "captures")
    total = size(report_number(report, "size_bytes"))
    yield f"{count(operations, 'operation')}, {count(captures, 'capture')}, {total}"
    if removed := report_names(report, "removed"):
        yield f"removed {count(len(removed), 'older backup')}: {', '.join(removed)}"


@app.command("restore-backup")
def restore_backup(
    name: Annotated[str, typer.Argument(help="A backup from `memd backup --list`, or newest.")] = "newest",
    folder: Annotated[
        Path | None, typer.Option("--from", parser=path, help="The folder of the backup, if not memd's own.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List the backups and restore none.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Replace the current memory with a backup. The current memory is moved aside. Run `memd down` first.

    \b
    Examples:
      memd restore-backup
      memd restore-backup --list
      memd restore-backup 20260304T183000Z --yes
      memd restore-backup layout-1      # the memory from before an upgrade
    """
    if show:
        _list(os.path.abspath(folder) if folder else "", as_json, "restore-backup")
        return
    with CommandAnswer("restore-backup", as_json) as answer:
        chosen = [*(["--from", os.path.abspath(folder)] if folder else []), name]
        if not yes:
            _ask(_restore(["--preview", *chosen]), as_json)
        restored = _restore(chosen)
        lines = [
            f"restored {restored.backup.name}, verified; {_loss(restored)}",
            f"the replaced memory is in {plain(restored.replaced)}",
            "to start: `memd up`, which rebuilds the indexes",
        ]
        answer.give(restored, lines)
        # the next start repeats deletions; a redaction keeps its turn, whose old text is back
        answer.warn("secrets that `memd scan` redacted since that backup are back: once memd is up, run `memd scan`")


def _ask(preview: RestoredBackup, as_json: bool) -> None:
    print(f"{preview.backup.name}: {_contents(preview.backup)}; verified\n{_loss(preview)}", file=sys.stderr)
    if as_json or not is_watched():
        raise Refused("restoring replaces the current memory", hint="confirm with --yes")
    typer.confirm("Restore it?", abort=True, err=True)


def _loss(restored: RestoredBackup) -> str:
    operations, captures = restored.newer["journal"], restored.newer["archive"]
    if operations < 0:
        return "the current memory can't be read, so newer data in it is unknown"
    if not operations and not captures:
        return "the current memory has no newer data"
    return f"the backup lacks {count(operations, 'operation')} and {count(captures, 'capture')} of the current memory"


def _restore(arguments: list[str]) -> RestoredBackup:
    """Run the offline command `restore-backup`. Raises JournalLocked while a daemon runs, or the command's error."""
    if (running := launch.answering(places_here(), 500)) is not None:
        raise JournalLocked(f"memd is running (pid {running.pid})", hint="stop it first: `memd down`")
    return reported(offline("restore-backup", *arguments), RestoredBackup)


@app.command()
def du(as_json: JsonFlag = False) -> None:
    """Show disk usage and how to reduce it.

    \b
    Examples:
      memd du
      memd du --json | jq .data.total_bytes
    """
    with CommandAnswer("du", as_json) as answer, reach() as client:
        usage = client.disk_usage()
        answer.give(usage, _disk_lines(usage))


def _disk_lines(usage: DiskUse) -> Iterator[str]:
    for part in usage.parts:
        yield f"{size(part.size_bytes):>10}  {plain_name(part.name)}"
        if part.freed_by:
            free = f"{size(part.free_bytes)} can be freed: " if part.free_bytes else ""
            yield from (styled(line, "dim") for line in wrapped(f"{free}{part.freed_by}", " " * 12, " " * 12))
    yield styled(f"{size(usage.total_bytes):>10}  in total", "bold")


@app.command()
def verify(as_json: JsonFlag = False) -> None:
    """Check the integrity of everything stored. It compares records with the journal, and quotes with captures.

    The command works with and without the daemon. If it finds damage, it names the remedy and exits with code 5.

    \b
    Examples:
      memd verify
      memd verify --json
    """
    with CommandAnswer("verify", as_json) as answer:
        report = _report(answer)
        answer.give(report, verdict_lines(report))
    if not report["intact"]:
        raise typer.Exit(JournalCorrupt.exit_code)


def _report(answer: CommandAnswer) -> dict[str, Any]:
    try:
        with reach() as client:
            return dict(wait_for_job(client, client.verify(), answer).report)
    except DaemonDown:
        done = offline("verify")
        if done.stdout:
            return msgspec.json.decode(done.stdout, type=dict[str, Any])
        error = ended_with(done)
        raise StoreError(error.message, hint=error.hint) from None


def verdict_lines(report: dict[str, Any]) -> Iterator[str]:
    """The verdict, then each damage with its remedy."""
    intact = bool(report["intact"])
    yield from (styled(line, "green" if intact else "red") for line in wrapped(plain(str(report["verdict"]))))
    for damage in cast("list[str]", report["damage"]):
        yield from wrapped(plain(damage), "  ", "- ")


@app.command()
def rebuild(
    name: Annotated[str, typer.Argument(help="tables, keywords, turns, vectors, profile, or all.")] = "all",
    as_json: JsonFlag = False,
) -> None:
    """Rebuild indexes from the journal. Searches keep working; no record changes.

    \b
    Examples:
      memd rebuild
      memd rebuild keywords
    """
    with CommandAnswer("rebuild", as_json) as answer, reach() as client:
        report = wait_for_job(client, client.rebuild(name), answer).report
        names = cast("list[str]", report["rebuilt"])
        operations, captures = int(str(report["operations"])), int(str(report["captures"]))
        line = f"rebuilt {', '.join(names)} from {count(operations, 'operation')} and {count(captures, 'capture')}"
        answer.give(report, wrapped(line))
