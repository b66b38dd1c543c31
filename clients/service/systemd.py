"""memd as a systemd user service with a socket (U1). Paths are quoted, because systemd expands some characters."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...protocol.places import Places
from . import TEMPLATES, ServiceFile, ServiceState, carried, program, run

SERVICE, SOCKET = "memd.service", "memd.socket"
_PROGRAM = "%h/.local/bin/memd"
_ADDRESS = "%t/memd/memd.sock"


class Systemd:
    """The two units in the user's folder. A method returns the manager's error, "" for none."""

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

    def state(self) -> ServiceState:
        files = self.files()
        installed = files[0].path.exists()
        wanted = ("ActiveState", "SubState", "UnitFileState", "NRestarts", "Result")
        code, output = _ctl("show", SERVICE, *(f"--property={name}" for name in wanted))
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


def _ctl(*arguments: str) -> tuple[int, str]:
    return run(["systemctl", "--user", "--no-pager", *arguments])


def _failed(*commands: Sequence[str]) -> str:
    """Run commands up to the first that fails; return its output."""
    for command in commands:
        code, output = _ctl(*command)
        if code:
            return output or f"`systemctl --user {' '.join(command)}` ended with {code}"
    return ""
