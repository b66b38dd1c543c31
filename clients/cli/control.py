"""`memd pause`, `memd resume`, `memd retry`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.dead_letters import DeadLetters
from ...protocol.pauses import Pauses
from ...protocol.reply import JobState
from .connection import PATIENCE_MS, deliver, reach
from .options import seconds
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .progress import wait_for_job
from .wording import age, count, moment, report_names

app = typer.Typer(rich_markup_mode=None, add_completion=False)
Here = Annotated[bool, typer.Option("--here", help="Only in the current folder and below.")]


def _folder(here: bool) -> str:
    return os.path.realpath(os.getcwd()) if here else ""


@app.command()
def pause(
    here: Here = False,
    for_: Annotated[str, typer.Option("--for", help="Duration: 90s, 30m, 2h, 1h30m, 3d; else until `resume`.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Stop capturing for a while. Later imports skip what you said during the pause, too.

    A pause without --here also stops the processing of captures. Searches still work. A restart does not end a pause.

    \b
    Examples:
      memd pause --for 2h
      memd pause --here         # this folder and all folders in it
    """
    with CommandAnswer("pause", as_json) as answer, reach() as client:
        for_s = seconds(for_)
        deliver(client, answer)  # requests in the spool precede the pause
        paused = client.pause(_folder(here), for_s)
        answer.give(paused, _pause_lines(paused))


@app.command()
def resume(here: Here = False, as_json: JsonFlag = False) -> None:
    """End a pause.

    \b
    Examples:
      memd resume
      memd resume --here
    """
    with CommandAnswer("resume", as_json) as answer, reach() as client:
        resumed = client.resume(_folder(here))
        outcome = "resumed" if resumed.ended else "memd was not paused" + (" here" if here else "")
        answer.give(resumed, [outcome, *_pause_lines(resumed)])


def _pause_lines(reply: Pauses) -> Iterator[str]:
    for pause in reply.pauses:
        where = f"in {plain_name(pause.folder)} and below" if pause.folder else "everywhere"
        yield f"paused {where}, {f'until {moment(pause.until)}' if pause.until else 'until `memd resume`'}"


@app.command()
def retry(
    ids: Annotated[
        list[int] | None, typer.Argument(help="Failed captures by number; none: list them.", show_default=False)
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Process all of them again.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List captures that failed, or process them again. `memd forget --failed N` deletes one permanently.

    \b
    Examples:
      memd retry                # list
      memd retry 4711
      memd retry --all
    """
    with CommandAnswer("retry", as_json) as answer, reach(PATIENCE_MS) as client:
        if not ids and not all:
            failed = client.dead_letters()
            answer.give(failed, _failed_lines(failed))
            return
        if all and not client.dead_letters(1).total:
            answer.give({"done": [], "failed": [], "taken_back": []}, ["nothing failed: there is nothing to retry"])
            return
        done = wait_for_job(client, client.retry(ids or (), all=all), answer)
        answer.give(done.report, _retried_lines(done))


def _failed_lines(failed: DeadLetters) -> Iterator[str]:
    if not failed.letters:
        yield "nothing failed"
    for capture in failed.letters:
        where = f"{plain_name(capture.document)} · turn {plain_name(capture.turn)[:13]}"
        attempts = f"{count(capture.attempts, 'attempt')}, the last {age(capture.at)}"
        yield f"{styled(str(capture.id), 'cyan')}  {where} · {attempts}"
        yield from wrapped(f"{plain_name(capture.stage)}: {plain(capture.reason)}", "    ")
    if failed.total > len(failed.letters):
        yield f"and {failed.total - len(failed.letters):,} more"


def _retried_lines(done: JobState) -> Iterator[str]:
    failed = report_names(done.report, "failed")
    yield f"{count(len(report_names(done.report, 'done')), 'capture')} processed, {len(failed):,} failed again"
    for capture in failed:
        yield from wrapped(plain(capture), "    ", "  ")
    if undone := report_names(done.report, "taken_back"):
        yield f"{count(len(undone), 'capture')} skipped, because its session was undone: `memd redo` first"
