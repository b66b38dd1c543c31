"""`memd doctor`: problems of this installation with their remedies; `--fix` applies fixes that cannot lose data.

Checking changes nothing, and a fix never ends a daemon that answers, unless its version is older.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from ... import __version__
from ...protocol.errors import DaemonDown, MemdError, by_code
from ...protocol.places import Places
from ...protocol.record import LIVE
from ...protocol.reply import ModelState, Problem, StatusText
from ...protocol.repository_folder import repository_folder
from ...protocol.settings import SettingList
from .. import service
from ..hooks.hosts import TITLES, Hosts, check_hosts
from ..python import launch
from ..python.client import Client, places_here
from .connection import ended_with, is_older, offline
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped
from .skill_places import twice_named
from .wording import age, count, reflecting, size

app = typer.Typer(rich_markup_mode=None, add_completion=False)
State = Literal["ok", "warning", "broken", "fixed"]
_MARKS = {"ok": ("ok", "green"), "warning": ("!", "yellow"), "broken": ("broken", "red"), "fixed": ("fixed", "green")}
LOW_DISK_BYTES = 500_000_000
BACKUP_DAYS = 7
EXACT_UP_TO = 30_000
"""Records of a pool that are compared one by one in about 3 ms (docs/decisions/0007-graphs-are-optional.md)."""
OFTEN, UNUSED_LISTED = 50, 50
"""The number of answers from which a record that nobody used may be wrong or too general, and most of them to count."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one part of the installation; `hint` says what to do."""

    name: str
    state: State
    message: str
    hint: str = ""


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    """Of `doctor`."""

    well: bool
    findings: tuple[CheckResult, ...]


class ModelFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a model's manifest that lists its files by SHA-256."""

    files: dict[str, str]


class SettingsCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a daemon would start with; empty with a problem."""

    settings: SettingList = SettingList(file="", settings=())
    problem: Problem | None = None


Fix = Callable[[], str]
"""A fix; returns what it did."""
Results = Iterator[tuple[CheckResult, Fix | None]]


@app.command()
def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Apply fixes that cannot lose data.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check the installation and suggest fixes. The exit code is 1 if anything is broken.

    \b
    Examples:
      memd doctor
      memd doctor --fix
      memd doctor --json | jq '.data.findings[] | select(.state != "ok")'
    """
    with CommandAnswer("doctor", as_json) as answer:
        results = [_fixed(result, apply) if fix and apply else result for result, apply in _check(places_here())]
        well = all(result.state != "broken" for result in results)
        answer.give(
            Checkup(well=well, findings=tuple(results)), (line for result in results for line in _lines(result))
        )
    if not well:
        raise typer.Exit(1)


def _fixed(result: CheckResult, apply: Fix) -> CheckResult:
    try:
        return CheckResult(name=result.name, state="fixed", message=apply())
    except (MemdError, OSError) as error:
        reason = getattr(error, "message", None) or str(error)
        return CheckResult(name=result.name, state="broken", message=f"{result.message}; the fix failed: {reason}")


def _lines(result: CheckResult) -> Iterator[str]:
    mark, colour = _MARKS[result.state]
    head = f"{mark:<7}{result.name:<10}"
    first, *rest = wrapped(plain(result.message), " " * len(head), head)
    yield styled(mark, colour) + first[len(mark) :]
    yield from rest
    if result.hint:
        yield from (
            styled(line, "dim") for line in wrapped(f"→ {plain(result.hint)}", " " * (len(head) + 2), " " * len(head))
        )


def _check(places: Places) -> Results:
    """Every check, in an order in which a later one may rely on an earlier one's fix."""
    yield from _user()
    yield from _program()
    yield from _folders(places)
    status, result, fix = _daemon(places)
    trial = None if status else offline("check-installation")
    yield from _settings(trial)
    yield result, fix
    status = launch.answering(places) if fix else status
    yield from _socket(places, status)
    if status:
        yield from _stores(status)
        yield from _unused(places)
        yield from _search(places)
    yield from _spool(places, status)
    yield from _disk(places)
    yield from _service(places)
    yield from _hosts(places)
    yield from _skills()
    yield from _model(None if status else trial)


