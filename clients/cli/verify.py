"""`memd verify` and `memd rebuild` check the stores and rebuild projections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, cast

import msgspec
import typer

from ...protocol.errors import DaemonDown, JournalCorrupt, StoreError
from .connection import ended_with, offline, reach
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped
from .progress import wait_for_job
from .wording import count

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def verify(as_json: JsonFlag = False) -> None:
    """Check the integrity of everything stored. Each record must follow from the journal, each quote from a capture.

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
