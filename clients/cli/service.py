"""`memd up` and `memd down` start and stop the daemon; `memd service` makes it a service of systemd or launchd."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import Refused, Unavailable
from ...protocol.places import Places
from ...protocol.reply import StatusText
from ..python import launch
from ..python.client import Client, places_here
from ..service import ServiceState, is_ours, service
from .connection import deliver, is_older
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped
from .wording import age

QUERY_S = 1.0
"""Seconds that `memd down` waits for the service manager's answer, beside the seconds in which the daemon ends."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)
service_app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Run memd at login, with systemd or launchd.",
    epilog="The service is optional: `memd up` starts the daemon by hand.",
)
app.add_typer(service_app, name="service")


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
    """Start the daemon in the background. It waits until the daemon answers, and replaces a daemon of an older version.

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
        result, status = started(places, answer)
        answer.give(result, [_up_line(result, status)])
        with Client(places) as client:
            deliver(client, answer)


def started(places: Places, answer: CommandAnswer) -> tuple[Up, StatusText]:
    """Start the daemon unless one of this version runs, and return its status. Raises what `launch.start` raises."""
    before = launch.answering(places)
    replaced = before.version if before and (before.is_removed or is_older(before.version)) else ""
    if before and before.is_removed:
        answer.warn(f"someone removed {before.data_dir} while memd ran: it starts with the files that remain")
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
    return result, status


def _up_line(result: Up, status: StatusText) -> str:
    if result.was_running and not result.replaced:
        return (
            f"memd is already running (pid {result.pid}, started {age(status.started_at)}); data in {result.data_dir}"
        )
    instead = f", replaces version {plain(result.replaced)}" if result.replaced else ""
    return f"memd is running (pid {result.pid}{instead}); data in {result.data_dir}"


def start(places: Places, answer: CommandAnswer) -> None:
    """Start through the service manager if memd is its service for this home, else directly."""
    manager = service(places, os.environ)
    if is_ours(manager, places) and manager.reachable():
        if not (problem := manager.start()):
            return
        answer.warn(f"the service did not start ({plain(problem)}); started memd without it")
    launch.start(places, os.environ)


def stop(places: Places) -> int:
    """Stop through the service manager if memd is its service: it would restart the daemon for the next client. Return
    the process id of the daemon that ended, 0 if none ran."""
    manager = service(places, os.environ)
    if not is_ours(manager, places) or not (state := manager.state(QUERY_S)).manager:
        return launch.stop(places)
    pid = launch.process_id(places) if state.active else 0
    stopping = Thread(target=manager.stop, daemon=True)  # it waits as long as the manager does
    stopping.start()
    if not pid:
        stopping.join(launch.STOP_S)
        return launch.stop(places)
    launch.wait_until_ended(pid, places)
    stopping.join(QUERY_S)
    return pid


@app.command()
def down(as_json: JsonFlag = False) -> None:
    """Stop the daemon. It first finishes the requests it acknowledged.

    A daemon that does not answer or end within seconds is killed. Memories that it acknowledged are safe on the disk.

    \b
    Example:
      memd down
    """
    with CommandAnswer("down", as_json) as answer:
        if pid := stop(places_here()):
            answer.give(Down(was_running=True, pid=pid), [f"memd (pid {pid}) stopped"])
        else:
            answer.give(Down(was_running=False), ["memd was not running"])


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """Of `service install`: text by path, and the files written by this call."""

    files: dict[str, str]
    written: tuple[str, ...]
    running: bool


class Uninstalled(msgspec.Struct, frozen=True, kw_only=True):
    """Of `service uninstall`."""

    removed: tuple[str, ...]


@service_app.command()
def install(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the files and write none.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Install the service. memd runs now, starts at each login and restarts after a failure.

    \b
    Examples:
      memd service install
      memd service install --dry-run    # the files it would write
    """
    with CommandAnswer("service install", as_json) as answer:
        places = places_here()
        manager = service(places, os.environ)
        files = manager.files()
        if dry_run:
            lines = [line for file in files for line in (styled(f"# {file.path}", "bold"), *file.text.splitlines(), "")]
            texts = {str(file.path): file.text for file in files}
            answer.give(Installed(files=texts, written=(), running=False), lines)
            return
        installed = installed_service(places)
        answer.give(installed, _install_lines(installed.written, installed.running))


def installed_service(places: Places) -> Installed:
    """Write the files of the service, and run and enable it if a manager answers. Raises Refused, Unavailable."""
    if os.environ.get("SUDO_UID", str(os.getuid())) != str(os.getuid()):
        raise Refused("memd can't be a service of root", hint="run it as the user who owns the memory")
    manager = service(places, os.environ)
    files = manager.files()
    written: list[str] = []
    for file in files:
        if not file.is_there():
            _write(file.path, file.text)
            written.append(str(file.path))
    running = manager.reachable()
    if running:
        launch.stop(places)  # a daemon started by hand holds the lock of the home
        if problem := manager.enable():
            raise Unavailable(
                f"the service does not start: {problem}",
                hint="see `memd service status` and `memd logs`, or start it with `memd up`",
            )
    return Installed(files={str(file.path): file.text for file in files}, written=tuple(written), running=running)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise Refused(
            f"{path} can't be written: {error.strerror}", hint="check the owner and mode of its folder"
        ) from error


def _install_lines(written: Sequence[str], running: bool) -> Iterator[str]:
    yield from (f"wrote {path}" for path in written)
    if not written:
        yield "already installed"
    if running:
        yield "memd is running and starts at each login"
        yield "to keep it running while you are logged out: `loginctl enable-linger`"
    else:
        yield from wrapped(
            "no service manager answers here, so memd could not enable the service or check that it starts; it does "
            "not start at login: run `memd service install` again where one answers; until then `memd up` starts memd"
        )


@service_app.command()
def uninstall(as_json: JsonFlag = False) -> None:
    """Uninstall the service. Your memory stays; `memd up` starts the daemon by hand.

    \b
    Example:
      memd service uninstall
    """
    with CommandAnswer("service uninstall", as_json) as answer:
        removed = remove()
        lines = [f"removed {path}" for path in removed] or ["memd was not installed as a service"]
        answer.give(Uninstalled(removed=removed), lines)


def remove() -> tuple[str, ...]:
    """Uninstall the service; the files that were removed."""
    manager = service(places_here(), os.environ)
    files = [file.path for file in manager.files() if file.path.exists()]
    if files and manager.reachable():
        manager.disable()
    for path in files:
        path.unlink(missing_ok=True)
    return tuple(str(path) for path in files)


@service_app.command("status")
def status(as_json: JsonFlag = False) -> None:
    """Show whether the service is installed and its state.

    \b
    Example:
      memd service status
    """
    with CommandAnswer("service status", as_json) as answer:
        state = service(places_here(), os.environ).state()
        answer.give(state, _state_lines(state))


def _state_lines(state: ServiceState) -> Iterator[str]:
    if not state.installed:
        yield "not installed; to install it: `memd service install`"
        return
    yield styled("running" if state.active else "not running", "bold") + (", starts at login" if state.enabled else "")
    if state.manager:
        yield f"{state.manager}: {plain(state.detail)}"
    else:
        yield from wrapped(f"your service manager does not answer: {plain(state.detail)}")
    if not state.current:
        yield from wrapped("its files differ from those of this version; `memd service install` replaces them")
    yield from (styled(path, "dim") for path in state.files)