def _result(
    name: str, state: State, message: str, hint: str = "", fix: Fix | None = None
) -> tuple[CheckResult, Fix | None]:
    return CheckResult(name=name, state=state, message=message, hint=hint), fix


def _ok(name: str, message: str) -> tuple[CheckResult, Fix | None]:
    return _result(name, "ok", message)


def _user() -> Results:
    if os.environ.get("SUDO_UID", str(os.getuid())) != str(os.getuid()):
        hint = "run it as the user who owns the memory"
        yield _result("user", "broken", "memd refuses to run under sudo", hint)
    else:
        yield _ok("user", f"memd {__version__}, uid {os.getuid()}")


def _program() -> Results:
    """Whether clients find `memd`: shells, editors and Node start it to store a text that may hold a secret."""
    if where := shutil.which("memd"):
        yield _ok("program", where)
        return
    folder = Path(service.program()[0]).parent
    message = "memd is not in PATH: while it is down, editors and Node programs can't store anything"
    hint = f"add {folder} to PATH in your shell's start-up file, then start a new shell"
    yield _result("program", "warning", message, hint)


def _folders(places: Places) -> Results:
    wrong = 0
    for folder in (places.data, places.state, places.config, places.run, places.spool):
        message, hint, fix = "", "set MEMD_HOME to a folder of your own", None
        try:
            status = folder.stat()
            if status.st_uid != os.getuid():
                message = f"{folder} belongs to uid {status.st_uid}"
            elif stat.S_IMODE(status.st_mode) & 0o077:
                message, hint = f"other users may enter {folder}", f"chmod 700 {folder}"
                fix = partial(_chmod, folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            message = f"{folder} can't be entered: {error.strerror}"
        if message:
            wrong += 1
            yield _result("folders", "broken", message, hint, fix)
    if not wrong:
        exist = places.data.exists()
        yield _ok("folders", f"only you can read {places.data} and the others" if exist else "not created yet")


def _chmod(folder: Path) -> str:
    folder.chmod(0o700)
    return f"only you can enter {folder} now"


def _settings(trial: subprocess.CompletedProcess[str] | None) -> Results:
    """The settings of the daemon, or those that it would start with."""
    try:
        if trial is None:
            with Client() as client:
                settings = client.settings()
        else:
            settings = _tried_settings(trial)
    except MemdError as error:
        yield _result("settings", "broken", error.message, error.hint)
        return
    if settings.problem:
        yield _result("settings", "broken", settings.problem, f"correct {settings.file}")
        return
    changed = [setting.name for setting in settings.settings if setting.source != "default"]
    yield _ok("settings", f"changed: {', '.join(changed)}" if changed else "all defaults")


def _tried_settings(trial: subprocess.CompletedProcess[str]) -> SettingList:
    first, _, _ = trial.stdout.partition("\n")
    if not first:
        raise ended_with(trial)
    check = msgspec.json.decode(first, type=SettingsCheck)
    if check.problem:
        raise by_code(check.problem.code, check.problem.message, check.problem.hint)
    return check.settings


def _daemon(places: Places) -> tuple[StatusText | None, CheckResult, Fix | None]:
    """The status of the daemon, None if none answers; the result of the check, and the fix."""
    try:
        with Client(places) as client:
            status = client.status()
    except DaemonDown:
        return None, *_result("daemon", "warning", "not running", "start it: `memd up`", lambda: _start(places))
    except MemdError as error:
        return None, *_result("daemon", "broken", error.message, error.hint)
    if is_older(status.version):
        message = f"version {status.version} is still running; this command is {__version__}"
        return status, *_result("daemon", "warning", message, "to replace it: `memd up`", lambda: _replace(places))
    if status.version != __version__:
        message = f"version {status.version} is running; this command is {__version__}"
        return status, *_result("daemon", "warning", message, "check your PATH")
    return status, *_ok(
        "daemon", f"version {status.version} is running, pid {status.pid}, started {age(status.started_at)}"
    )


def _start(places: Places) -> str:
    launch.start(places, os.environ)
    return "started memd"


def _replace(places: Places) -> str:
    launch.stop(places)
    return _start(places)


def _socket(places: Places, status: StatusText | None) -> Results:
    left = [path for path in (places.socket, places.socket_file) if path.exists()]
    if status is None and left:
        message = f"a killed daemon left {', '.join(map(str, left))}; this is harmless"
        if not service.service(places, os.environ).state().active:
            yield _result("socket", "warning", message, "the next start removes it", lambda: _unlink(left))


def _unlink(left: list[Path]) -> str:
    for path in left:
        path.unlink(missing_ok=True)
    return "removed the files of a killed daemon"


def _stores(status: StatusText) -> Results:
    for trouble in status.troubles:
        yield _result("stores", "broken", trouble, "`memd verify` checks everything; `memd logs` has details")
    if status.failures:
        message = f"{count(len(status.failures), 'capture')} failed: {status.failures[0]}"
        yield _result("stores", "warning", message, "`memd retry` lists them and processes them again")
    if not status.troubles:
        total = sum(status.records.values())
        yield _ok("stores", f"{count(total, 'record')}, {size(sum(status.size_bytes.values()))}, no problems")
    backed_up = status.last.get("backed up")
    if status.journal_seq and _days_since(backed_up.at if backed_up else "") > BACKUP_DAYS:
        message = f"the newest was made {age(backed_up.at)}" if backed_up else "none yet"
        yield _result("backup", "warning", message, "to make one: `memd backup`")
    elif backed_up:
        yield _ok("backup", f"{age(backed_up.at)}, {backed_up.what}")


def _unused(places: Places) -> Results:
    """Whether records stand in many answers and nobody uses them."""
    try:
        with Client(places) as client:
            often = client.never_used((), OFTEN + 1, UNUSED_LISTED).records
    except MemdError as error:
        yield _result("records", "warning", error.message, error.hint)
        return
    if often:
        more = "at least " if len(often) == UNUSED_LISTED else ""
        message = (
            f"{more}{count(len(often), 'record was', 'records were')} returned more than {OFTEN} times, and never used"
        )
        hint = f"`memd maintain unused --least {OFTEN + 1}` lists them; edit, reject or forget what does not help"
        yield _result("records", "warning", message, hint)


def _search(places: Places) -> Results:
    """Whether a pool is so large that it needs a graph of vectors, and hnswlib is missing."""
    if find_spec("hnswlib"):
        yield _ok("search", "hnswlib is installed: a graph searches a pool of more than 10,000 records")
        return
    try:
        with Client(places) as client:
            pools = client.pools().pools
    except MemdError as error:
        yield _result("search", "warning", error.message, error.hint)
        return
    sizes = [(sum(pool.counts.get(status, 0) for status in LIVE), pool.pool) for pool in pools]
    largest, name = max(sizes, default=(0, ""))
    if largest > EXACT_UP_TO:
        message = (
            f"the pool {name} has {count(largest, 'record')}; without hnswlib a question is compared with each one"
        )
        hint = "install memd with the extra `hnsw` (docs/INSTALL.md), then `memd down` and `memd up`"
        yield _result("search", "warning", message, hint)
    else:
        yield _ok("search", f"exact, without hnswlib; that matters from {EXACT_UP_TO:,} records in a pool")


def _days_since(at: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds() / 86_400 if at else BACKUP_DAYS + 1.0


def _spool(places: Places, status: StatusText | None) -> Results:
    files = sorted(path for path in places.spool.glob("*") if path.suffix in (".spool", ".lines", ".taken"))
    waiting = [path for path in files if _bytes(path)]
    rejected = [path for path in places.spool.glob("*.rejected") if _bytes(path)]
    if rejected:
        message = f"memd rejected the requests in {', '.join(map(str, rejected))}"
        hint = "`memd logs` has the reasons; remove the file when you no longer need it"
        yield _result("spool", "warning", message, hint)
    if waiting and status is None:
        message = f"{count(len(waiting), 'file waits', 'files wait')} for the daemon"
        yield _result("spool", "warning", message, "to deliver: `memd up`")
    elif not rejected:
        yield _ok("spool", f"the daemon is reading {count(len(waiting), 'file')}" if waiting else "empty")


def _skills() -> Results:
    """Whether a skill has the name of another one (K4)."""
    root = repository_folder(Path.cwd())
    if root and (names := twice_named(Path.home(), root)):
        message = f"in your home and in {root}: {', '.join(names)}"
        hint = (
            "Claude Code takes the one in your home, Gemini CLI the project's: rename one, or `memd skill retire NAME`"
        )
        yield _result("skills", "warning", message, hint)


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # the daemon has just taken it
        return 0


def _disk(places: Places) -> Results:
    folder = next((path for path in (places.data, *places.data.parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    if free < LOW_DISK_BYTES:
        message = f"only {size(free)} free for {places.data}"
        yield _result("disk", "warning", message, "`memd du` shows how to reduce disk usage")
    else:
        yield _ok("disk", f"{size(free)} free")


def _service(places: Places) -> Results:
    manager = service.service(places, os.environ)
    if not service.is_ours(manager, places):
        yield _ok("service", "not installed; to start memd at each login: `memd service install`")
        return
    state = manager.state()
    if not state.current:
        message = "its files belong to another version or another home"
        yield _result("service", "warning", message, "run `memd service install`")
    elif state.manager and not state.active:
        hint = "start it with `memd up`; `memd service status` has details"
        yield _result("service", "warning", f"not running: {state.detail}", hint)
    else:
        yield _ok("service", f"{state.manager or 'installed'}: {state.detail}")


def _hosts(places: Places) -> Results:
    for host in check_hosts():
        if host.problem:
            fix = partial(_set_up, places, host.name)
            yield _result("hosts", "broken", f"{host.title}: {host.problem}", f"run `{host.hint}`", fix)
        else:
            state = f"set up{reflecting(host.reflects)}" if host.is_set_up else f"not set up (run `{host.hint}`)"
            yield _ok("hosts", f"{host.title}: {state}")


def _set_up(places: Places, name: str) -> str:
    hosts = Hosts(places, os.environ)
    hosts.set_up(name, hosts.edits(name))
    return f"{TITLES[name]} is set up again"


def _model(trial: subprocess.CompletedProcess[str] | None) -> Results:
    """The files of the model that the daemon uses; without a daemon, the chosen model was loaded and tried."""
    message = ""
    if trial is None:
        try:
            with Client() as client:
                message = next((_damage(model) for model in client.models().models if model.searches), "")
        except MemdError as error:
            message = error.message
    elif trial.returncode:
        printed = (line[6:] for line in trial.stderr.splitlines() if line.startswith("memd: "))
        message = next(printed, "the model does not load")
    if message:
        yield _result("model", "broken", message, "`memd model verify` has details")
    else:
        yield _ok("model", "its files are intact" + ("" if trial is None else ", and its vectors are correct"))


def _damage(model: ModelState) -> str:
    """The difference between a model's files and its manifest, "" if there is none."""
    if model.problem:
        return model.problem
    folder = Path(model.folder)
    try:
        manifest = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=ModelFiles)
        for name, expected in manifest.files.items():
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                    return f"{folder / name} differs from the manifest"
    except (OSError, msgspec.MsgspecError) as error:
        return f"{folder} can't be read: {error}"
    return ""
