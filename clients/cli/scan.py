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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only search; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Redact without asking for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Find secrets in stored data and redact them. This can't be undone.

    memd redacts new captures before it stores them; this command applies the current rules to older ones. A
    placeholder such as [redacted:github-pat] replaces each secret in the captured turn and in the records learned
    from it; the surrounding text stays. No copy remains in memd's own files, backups included.

    \b
    Examples:
      memd scan               # search, then ask
      memd scan --dry-run
      memd scan --yes --json
    """
    if dry_run and yes:
        raise typer.BadParameter("--dry-run and --yes exclude each other")
    with CommandAnswer("scan", as_json) as answer, reach() as client:
        if not yes:
            report = dict(wait_for_job(client, client.scan(), answer).report)
            is_clean = not report["captures"] and not report["records"]
            if dry_run or as_json or is_clean or not sys.stdin.isatty():
                answer.give(report, _found_lines(report))
                return
            say(_found_lines(report))
            if not typer.confirm("Redact these secrets for good?", default=False, err=True):
                raise typer.Abort
        report = dict(wait_for_job(client, client.scan(dry_run=False), answer).report)
        answer.give(report, _redacted_lines(report))


def _found_lines(report: dict[str, Any]) -> Iterator[str]:
    """The secrets that were found, without their text."""
    searched = f"{count(report['checked_captures'], 'capture')} and {count(report['checked_records'], 'record')}"
    records, sessions = cast("list[str]", report["records"]), cast("list[str]", report["sessions"])
    if not records and not report["captures"]:
        yield styled(f"no secrets in {searched}", "green")
        return
    summary = (
        f"{count(report['captures'], 'capture')} and {count(len(records), 'record')} of {searched} contain secrets"
    )
    yield from (styled(line, "red") for line in wrapped(summary))
    yield from wrapped(plain(", ".join(cast("list[str]", report["rules"]))), "  ", "- ")
    for kind, names in (("record", records), ("session", sessions)):
        yield from (plain(f"  {kind} {name}") for name in names[:SHOWN])
        if len(names) > SHOWN:
            yield f"  and {len(names) - SHOWN} more: see --json"
    yield from wrapped("`memd scan --yes` redacts them. Replace these secrets where you use them.")


def _redacted_lines(report: dict[str, Any]) -> Iterator[str]:
    """The outcome of a redaction."""
    if "cuts" not in report:
        yield from _found_lines(report)
        return
    changed = cast("list[str]", report["changed"])
    redacted = f"redacted {count(report['cuts'], 'secret')} in {count(report['captures'], 'capture')}"
    yield styled(f"{redacted}; {count(len(changed), 'record')} changed", "bold")
    yield from wrapped(plain(", ".join(cast("list[str]", report["rules"]))), "  ", "- ")
    if dropped := cast("list[str]", report["backups_dropped"]):
        fresh = report["backup_written"] or "none, see `memd backup`"
        yield f"removed {count(len(dropped), 'backup')} that contained them; current backup: {fresh}"
    searched = f"{report['searched_files']:,} files searched"
    if left := cast("list[str]", report["left"]):
        yield styled(f"{searched}: secrets remain in", "red")
        yield from (f"  {plain(path)}" for path in left[:SHOWN])
    else:
        yield styled(f"{searched}: no copy remains", "green")
    if elsewhere := report["said_elsewhere"]:
        yield f"{count(elsewhere, 'short secret')} also occur elsewhere as ordinary words, which stay"
    yield from wrapped("memd can't redact: " + "; ".join(cast("list[str]", report["out_of_reach"])), "  ")
    yield "Replace these secrets where you use them: others may have seen them."
