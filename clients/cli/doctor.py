"""`memd doctor`: what is wrong with this installation, and what to do; with `--fix` it does what is safe.

Comes in: nothing. Goes out: findings, and exit code 1 if something is broken. Invariants: looking changes nothing;
a fix is one that loses nothing and is asked for; a daemon that answers is never ended, but for one of an older version.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from ... import __version__
from ...protocol.errors import DaemonDown, MemdError
from ...protocol.places import Places
from ...protocol.reply import StatusText
from ...protocol.settings import SettingList
from .. import service
from ..hooks.hosts import TITLES, Hosts, check_hosts
from ..python import launch
from ..python.client import Client, places_here
from .connection import is_older, offline, reported
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped
from .wording import age, count, size

app = typer.Typer(rich_markup_mode=None, add_completion=False)
State = Literal["ok", "warning", "broken", "fixed"]
_MARKS = {"ok": ("ok", "green"), "warning": ("!", "yellow"), "broken": ("broken", "red"), "fixed": ("fixed", "green")}
ROOM_BYTES = 500_000_000
BACKUP_DAYS = 7


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, how it is, and what to do where it is not well."""

    name: str
    state: State
    message: str
    hint: str = ""


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    """Of `doctor`."""

    well: bool
    findings: tuple[Finding, ...]


Fix = Callable[[], str]
Found = Iterator[tuple[Finding, Fix | None]]
"""Findings, each with what mends it: a callable that says what it did."""


@app.command()
def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended without losing anything.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Look at everything that memd needs, and say what to do about what is wrong. Exit code 1 if something is broken.

    \b
    Examples:
      memd doctor
      memd doctor --fix
      memd doctor --json | jq '.data.findings[] | select(.state != "ok")'
    """
    with CommandAnswer("doctor", as_json) as answer:
        places = places_here()
        findings = [_mended(finding, mend) if fix and mend else finding for finding, mend in _look(places)]
        well = all(each.state != "broken" for each in findings)
        answer.give(Checkup(well=well, findings=tuple(findings)), (line for each in findings for line in _lines(each)))
    if not well:
        raise typer.Exit(1)


def _mended(finding: Finding, mend: Fix) -> Finding:
    try:
        return Finding(name=finding.name, state="fixed", message=mend())
    except (MemdError, OSError) as error:
        why = getattr(error, "message", None) or str(error)
        return Finding(name=finding.name, state="broken", message=f"{finding.message}; mending it failed: {why}")


def _lines(finding: Finding) -> Iterator[str]:
    mark, colour = _MARKS[finding.state]
    head = f"{mark:<7}{finding.name:<10}"
    first, *rest = wrapped(plain(finding.message), " " * len(head), head)
    yield styled(mark, colour) + first[len(mark) :]
    yield from rest
    if finding.hint:
        yield from (
            styled(line, "dim") for line in wrapped(f"→ {plain(finding.hint)}", " " * (len(head) + 2), " " * len(head))
        )


def _look(places: Places) -> Found:
    """Everything, in an order in which a later check may rely on an earlier one's fix."""
    yield from _user()
    yield from _folders(places)
    yield from _settings()
    yield from _daemon(places)
    status = launch.answering(places)
    yield from _socket(places, status)
    if status:
        yield from _stores(status)
    yield from _spool(places, status)
    yield from _room(places)
    yield from _service(places)
    yield from _hosts(places)
    yield from _model()


def _ok(name: str, message: str) -> tuple[Finding, None]:
    return Finding(name=name, state="ok", message=message), None


def _user() -> Found:
    if os.environ.get("SUDO_UID", str(os.getuid())) != str(os.getuid()):
        hint = "run it as the user whose memory it is"
        yield Finding(name="user", state="broken", message="memd will not run under sudo", hint=hint), None
    else:
        yield _ok("user", f"memd {__version__}, uid {os.getuid()}, {shutil.which('memd') or 'not in PATH'}")


def _folders(places: Places) -> Found:
    wrong = 0
    for folder in (places.data, places.state, places.config, places.run, places.spool):
        try:
            found = folder.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            wrong += 1
            message, hint = f"{folder} can't be entered: {error.strerror}", "give memd a folder of your own: MEMD_HOME"
            yield Finding(name="folders", state="broken", message=message, hint=hint), None
            continue
        if found.st_uid != os.getuid():
            wrong += 1
            message, hint = f"{folder} belongs to uid {found.st_uid}", "use a home of your own: MEMD_HOME"
            yield Finding(name="folders", state="broken", message=message, hint=hint), None
        elif stat.S_IMODE(found.st_mode) & 0o077:
            wrong += 1
            finding = Finding(
                name="folders", state="broken", message=f"others may enter {folder}", hint=f"chmod 700 {folder}"
            )
            yield finding, lambda folder=folder: _chmod(folder)
    if not wrong:
        yield _ok("folders", f"{places.data} and the others are yours alone" if places.data.exists() else "none yet")


def _chmod(folder: Path) -> str:
    folder.chmod(0o700)
    return f"{folder} is yours alone now"


def _settings() -> Found:
    try:
        with Client() as client:
            found = client.settings()
    except MemdError:
        try:
            found = reported(offline("settings"), SettingList)
        except MemdError as error:
            yield Finding(name="settings", state="broken", message=error.message, hint=error.hint), None
            return
    if found.problem:
        yield Finding(name="settings", state="broken", message=found.problem, hint=f"mend {found.file}"), None
        return
    changed = [each.name for each in found.settings if each.source != "default"]
    yield _ok("settings", f"{', '.join(changed)} set" if changed else "all as they come")


