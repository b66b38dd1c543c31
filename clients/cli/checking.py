"""`memd verify` and `memd rebuild`: is what is stored sound, and making anew what can be.

Comes in: a wish. Goes out: a verdict that a person understands, or what was rebuilt. Invariant: damage ends with
exit code 5, that of a store that needs the user, with or without a daemon.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import Annotated, Any, cast

import msgspec
import typer

from ...protocol.errors import DaemonDown, JournalCorrupt, StoreError
from ..python import launch
from .contact import reach
from .output import Answer, JsonFlag, plain, styled, wrapped
from .progress import wait_for_job
from .wording import count

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def verify(as_json: JsonFlag = False) -> None:
    """Check that everything memd believes follows from its journal, and that every quote was said.

    Works with and without the daemon. Damage is named with its remedy; the exit code is then 5.

    \b
    Examples:
      memd verify
      memd verify --json
    """
    with Answer("verify", as_json) as answer:
        report = _report(answer)
        answer.give(report, verdict_lines(report))
    if not report["intact"]:
        raise typer.Exit(JournalCorrupt.exit_code)


def _report(answer: Answer) -> dict[str, Any]:
    try:
        with reach() as client:
            return dict(wait_for_job(client, client.verify(), answer).report)
    except DaemonDown:
        return _offline()


def _offline() -> dict[str, Any]:
    """The report of the daemon's offline command. Raises StoreError with what it said where it has none."""
    done = subprocess.run(
        [*launch.command(), "verify"],
        capture_output=True,
        check=False,
        text=True,
        cwd="/",
        env=launch.daemon_environment(os.environ),
    )
    if done.stdout:
        return msgspec.json.decode(done.stdout, type=dict[str, Any])
    said = [line.partition(": ")[2] for line in done.stderr.splitlines() if line.startswith(("memd: ", "hint: "))]
    raise StoreError(said[0] if said else "it could not be checked", hint=said[1] if len(said) > 1 else "see the log")


def verdict_lines(report: dict[str, Any]) -> Iterator[str]:
    """A verdict, and each damage with its remedy."""
    intact = bool(report["intact"])
    yield from (styled(line, "green" if intact else "red") for line in wrapped(plain(str(report["verdict"]))))
    for damage in cast("list[str]", report["damage"]):
        yield from wrapped(plain(damage), "  ", "- ")


@app.command()
def rebuild(
    name: Annotated[str, typer.Argument(help="tables, keywords, turns, vectors, profile, or all.")] = "all",
    as_json: JsonFlag = False,
) -> None:
    """Make a projection anew from the journal. Reads go on meanwhile; nothing that memd believes changes.

    \b
    Examples:
      memd rebuild
      memd rebuild keywords
    """
    with Answer("rebuild", as_json) as answer, reach() as client:
        report = wait_for_job(client, client.rebuild(name), answer).report
        names = cast("list[str]", report["rebuilt"])
        operations, captures = int(str(report["operations"])), int(str(report["captures"]))
        line = f"rebuilt {', '.join(names)} from {count(operations, 'operation')} and {count(captures, 'capture')}"
        answer.give(report, wrapped(line))
