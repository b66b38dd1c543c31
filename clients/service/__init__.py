"""memd as a service of its user's service manager: systemd on Linux, launchd on macOS (U1).

A service belongs to one home, whose data folder its file names. It is never installed for root or system-wide. A method
that changes it returns the manager's error, "" for none.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...protocol.places import Places

TEMPLATES = Path(__file__).resolve().parents[2] / "systemd"
WAIT_S = 90.0
"""Seconds to wait for a manager's command."""

CARRIED = ("MEMD_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
"""The variables of a home's location, which a service manager does not read from a shell's start-up file."""


class ServiceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a service, as it should be."""

    path: Path
    text: str

    def is_there(self) -> bool:
        """Whether the file exists with this text."""
        try:
            return self.path.read_text(encoding="utf-8") == self.text
        except OSError:
            return False


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `memd service status`. `manager`: "" if none answers; `current`: the files are this version's;
    `enabled`: it starts at login; `active`: it runs now; `detail`: the manager's own text."""

    manager: str
    installed: bool
    current: bool
    enabled: bool = False
    active: bool = False
    detail: str = ""
    files: tuple[str, ...] = ()


def program() -> list[str]:
    """Return the command line of the running `memd` for a manager."""
    named = Path(sys.argv[0])
    for script in (named if named.name == "memd" else None, Path(sys.executable).with_name("memd")):
        if script is not None and script.is_absolute() and script.exists():
            return [str(script)]
    on_path = shutil.which("memd")
    return [on_path] if on_path else [sys.executable, "-P", "-m", "memd.clients.cli.main"]


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the service needs to find the same home."""
    return {name: str(Path(environment[name]).absolute()) for name in CARRIED if environment.get(name)}


def run(command: Sequence[str], wait_s: float = WAIT_S) -> tuple[int, str]:
    """Run a manager's command; return its exit code, 127 if it does not exist, and its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=wait_s)
    except FileNotFoundError:
        return 127, f"there is no {command[0]}"
    except subprocess.TimeoutExpired:
        return 124, f"`{shlex.join(command)}` took longer than {wait_s:.0f} s"
    return done.returncode, (done.stdout + done.stderr).strip()


# --- systemd on Linux -------------------------------------------------------------------------------------------------
SERVICE, SOCKET = "memd.service", "memd.socket"
_PROGRAM = "%h/.local/bin/memd"
_ADDRESS = "%t/memd/memd.sock"


class Systemd:
    """The two units in the user's folder. Paths are quoted, because systemd expands some characters."""

    def __init__(self, places: Places, environment: Mapping[str, str]) -> None:
        self._places, self._carried = places, carried(environment)
        config = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or "/") / ".config"
        self._folder = Path(config) / "systemd" / "user"

    def files(self) -> tuple[ServiceFile, ...]:
        """Return the service unit and the socket unit."""
        service = (TEMPLATES / SERVICE).read_text(encoding="utf-8")
        command = program()
        if set(command[0]) & set("'\"\\$"):  # systemd allows these characters in arguments alone
            command = ["/usr/bin/env", *command]
        service = service.replace(_PROGRAM, " ".join(quoted(word, is_command=True) for word in command))
        lines = [f"# data: {self._places.data}\nEnvironment=ORT_DISABLE_TELEMETRY=1"]
        lines += [f"Environment={quoted(f'{name}={value}')}" for name, value in self._carried.items()]
        service = service.replace("Type=notify\n", "\n".join(["Type=notify", *lines, ""]))
        socket = (TEMPLATES / SOCKET).read_text(encoding="utf-8")
        socket = socket.replace(_ADDRESS, str(self._places.socket).replace("%", "%%"))
        return (
            ServiceFile(path=self._folder / SERVICE, text=service),
            ServiceFile(path=self._folder / SOCKET, text=socket),
        )

    def reachable(self) -> bool:
        """Whether a user manager answers."""
        return bool(shutil.which("systemctl")) and _ctl("show", "--property=Version")[0] == 0

    def enable(self) -> str:
        """Start both units now and at each login, after reading changed units again."""
        return _failed(["daemon-reload"], ["enable", SERVICE, SOCKET]) or self.stop() or self.start()

    def disable(self) -> str:
        """Stop and disable both, the socket first, because a client would start the service through it."""
        return _failed(["disable", "--now", SOCKET, SERVICE])

    def start(self) -> str:
        return _failed(["start", SOCKET, SERVICE])

    def stop(self) -> str:
        return _failed(["stop", SOCKET, SERVICE])

    def state(self, wait_s: float = WAIT_S) -> ServiceState:
        files = self.files()
        installed = files[0].path.exists()
        wanted = ("ActiveState", "SubState", "UnitFileState", "NRestarts", "Result")
        code, output = _ctl("show", SERVICE, *(f"--property={name}" for name in wanted), wait_s=wait_s)
        lines = output.splitlines() if code == 0 else []
        unit = {name: value for name, _, value in (line.partition("=") for line in lines)}
        active = unit.get("ActiveState", "")
        detail = f"{active} ({unit.get('SubState', '')}), restarts: {unit.get('NRestarts', '')}" if unit else output
        if unit.get("Result", "success") != "success":
            detail += f", last result: {unit['Result']}; `journalctl --user -u {SERVICE}` shows details"
        return ServiceState(
            manager="systemd" if code == 0 else "",
            installed=installed,
            current=all(file.is_there() for file in files),
            enabled=unit.get("UnitFileState") == "enabled",
            active=active in ("active", "reloading", "activating"),
            detail=detail,
            files=tuple(str(file.path) for file in files),
        )


