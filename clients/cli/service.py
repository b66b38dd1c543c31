"""`memd up` and `memd down`: the daemon's start and end.

Comes in: a wish. Goes out: what is true afterwards. Invariant: each is done when it says so, and twice is as once.
"""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
import typer

from ..python import launch
from ..python.client import Client, places_here
from .contact import deliver
from .output import Answer, JsonFlag
from .wording import age

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """Of `up`: whether it was running before, and the daemon that answers."""

    was_running: bool
    pid: int
    version: str
    data_dir: str


class Down(msgspec.Struct, frozen=True, kw_only=True):
    """Of `down`: whether a daemon was running, and which."""

    was_running: bool
    pid: int = 0


@app.command()
def up(
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay in this terminal, until Ctrl-C.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Start the daemon in the background, and wait until it answers.

    \b
    Examples:
      memd up
      memd up --foreground        # for a service manager, or to see what it says
      MEMD_HOME=/tmp/try memd up  # everything under one folder
    """
    if foreground:
        command = launch.command()
        os.execve(command[0], command, launch.surroundings(os.environ))
    with Answer("up", as_json) as answer:
        places = places_here()
        before = launch.answering(places)
        if not before:
            launch.start(places, os.environ)
        with Client(places) as client:
            status = client.status()
            told = Up(was_running=before is not None, pid=status.pid, version=status.version, data_dir=status.data_dir)
            since = f", since {age(status.started_at)}" if before else ""
            state = "runs already" if before else "runs"
            answer.give(told, [f"memd {state} (pid {status.pid}{since}); data in {status.data_dir}"])
            deliver(client, answer)


@app.command()
def down(as_json: JsonFlag = False) -> None:
    """Stop the daemon. It finishes what it acknowledged.

    \b
    Example:
      memd down
    """
    with Answer("down", as_json) as answer:
        seen = launch.stop(places_here())
        if seen:
            answer.give(Down(was_running=True, pid=seen.pid), [f"memd (pid {seen.pid}) has ended"])
        else:
            answer.give(Down(was_running=False), ["memd was not running"])
