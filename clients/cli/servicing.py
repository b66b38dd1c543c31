"""`memd service`: memd at login, kept running by the system's service manager (U1).

Comes in: a wish. Goes out: files in the user's own folders, and how things stand. Invariants: twice is as once; files
that somebody changed are told before they are replaced; where no manager answers, the files are written all the same.
"""

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
from .output import Answer, JsonFlag, plain, styled, wrapped

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Run memd at login, by systemd or launchd: install, uninstall, status.",
    epilog="Without it `memd up` starts memd by hand, and does all that memd needs.",
)


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """Of `service install`: the files, and which of them were written now."""

    files: dict[str, str]
    written: tuple[str, ...]
    running: bool


class Uninstalled(msgspec.Struct, frozen=True, kw_only=True):
    """Of `service uninstall`."""

    removed: tuple[str, ...]


@app.command()
def install(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the files, write nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Have memd run now and at each login, and start again if it fails.

    \b
    Examples:
      memd service install
      memd service install --dry-run    # the files it would write
    """
    with Answer("service install", as_json) as answer:
        _refuse_sudo()
        places = places_here()
        manager = service(places, os.environ)
        files = manager.files()
        texts = {str(each.path): each.text for each in files}
        if dry_run:
            lines = [line for each in files for line in (styled(f"# {each.path}", "bold"), *each.text.splitlines(), "")]
            answer.give(Installed(files=texts, written=(), running=False), lines)
            return
        written: list[str] = []
        for each in files:
            if not each.is_there():
                _write(each.path, each.text)
                written.append(str(each.path))
        running = manager.reachable()
        if running:
            launch.stop(places)  # one that was started by hand holds the home
            if problem := manager.enable():
                raise Unavailable(
                    f"the service does not start: {problem}", hint="`memd service status`, `memd logs`, or `memd up`"
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
        raise Refused(f"{path} can't be written: {error.strerror}", hint="see its folder's owner and mode") from error


def _refuse_sudo() -> None:
    if os.environ.get("SUDO_UID", str(os.getuid())) != str(os.getuid()):
        raise Refused("memd is no service of root", hint="run it as the user whose memory it is")


def _install_lines(written: list[str], running: bool) -> Iterator[str]:
    yield from (f"wrote {each}" for each in written)
    if not written:
        yield "installed already"
    if running:
        yield "memd runs, and will at each login; while you are logged out too after `loginctl enable-linger`"
    else:
        yield "no service manager of yours answers here: memd will run at the next login; `memd up` starts it now"


@app.command()
def uninstall(as_json: JsonFlag = False) -> None:
    """Have memd run no more by itself. What it remembers stays; `memd up` starts it by hand.

    \b
    Example:
      memd service uninstall
    """
    with Answer("service uninstall", as_json) as answer:
        removed = remove()
        lines = [f"removed {each}" for each in removed] or ["memd was not installed as a service"]
        answer.give(Uninstalled(removed=removed), lines)


def remove() -> tuple[str, ...]:
    """Takes the service away; the files that went."""
    manager = service(places_here(), os.environ)
    files = [each.path for each in manager.files() if each.path.exists()]
    if files and manager.reachable():
        manager.disable()
    for each in files:
        each.unlink(missing_ok=True)
    return tuple(str(each) for each in files)


@app.command("status")
def status(as_json: JsonFlag = False) -> None:
    """Show whether memd is installed as a service, and what the service manager says of it.

    \b
    Example:
      memd service status
    """
    with Answer("service status", as_json) as answer:
        told = service(places_here(), os.environ).state()
        answer.give(told, _state_lines(told))


def _state_lines(told: ServiceState) -> Iterator[str]:
    if not told.installed:
        yield "not installed; `memd service install` does it"
        return
    yield styled("runs" if told.active else "does not run", "bold") + (", starts at login" if told.enabled else "")
    if told.manager:
        yield f"{told.manager}: {plain(told.detail)}"
    else:
        yield from wrapped(f"no service manager of yours answers: {plain(told.detail)}")
    if not told.current:
        yield from wrapped("its files are not those that this version writes; `memd service install` writes them anew")
    yield from (styled(each, "dim") for each in told.files)