def quoted(text: str, *, is_command: bool = False) -> str:
    """Return `text` as one word of a unit file; in a command line `$` begins a variable."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    escaped = escaped.replace("$", "$$") if is_command else escaped
    return f'"{escaped}"' if set(text) & set(" \t\"'\\;") else escaped


def _ctl(*arguments: str, wait_s: float = WAIT_S) -> tuple[int, str]:
    return run(["systemctl", "--user", "--no-pager", *arguments], wait_s)


def _failed(*commands: Sequence[str]) -> str:
    """Run commands up to the first that fails; return its output."""
    for command in commands:
        code, output = _ctl(*command)
        if code:
            return output or f"`systemctl --user {' '.join(command)}` ended with {code}"
    return ""


# --- launchd on macOS -------------------------------------------------------------------------------------------------
LABEL = "dev.memd.daemon"


class Launchd:
    """The launch agent in the user's folder. launchd expands neither ~ nor variables, so every path is absolute."""

    def __init__(self, places: Places, environment: Mapping[str, str]) -> None:
        self._places, self._carried = places, carried(environment)
        self._home = Path(environment.get("HOME") or "/")
        self._domain = f"gui/{os.getuid()}"

    def files(self) -> tuple[ServiceFile, ...]:
        import plistlib

        agent: dict[str, Any] = plistlib.loads((TEMPLATES / f"{LABEL}.plist").read_bytes())
        agent["ProgramArguments"] = [*program(), "up", "--foreground"]
        agent["StandardErrorPath"] = str(self._places.log)
        agent["EnvironmentVariables"] = {"ORT_DISABLE_TELEMETRY": "1", **self._carried}
        agent["WorkingDirectory"] = "/"
        mark = f"<!-- data: {self._places.data} -->\n" if "--" not in str(self._places.data) else ""
        text = plistlib.dumps(agent).decode().replace("<plist", f"{mark}<plist", 1)
        path = self._home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        return (ServiceFile(path=path, text=text),)

    def reachable(self) -> bool:
        """Whether the user has a login session."""
        return run(["launchctl", "print", self._domain])[0] == 0

    def enable(self) -> str:
        """Load the agent, or load it again."""
        self.disable()
        return self.start()

    def start(self) -> str:
        """Load and run the agent."""
        code, output = run(["launchctl", "bootstrap", self._domain, str(self.files()[0].path)])
        return output if code and "already" not in output else ""

    def stop(self) -> str:
        """Unload the agent until the next login."""
        code, output = run(["launchctl", "bootout", f"{self._domain}/{LABEL}"])
        return output if code and "No such process" not in output else ""

    disable = stop

    def state(self, wait_s: float = WAIT_S) -> ServiceState:
        (file,) = self.files()
        code, output = run(["launchctl", "print", f"{self._domain}/{LABEL}"], wait_s)
        states = [line.strip() for line in output.splitlines() if line.strip().startswith("state = ")]
        return ServiceState(
            manager="launchd" if code in (0, 113) else "",
            installed=file.path.exists(),
            current=file.is_there(),
            enabled=code == 0,
            active="state = running" in states,
            detail=states[0] if states else output,
            files=(str(file.path),),
        )


def service(places: Places, environment: Mapping[str, str]) -> Systemd | Launchd:
    """Return the service of this home under this system's manager."""
    if sys.platform == "darwin":
        return Launchd(places, environment)
    return Systemd(places, environment)


def is_ours(installed: Systemd | Launchd, places: Places) -> bool:
    """Whether a service of this home is installed."""
    first = installed.files()[0].path
    try:
        return str(places.data) in first.read_text(encoding="utf-8")
    except OSError:
        return False
