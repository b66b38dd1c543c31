"""The installation of the hook program: a private copy beside its settings in the state folder, and compiled.

Invariant: the program needs only the bare interpreter, not the environment that memd is installed in (P-3). Hosts run
the compiled copy: to compile the source at each call took as long as all else that the program does, 10 ms.
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
from ..python.folder import make_private, write_whole
from .notes import folder
from .session_pulls import pulling, syncing

SOURCE = Path(__file__).with_name("memd_hook.py")
COMPILED = "memd_hook.pyc"
SETTINGS = "hook.json"
_ENVIRONMENT = ("MEMD_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
TRIAL_S = 5.0


def path(places: Places) -> Path:
    """Return the path of the installed program."""
    return folder(places.state) / SOURCE.name


def contents(places: Places, environment: Mapping[str, str]) -> dict[Path, bytes]:
    """Return the files of the program with their contents."""
    settings = {
        "version": __version__,
        "disabled": str(places.config / "disabled"),
        "socket": str(places.socket_file),
        "follow": following(),
        "pull": pulling(),
        "sync": syncing(),
        "environment": variables(environment),
    }
    content = msgspec.json.format(msgspec.json.encode(settings)) + b"\n"
    return {path(places): SOURCE.read_bytes(), path(places).with_name(SETTINGS): content}


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name the home, "" for an unset one."""
    named = {name: environment.get(name, "") for name in _ENVIRONMENT}
    if named["MEMD_HOME"]:
        named["MEMD_HOME"] = os.path.abspath(named["MEMD_HOME"])
    return named


def following() -> list[str]:
    """Return the command line of `follow.py`, in the environment that memd is installed in."""
    return [sys.executable, "-P", "-m", "memd.clients.hooks.follow"]


def install(places: Places, environment: Mapping[str, str]) -> None:
    """Install the program. Raises OSError, Refused."""
    from py_compile import PycInvalidationMode, compile

    write_changed(contents(places, environment))
    source, place = path(places), path(places).with_name(COMPILED)
    compile(str(source), str(place), doraise=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)


def _is_compiled(places: Places) -> bool:
    """Whether the compiled copy is of this source and for this interpreter, as its first 16 bytes say (PEP 552)."""
    from importlib.util import MAGIC_NUMBER, source_hash

    try:
        with path(places).with_name(COMPILED).open("rb") as file:
            return file.read(16) == MAGIC_NUMBER + b"\1\0\0\0" + source_hash(SOURCE.read_bytes())
    except OSError:
        return False


def write_changed(files: Mapping[Path, bytes]) -> None:
    """Write the files that differ, each in a private folder. Raises OSError, Refused."""
    for file, content in files.items():
        if not file.exists() or file.read_bytes() != content:
            make_private(file.parent)
            write_whole(file, content)


def remove(places: Places) -> None:
    """Remove the program; its notes and counts stay."""
    for file in (*contents(places, {}), path(places).with_name(COMPILED)):
        file.unlink(missing_ok=True)


def command(places: Places, agent: str) -> list[str]:
    """Return the command line for a host without its last argument, the event; the interpreter is the base one."""
    return [os.path.realpath(sys.executable), "-I", "-S", str(path(places).with_name(COMPILED)), agent]


def shell_line(places: Places, agent: str, event: str, *options: str) -> str:
    """Return a shell command that never fails: without an interpreter too, an agent must not read it as a refusal."""
    return f"{shlex.join([*command(places, agent), event, *options])} 2>/dev/null || true"


def problem(places: Places, environment: Mapping[str, str], tried: bool = True) -> str:
    """Return the problem of the installed program, which is run for it if `tried`; "" for none."""
    for file, content in contents(places, environment).items():
        if not file.exists():
            return f"{file} is missing"
        if file.read_bytes() != content:
            return f"{file.name} is from another version or installation of memd"
    if not _is_compiled(places):
        return f"{COMPILED} is missing, or from another version of memd or of Python"
    if not tried:
        return ""
    import subprocess

    try:
        trial = [*command(places, "claude-code"), "Trial"]
        done = subprocess.run(trial, input=b"{}", capture_output=True, timeout=TRIAL_S, check=False, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not run: {error}"
    if done.returncode or done.stdout or done.stderr:
        output = (done.stderr or done.stdout)[-200:].decode(errors="replace")
        return f"it ends with exit code {done.returncode}: {output}"
    return ""
