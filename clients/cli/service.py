"""`memd up` and `memd down`: the daemon's start and end.

Comes in: a wish. Goes out: what is true afterwards. Invariant: each is done when it says so, and twice is as once.
"""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
import typer

from ...protocol.places import Places
from ...protocol.reply import StatusText
from .. import service
from ..python import launch
from ..python.client import Client, places_here
from .contact import deliver
from .output import Answer, JsonFlag, plain
from .versions import is_older
from .wording import age

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """Of `up`: whether it was running before, the version it had if that was an older one, the daemon that answers."""

    was_running: bool
    replaced: str = ""
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
    """Start the daemon in the background, and wait until it answers. One of an older version is replaced.

    \b
    Examples:
      memd up
      memd up --foreground        # for a service manager, or to see what it says
      MEMD_HOME=/tmp/try memd up  # everything under one folder
    """
    if foreground:
        command = launch.command()
        os.execve(command[0], command, launch.daemon_environment(os.environ))
    with Answer("up", as_json) as answer:
        places = places_here()
        before = launch.answering(places)
        replaced = before.version if before and is_older(before.version) else ""
        if replaced:
            stop(places)
        if not before or replaced:
            start(places, answer)
        with Client(places) as client:
            status = client.status()
            told = Up(
                was_running=before is not None,
                replaced=replaced,
                pid=status.pid,
                version=status.version,
                data_dir=status.data_dir,
            )
            answer.give(told, [_up_line(told, status)])
            deliver(client, answer)


def _up_line(told: Up, status: StatusText) -> str:
    since = f", since {age(status.started_at)}" if told.was_running and not told.replaced else ""
    state = "runs already" if since else "runs"
    instead = f", instead of version {plain(told.replaced)}" if told.replaced else ""
    return f"memd {state} (pid {told.pid}{since}{instead}); data in {told.data_dir}"


def start(places: Places, answer: Answer) -> None:
    """By the service manager where memd is installed there for this home, else by ourselves."""
    manager = service.service(places, os.environ)
    if service.is_ours(manager, places) and manager.reachable():
        if not (problem := manager.start()):
            return
        answer.warn(f"the service did not start ({plain(problem)}); memd runs without it")
    launch.start(places, os.environ)


def stop(places: Places) -> StatusText | None:
    """The manager first, where memd is its service: it would start it again for the next client."""
    manager = service.service(places, os.environ)
    if service.is_ours(manager, places) and manager.reachable() and manager.state().manager:
        seen = launch.answering(places) if manager.state().active else None
        manager.stop()
        if seen:
            launch.wait_until_ended(seen.pid, places)
            return seen
    return launch.stop(places)


@app.command()
def down(as_json: JsonFlag = False) -> None:
    """Stop the daemon. It finishes what it acknowledged.

    \b
    Example:
      memd down
    """
    with Answer("down", as_json) as answer:
        seen = stop(places_here())
        if seen:
            answer.give(Down(was_running=True, pid=seen.pid), [f"memd (pid {seen.pid}) has ended"])
        else:
            answer.give(Down(was_running=False), ["memd was not running"])
