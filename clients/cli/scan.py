"""`memd scan` searches stored data for secrets and redacts them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any, cast

import typer

from .connection import reach
from .output import CommandAnswer, JsonFlag, plain, say, styled, wrapped
from .progress import wait_for_job
from .wording import count

SHOWN = 20
app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def scan(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look, and ask nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Put placeholders in their places, and do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Look for secrets in everything that is stored, with the rules of today, and take them out.

    New captures are scanned before they are stored; this is for those that an older memd took. A secret becomes a
    placeholder such as [redacted:github-pat] in the captured turn and in what was learnt from it; the words around it
    stay. No byte of it is left in memd's own files, backups included. It can't be undone.

    \b
    Examples:
      memd scan               # look, then ask
      memd scan --dry-run
      memd scan --yes --json
    """
    if dry_run and yes:
        raise typer.BadParameter("--dry-run and --yes contradict each other")
    with CommandAnswer("scan", as_json) as answer, reach() as client:
        if not yes:
            report = dict(wait_for_job(client, client.scan(), answer).report)
            found = bool(report["captures"] or report["records"])
            if dry_run or as_json or not found or not sys.stdin.isatty():
                answer.give(report, told_lines(report))
                return
            say(told_lines(report))
            if not typer.confirm("Put placeholders in their places, for good?", default=False, err=True):
                raise typer.Abort
        report = dict(wait_for_job(client, client.scan(dry_run=False), answer).report)
        answer.give(report, cut_lines(report))


def told_lines(report: dict[str, Any]) -> Iterator[str]:
    """What was looked at, what was found, and what to do about it."""
    looked = f"{count(report['checked_captures'], 'capture')} and {count(report['checked_records'], 'record')}"
    records, sessions = cast("list[str]", report["records"]), cast("list[str]", report["sessions"])
    if not records and not report["captures"]:
        yield styled(f"no secret in {looked}", "green")
        return
    found = f"{count(report['captures'], 'capture')} and {count(len(records), 'record')} of {looked} hold secrets"
    yield from (styled(line, "red") for line in wrapped(found))
    yield from wrapped(plain(", ".join(cast("list[str]", report["rules"]))), "  ", "- ")
    for what, names in (("record", records), ("session", sessions)):
        yield from (plain(f"  {what} {name}") for name in names[:SHOWN])
        if len(names) > SHOWN:
            yield f"  and {len(names) - SHOWN} more: see --json"
    yield "`memd scan --yes` puts placeholders in their places; whoever gave them out should replace them."


def cut_lines(report: dict[str, Any]) -> Iterator[str]:
    """What became of the secrets."""
    if "cuts" not in report:
        yield from told_lines(report)
        return
    changed = cast("list[str]", report["changed"])
    cut = f"took out {count(report['cuts'], 'secret')} of {count(report['captures'], 'capture')}"
    yield styled(f"{cut}; {count(len(changed), 'record')} changed", "bold")
    yield from wrapped(plain(", ".join(cast("list[str]", report["rules"]))), "  ", "- ")
    if dropped := cast("list[str]", report["backups_dropped"]):
        yield f"{count(len(dropped), 'backup')} that held them went; {report['backup_written'] or 'none'} was written"
    searched = f"{report['searched_files']:,} files searched"
    if left := cast("list[str]", report["left"]):
        yield styled(f"{searched}: still in", "red")
        yield from (f"  {plain(path)}" for path in left[:SHOWN])
    else:
        yield styled(f"{searched}: no byte of them is left", "green")
    if elsewhere := report["said_elsewhere"]:
        yield f"{count(elsewhere, 'short one')} stands elsewhere as an ordinary word, and stays there"
    yield from wrapped("out of reach: " + "; ".join(cast("list[str]", report["out_of_reach"])), "  ")
    yield "Replace what was given out: others may have seen it."
