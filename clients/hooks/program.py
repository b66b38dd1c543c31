"""The hook program as it is installed: a copy beside its settings, in the state folder, run by the bare interpreter.

Comes in: places, an environment. Goes out: the command line of a hook. Invariants: what runs does not depend on the
environment that memd is installed in, so that an agent goes on when that is gone (P-3); installing again writes
nothing that is there already; nothing of it is anyone else's to read.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ... import __version__
from ...protocol.places import Places
from ..python.folder import make_private
from .notes import folder

SOURCE = Path(__file__).with_name("memd_hook.py")
SETTINGS = "hook.json"
_ENVIRONMENT = ("MEMD_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
TRIAL_S = 5.0


def path(places: Places) -> Path:
    """The installed program."""
    return folder(places.state) / SOURCE.name


def contents(places: Places, environment: Mapping[str, str]) -> dict[Path, bytes]:
    """The files of the program as they should be."""
    surroundings = {name: environment.get(name, "") for name in _ENVIRONMENT}
    if surroundings["MEMD_HOME"]:
        surroundings["MEMD_HOME"] = os.path.abspath(surroundings["MEMD_HOME"])
    settings = {
        "version": __version__,
        "disabled": str(places.config / "disabled"),
        "socket": str(places.socket_file),
        "follow": following(),
        "environment": surroundings,
    }
    content = msgspec.json.format(msgspec.json.encode(settings)) + b"\n"
    return {path(places): SOURCE.read_bytes(), path(places).with_name(SETTINGS): content}


def following() -> list[str]:
    """How `follow.py` is run in the background: by the environment that memd is installed in."""
    return [sys.executable, "-P", "-m", "memd.clients.hooks.follow"]


def install(places: Places, environment: Mapping[str, str]) -> None:
    """Puts the program where hosts run it. Raises OSError, Refused."""
    make_private(folder(places.state))
    for file, content in contents(places, environment).items():
        if not file.exists() or file.read_bytes() != content:
            replace(file, content)


def remove(places: Places) -> None:
    """Takes the program away; what it noted and counted stays."""
    for file in contents(places, {}):
        file.unlink(missing_ok=True)


def replace(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes a file whole or not at all. Raises OSError."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as opened:
        opened.write(content)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    fresh.replace(file)


def command(places: Places, agent: str) -> list[str]:
    """How a host runs it; the event is the last argument. The interpreter is the one behind a virtual environment."""
    return [os.path.realpath(sys.executable), "-I", "-S", str(path(places)), agent]


def shell_line(places: Places, agent: str, event: str) -> str:
    """The same for a shell. It never fails, not even where the interpreter is gone: an agent may take that for a no."""
    return f"{shlex.join([*command(places, agent), event])} 2>/dev/null || true"


def problem(places: Places, environment: Mapping[str, str], tried: bool = True) -> str:
    """What is wrong with the installed program, `tried` as a host would run it; "" if nothing is."""
    for file, content in contents(places, environment).items():
        if not file.exists():
            return f"{file} is gone"
        if file.read_bytes() != content:
            return f"{file.name} is of another version or installation of memd"
    if not tried:
        return ""
    import subprocess

    run = [*command(places, "claude-code"), "Trial"]
    try:
        done = subprocess.run(run, input=b"{}", capture_output=True, timeout=TRIAL_S, check=False, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not run: {error}"
    if done.returncode or done.stdout or done.stderr:
        return (
            f"it ends with exit code {done.returncode}: {(done.stderr or done.stdout)[-200:].decode(errors='replace')}"
        )
    return ""
