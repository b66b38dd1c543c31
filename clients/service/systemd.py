"""memd as a systemd user service with a socket (U1).

Comes in: the unit templates. Goes out: units of this home, and `systemctl --user`. Invariant: a path survives whatever
systemd would make of its characters.
"""

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
    """`systemctl --user`, and the two units in the user's folder."""

    def __init__(self, places: Places, environment: Mapping[str, str]) -> None:
        self._places, self._carried = places, carried(environment)
        config = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or "/") / ".config"
        self._folder = Path(config) / "systemd" / "user"

    def files(self) -> tuple[ServiceFile, ...]:
        """The service first."""
        service = (TEMPLATES / SERVICE).read_text(encoding="utf-8")
        called = program()
        if set(called[0]) & set("'\"\\$"):  # characters that systemd takes in an argument only
            called = ["/usr/bin/env", *called]
        service = service.replace(_PROGRAM, " ".join(quoted(each, command=True) for each in called))
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
        """Both units, now and at each login; units that were changed are read anew."""
        enabled = _failed(["daemon-reload"], ["enable", SERVICE, SOCKET])
        return enabled or self.stop() or self.start()

    def disable(self) -> str:
        """The socket first: a client would start the service again."""
        return _failed(["disable", "--now", SOCKET, SERVICE])

    def start(self) -> str:
        """Both."""
        return _failed(["start", SOCKET, SERVICE])

    def stop(self) -> str:
        """Both."""
        return _failed(["stop", SOCKET, SERVICE])

    def state(self) -> ServiceState:
        """As `systemctl show` says."""
        files = self.files()
        installed = files[0].path.exists()
        wanted = ("ActiveState", "SubState", "UnitFileState", "NRestarts", "Result")
        code, said = _ctl("show", SERVICE, *(f"--property={each}" for each in wanted))
        found: dict[str, str] = {}
        for line in said.splitlines() if code == 0 else ():
            name, _, value = line.partition("=")
            found[name] = value
        active = found.get("ActiveState", "")
        detail = f"{active} ({found.get('SubState', '')}), restarts: {found.get('NRestarts', '')}" if found else said
        if found.get("Result", "success") != "success":
            detail += f", last result: {found['Result']}; `journalctl --user -u {SERVICE}` has more"
        return ServiceState(
            manager="systemd" if code == 0 else "",
            installed=installed,
            current=all(each.is_there() for each in files),
            enabled=found.get("UnitFileState") == "enabled",
            active=active in ("active", "reloading", "activating"),
            detail=detail,
            files=tuple(str(each.path) for each in files),
        )


def quoted(text: str, *, command: bool = False) -> str:
    """`text` as one word of a unit file; in a command line `$` would begin a variable."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    escaped = escaped.replace("$", "$$") if command else escaped
    return f'"{escaped}"' if set(text) & set(" \t\"'\\;") else escaped


def _ctl(*arguments: str) -> tuple[int, str]:
    return run(["systemctl", "--user", "--no-pager", *arguments])


def _failed(*commands: Sequence[str]) -> str:
    """What the first command that failed said."""
    for command in commands:
        code, said = _ctl(*command)
        if code:
            return said or f"`systemctl --user {' '.join(command)}` ended with {code}"
    return ""