def _daemon(places: Places) -> Found:
    try:
        with Client(places) as client:
            status = client.status()
    except DaemonDown:
        finding = Finding(name="daemon", state="warning", message="it does not run", hint="start it: `memd up`")
        yield finding, lambda: _start(places)
        return
    except MemdError as error:
        yield Finding(name="daemon", state="broken", message=error.message, hint=error.hint), None
        return
    if is_older(status.version):
        message = f"version {status.version} still runs, this is {__version__}"
        finding = Finding(name="daemon", state="warning", message=message, hint="`memd up` replaces it")
        yield finding, lambda: _replace(places)
    elif status.version != __version__:
        message = f"version {status.version} runs, this command is {__version__}"
        yield Finding(name="daemon", state="warning", message=message, hint="which memd is first in your PATH?"), None
    else:
        yield _ok("daemon", f"version {status.version} runs, pid {status.pid}, since {age(status.started_at)}")


def _start(places: Places) -> str:
    launch.start(places, os.environ)
    return "memd runs"


def _replace(places: Places) -> str:
    launch.stop(places)
    return _start(places)


def _socket(places: Places, status: StatusText | None) -> Found:
    left = [each for each in (places.socket, places.socket_file) if each.exists()]
    if status is None and left:
        message = f"a killed daemon left {', '.join(map(str, left))}: harmless"
        finding = Finding(name="socket", state="warning", message=message, hint="the next start removes it")
        if not service.service(places, os.environ).state().active:
            yield finding, lambda: _unlink(left)


def _unlink(left: list[Path]) -> str:
    for each in left:
        each.unlink(missing_ok=True)
    return "removed what a killed daemon left"


def _stores(status: StatusText) -> Found:
    for trouble in status.troubles:
        hint = "`memd verify` looks at everything; `memd logs` has more"
        yield Finding(name="stores", state="broken", message=trouble, hint=hint), None
    if status.failures:
        message = f"{count(len(status.failures), 'capture')} could not be distilled: {status.failures[0]}"
        yield Finding(name="stores", state="warning", message=message, hint="`memd retry` lists and retries them"), None
    if not status.troubles:
        total = sum(status.records.values())
        yield _ok("stores", f"{count(total, 'record')}, {size(sum(status.size_bytes.values()))}, no trouble")
    backed_up = status.last.get("backed up")
    if status.journal_seq and _days_since(backed_up.at if backed_up else "") > BACKUP_DAYS:
        message = f"the newest is of {age(backed_up.at)}" if backed_up else "there is none yet"
        yield Finding(name="backup", state="warning", message=message, hint="`memd backup` makes one now"), None
    elif backed_up:
        yield _ok("backup", f"{age(backed_up.at)}, {backed_up.what}")


def _days_since(at: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds() / 86_400 if at else BACKUP_DAYS + 1.0


def _spool(places: Places, status: StatusText | None) -> Found:
    waiting = sorted(each for each in places.spool.glob("*") if each.suffix in (".spool", ".lines", ".taken"))
    waiting = [each for each in waiting if _bytes(each)]
    if rejected := [each for each in places.spool.glob("*.rejected") if _bytes(each)]:
        message = f"{', '.join(map(str, rejected))}: what memd refused, or could not read"
        hint = "look at it, then remove it; `memd logs` says why each was refused"
        yield Finding(name="spool", state="warning", message=message, hint=hint), None
    if waiting and status is None:
        message = f"{count(len(waiting), 'file waits', 'files wait')} for the daemon"
        yield Finding(name="spool", state="warning", message=message, hint="`memd up` takes them"), None
    elif not rejected:
        yield _ok("spool", "nothing waits" if not waiting else f"{count(len(waiting), 'file')} being taken")


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it was taken just now
        return 0


def _room(places: Places) -> Found:
    folder = next((each for each in (places.data, *places.data.parents) if each.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    if free < ROOM_BYTES:
        message, hint = f"{size(free)} free where {places.data} lies", "`memd du` says what memd takes, `memd compact`"
        yield Finding(name="disk", state="warning", message=message, hint=hint), None
    else:
        yield _ok("disk", f"{size(free)} free")


def _service(places: Places) -> Found:
    manager = service.service(places, os.environ)
    if not service.is_ours(manager, places):
        yield _ok("service", "not installed: `memd up` starts memd by hand, `memd service install` at each login")
        return
    state = manager.state()
    if not state.current:
        message = "its files are those of another version or place"
        yield Finding(name="service", state="warning", message=message, hint="`memd service install`"), None
    elif state.manager and not state.active:
        hint = "`memd up`; `memd service status` says more"
        yield Finding(name="service", state="warning", message=f"does not run: {state.detail}", hint=hint), None
    else:
        yield _ok("service", f"{state.manager or 'installed'}: {state.detail}")


def _hosts(places: Places) -> Found:
    for host in check_hosts():
        if host.problem:
            finding = Finding(name="hosts", state="broken", message=f"{host.title}: {host.problem}", hint=host.hint)
            yield finding, lambda name=host.name: _set_up(places, name)
        else:
            state = "memd is set up" if host.is_set_up else f"is here, memd is not set up: `{host.hint}`"
            yield _ok("hosts", f"{host.title}: {state}")


def _set_up(places: Places, name: str) -> str:
    hosts = Hosts(places, os.environ)
    hosts.set_up(name, hosts.edits(name))
    return f"{TITLES[name]} is set up anew"


def _model() -> Found:
    done = offline("check-model")
    if done.returncode:
        message = next((line[6:] for line in done.stderr.splitlines() if line.startswith("memd: ")), "it does not load")
        yield Finding(name="model", state="broken", message=message, hint="`memd model verify` says more"), None
    else:
        yield _ok("model", "its files are whole, and its vectors as they should be")
