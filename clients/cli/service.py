"""`memd service` installs memd as a systemd or launchd service of the user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import Refused, Unavailable
from ..python import launch
from ..python.client import places_here
from ..service import ServiceState, service
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Run memd at login, with systemd or launchd.",
    epilog="The service is optional: `memd up` starts the daemon by hand.",
)


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """Of `service install`: text by path, and the files written by this call."""

    files: dict[str, str]
    written: tuple[str, ...]
    running: bool


class Uninstalled(msgspec.Struct, frozen=True, kw_only=True):
    """Of `service uninstall`."""

    removed: tuple[str, ...]


@app.command()
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
        _refuse_sudo()
        places = places_here()
        manager = service(places, os.environ)
        files = manager.files()
        texts = {str(file.path): file.text for file in files}
        if dry_run:
            lines = [line for file in files for line in (styled(f"# {file.path}", "bold"), *file.text.splitlines(), "")]
            answer.give(Installed(files=texts, written=(), running=False), lines)
            return
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
        answer.give(Installed(files=texts, written=tuple(written), running=running), _install_lines(written, running))


def _write(path: os.PathLike[str], text: str) -> None:
    from pathlib import Path

    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise Refused(
            f"{path} can't be written: {error.strerror}", hint="check the owner and mode of its folder"
        ) from error


def _refuse_sudo() -> None:
    if os.environ.get("SUDO_UID", str(os.getuid())) != str(os.getuid()):
        raise Refused("memd can't be a service of root", hint="run this as the user who owns the memory, without sudo")


def _install_lines(written: list[str], running: bool) -> Iterator[str]:
    yield from (f"wrote {path}" for path in written)
    if not written:
        yield "already installed"
    if running:
        yield "memd is running and starts at each login"
        yield "to keep it running while you are logged out: `loginctl enable-linger`"
    else:
        yield from wrapped("your service manager does not answer: memd starts at the next login, or now with `memd up`")


@app.command()
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


@app.command("status")
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
