"""memd as a service of its user's service manager: systemd on Linux, launchd on macOS (U1).

A service belongs to one home, whose data folder its file names. It is never installed for root or system-wide.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...protocol.places import Places

if TYPE_CHECKING:
    from .launchd import Launchd
    from .systemd import Systemd

TEMPLATES = Path(__file__).resolve().parents[2] / "systemd"
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


def service(places: Places, environment: Mapping[str, str]) -> Systemd | Launchd:
    """Return the service of this home under this system's manager."""
    if sys.platform == "darwin":
        from .launchd import Launchd

        return Launchd(places, environment)
    from .systemd import Systemd

    return Systemd(places, environment)


def is_ours(installed: Systemd | Launchd, places: Places) -> bool:
    """Whether a service of this home is installed."""
    first = installed.files()[0].path
    try:
        return str(places.data) in first.read_text(encoding="utf-8")
    except OSError:
        return False


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


def run(command: Sequence[str], wait_s: float = 90.0) -> tuple[int, str]:
    """Run a manager's command; return its exit code, 127 if it does not exist, and its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=wait_s)
    except FileNotFoundError:
        return 127, f"there is no {command[0]}"
    except subprocess.TimeoutExpired:
        return 124, f"`{shlex.join(command)}` took longer than {wait_s:.0f} s"
    return done.returncode, (done.stdout + done.stderr).strip()
