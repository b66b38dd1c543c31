"""memd as a service of its user's service manager: systemd on Linux, launchd on macOS (U1).

Comes in: places and an environment. Goes out: files in the user's own folders, and what the manager says of them.
Invariants: a service belongs to one home, whose data folder its file names; nothing is done for root or system-wide.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ...protocol.places import Places

TEMPLATES = Path(__file__).resolve().parents[2] / "systemd"
CARRIED = ("MEMD_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
"""Variables that say where a home lies: a service manager knows none that a shell's start-up file sets."""


class ServiceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a service: where it belongs and what it says."""

    path: Path
    text: str

    def is_there(self) -> bool:
        """Whether it stands there as it should."""
        try:
            return self.path.read_text(encoding="utf-8") == self.text
        except OSError:
            return False


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """Of `memd service status`: are the files there (and as this version writes them), does it start at login, does it
    run now; `detail` is the manager's own word, `manager` is "" where none answers."""

    manager: str
    installed: bool
    current: bool
    enabled: bool = False
    active: bool = False
    detail: str = ""
    files: tuple[str, ...] = ()


class Service(Protocol):
    """One manager's way."""

    def files(self) -> tuple[ServiceFile, ...]:
        """What an installation writes."""
        ...

    def reachable(self) -> bool:
        """Whether the manager can be spoken to now."""
        ...

    def enable(self) -> str:
        """Have it run now and at each login; what went wrong, "" if nothing did."""
        ...

    def disable(self) -> str:
        """Have it run neither now nor at login."""
        ...

    def start(self) -> str:
        """Have it run now."""
        ...

    def stop(self) -> str:
        """Have it end, and not be started by the next client."""
        ...

    def state(self) -> ServiceState:
        """How things stand."""
        ...


def service(places: Places, environment: Mapping[str, str]) -> Service:
    """The service of this home, by this system's manager."""
    if sys.platform == "darwin":
        from .launchd import Launchd

        return Launchd(places, environment)
    from .systemd import Systemd

    return Systemd(places, environment)


def is_ours(each: Service, places: Places) -> bool:
    """Whether a service is installed, and is that of this home."""
    first = each.files()[0].path
    try:
        return str(places.data) in first.read_text(encoding="utf-8")
    except OSError:
        return False


def program() -> list[str]:
    """The `memd` that is running, as a manager would start it."""
    named = Path(sys.argv[0])
    for found in (named if named.name == "memd" else None, Path(sys.executable).with_name("memd")):
        if found is not None and found.is_absolute() and found.exists():
            return [str(found)]
    found = shutil.which("memd")
    return [found] if found else [sys.executable, "-P", "-m", "memd.clients.cli.main"]


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the service needs to find the same home."""
    found = {name: environment[name] for name in CARRIED if environment.get(name)}
    return {name: str(Path(value).absolute()) for name, value in found.items()}


def run(command: Sequence[str], wait_s: float = 90.0) -> tuple[int, str]:
    """A manager's exit code and what it said; 127 where there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=wait_s)
    except FileNotFoundError:
        return 127, f"there is no {command[0]}"
    except subprocess.TimeoutExpired:
        return 124, f"`{shlex.join(command)}` took longer than {wait_s:.0f} s"
    return done.returncode, (done.stdout + done.stderr).strip()
