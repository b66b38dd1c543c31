"""Parts that the services of both managers use: templates, service files and their state, and a manager's commands."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

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
