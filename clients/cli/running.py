"""`memd pause`, `memd resume`, `memd retry`: memd's own running.

Comes in: where and for how long; which failed captures. Goes out: what holds now. Invariant: what waits in the spool is
delivered before a pause, because it was said before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.reply import JobState
from ...protocol.running import DeadLetters, Pauses
from .contact import PATIENCE_MS, deliver, reach, seconds
from .output import Answer, JsonFlag, plain, styled, wrapped
from .progress import wait_for_job
from .wording import age, count, moment

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Here = Annotated[bool, typer.Option("--here", help="Of the current folder and all below, not everywhere.")]


def _folder(here: bool) -> str:
    return os.path.realpath(os.getcwd()) if here else ""


@app.command()
def pause(
    here: Here = False,
    for_: Annotated[str, typer.Option("--for", help="How long: 90s, 30m, 2h, 1h30m, 3d; else until `resume`.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Capture nothing for a while. What is said meanwhile is not taken later either, by an import for example.

    Everywhere, a pause also stops distilling; memory still answers. It holds over restarts.

    \b
    Examples:
      memd pause --for 2h
      memd pause --here         # this folder and all below, until `memd resume --here`
    """
    with Answer("pause", as_json) as answer, reach() as client:
        for_s = seconds(for_)
        deliver(client, answer)
        told = client.pause(_folder(here), for_s)
        answer.give(told, _pause_lines(told))


@app.command()
def resume(here: Here = False, as_json: JsonFlag = False) -> None:
    """End a pause.

    \b
    Examples:
      memd resume
      memd resume --here
    """
    with Answer("resume", as_json) as answer, reach() as client:
        told = client.resume(_folder(here))
        said = "resumed" if told.ended else "it was not paused"
        answer.give(told, [said, *(_pause_lines(told) if told.pauses else ())])


def _pause_lines(told: Pauses) -> Iterator[str]:
    for each in told.pauses:
        where = f"in {plain(each.folder)} and below" if each.folder else "everywhere"
        yield f"paused {where}, {f'until {moment(each.until)}' if each.until else 'until you say `memd resume`'}"


@app.command()
def retry(
    ids: Annotated[
        list[int] | None, typer.Argument(help="Failed captures by their numbers; none: list them.", show_default=False)
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the captures that could not be distilled, or try them again. `memd forget --letter` forgets one for good.

    \b
    Examples:
      memd retry                # list
      memd retry 4711
      memd retry --all
    """
    with Answer("retry", as_json) as answer, reach(PATIENCE_MS) as client:
        if not ids and not all:
            listed = client.dead_letters()
            answer.give(listed, _letter_lines(listed))
            return
        if all and not client.dead_letters(1).total:
            answer.give({"done": [], "failed": [], "taken_back": []}, ["nothing failed: there is nothing to try again"])
            return
        done = wait_for_job(client, client.retry(ids or (), all=all), answer)
        answer.give(done.report, _retried_lines(done))


def _letter_lines(told: DeadLetters) -> Iterator[str]:
    if not told.letters:
        yield "nothing failed"
    for each in told.letters:
        tries = count(each.attempts, "attempt")
        where = f"{plain(each.document)} · turn {plain(each.turn)[:13]}"
        yield f"{styled(str(each.id), 'cyan')}  {where} · {tries}, {age(each.at)}"
        yield from wrapped(f"{plain(each.stage)}: {plain(each.reason)}", "    ")
    if told.total > len(told.letters):
        yield f"and {told.total - len(told.letters):,} more"


def _retried_lines(done: JobState) -> Iterator[str]:
    report = {name: value if isinstance(value, list) else [] for name, value in done.report.items()}
    yield f"{count(len(report['done']), 'capture')} done, {len(report['failed']):,} failed again"
    for each in report["failed"]:
        yield from wrapped(plain(each), "    ", "  ")
    if back := report["taken_back"]:
        yield f"{count(len(back), 'capture')} of sessions that were taken back: `memd redo` first"
