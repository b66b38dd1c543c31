"""`memd up` and `memd down` start and stop the daemon."""

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
from .connection import deliver, is_older
from .output import CommandAnswer, JsonFlag, plain
from .wording import age

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """Of `up`. `replaced` is the version of the older daemon that this command replaced, "" if none."""

    was_running: bool
    replaced: str = ""
    pid: int
    version: str
    data_dir: str


class Down(msgspec.Struct, frozen=True, kw_only=True):
    """Of `down`."""

    was_running: bool
    pid: int = 0


@app.command()
def up(
    foreground: Annotated[bool, typer.Option("--foreground", help="Run in this terminal until Ctrl-C.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Start the daemon in the background. It waits until the daemon answers, and replaces one of an older version.

    \b
    Examples:
      memd up
      memd up --foreground        # for a service manager, or to watch its log
      MEMD_HOME=/tmp/try memd up  # keep all data in one folder
    """
    if foreground:
        command = launch.command()
        os.execve(command[0], command, launch.daemon_environment(os.environ))
    with CommandAnswer("up", as_json) as answer:
        places = places_here()
        before = launch.answering(places)
        replaced = before.version if before and is_older(before.version) else ""
        if replaced:
            stop(places)
        if not before or replaced:
            start(places, answer)
        with Client(places) as client:
            status = client.status()
            result = Up(
                was_running=before is not None,
                replaced=replaced,
                pid=status.pid,
                version=status.version,
                data_dir=status.data_dir,
            )
            answer.give(result, [_up_line(result, status)])
            deliver(client, answer)


def _up_line(result: Up, status: StatusText) -> str:
    if result.was_running and not result.replaced:
        return (
            f"memd is already running (pid {result.pid}, started {age(status.started_at)}); data in {result.data_dir}"
        )
    instead = f", replaces version {plain(result.replaced)}" if result.replaced else ""
    return f"memd is running (pid {result.pid}{instead}); data in {result.data_dir}"


def start(places: Places, answer: CommandAnswer) -> None:
    """Start through the service manager if memd is its service for this home, else directly."""
    manager = service.service(places, os.environ)
    if service.is_ours(manager, places) and manager.reachable():
        if not (problem := manager.start()):
            return
        answer.warn(f"the service did not start ({plain(problem)}); started memd without it")
    launch.start(places, os.environ)


def stop(places: Places) -> StatusText | None:
    """Stop through the service manager if memd is its service: it would restart the daemon for the next client."""
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
    """Stop the daemon. It first finishes the requests it acknowledged.

    \b
    Example:
      memd down
    """
    with CommandAnswer("down", as_json) as answer:
        seen = stop(places_here())
        if seen:
            answer.give(Down(was_running=True, pid=seen.pid), [f"memd (pid {seen.pid}) stopped"])
        else:
            answer.give(Down(was_running=False), ["memd was not running"])
