"""What `memd setup` knows of a host: its folder, the edits of its files, how they are taken back, its problems."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Mapping
from pathlib import Path

import msgspec

from ...protocol.errors import Refused
from ...protocol.places import Places
from . import program
from .edits import FileEdit, Without, read


class HostOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices for a host. `reflects`: its agent is asked for a reflection once a session (W4)."""

    reflects: bool = False


class SetUp(msgspec.Struct, frozen=True, kw_only=True):
    """One set-up. `ours`: the paths of the files that memd changed in the host before."""

    places: Places
    environment: Mapping[str, str]
    options: HostOptions = HostOptions()
    ours: Container[str] = ()

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return Path(self.environment.get("HOME") or "/")

    @property
    def config(self) -> Path:
        """The folder of the user's configuration files."""
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")

    @property
    def named(self) -> dict[str, str]:
        """The variables that name memd's home, for a host that starts programs without its own environment."""
        return {name: value for name, value in program.variables(self.environment).items() if value}

    def own_file(self, path: Path, content: bytes) -> FileEdit:
        """Return the edit that makes a file of memd's own. Raises Refused for a file of the user, StoreError."""
        before = read(path)
        if before not in (None, content) and str(path.resolve()) not in self.ours:
            raise Refused(f"{path} is not memd's", hint="rename it, then run the command again")
        return FileEdit(path=path, before=before, after=content)


def only_ours(path: Path, content: bytes, before: bytes | None) -> bytes | None:
    """Of a file with nothing of the user's in it."""
    return before


def nothing(set_up: SetUp) -> str:
    """No problem of its own."""
    return ""


class AgentHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host. `is_here`: whether it is on this machine; `edits`: of its files (raises StoreError, Refused); `without`:
    one of its files without memd's entries; `own_files`: that memd keeps for it, in `own_folder` of its state folder;
    `problem`: the user's setting that keeps memd from working, "" for none; `hooked`: whether it runs memd's hook;
    `note`: what the user should know of it."""

    name: str
    title: str
    is_here: Callable[[SetUp], bool]
    edits: Callable[[SetUp], list[FileEdit]]
    without: Without = only_ours
    own_files: Callable[[SetUp], dict[Path, bytes]] = lambda set_up: {}
    own_folder: Callable[[Places], Path] | None = None
    problem: Callable[[SetUp], str] = nothing
    hooked: bool = False
    note: str = ""


def memd_command() -> list[str]:
    """Return the command line of `memd` for another program."""
    return [sys.executable, "-P", "-m", "memd.clients.cli.main"]


def server_command() -> list[str]:
    """Return the command line of the MCP server, which starts 200 ms faster than `memd mcp`."""
    return [sys.executable, "-P", "-m", "memd.clients.mcp"]


def server_entry(set_up: SetUp, *, captures: str = "") -> dict[str, object]:
    """Return the MCP server as most hosts' configurations name it. `captures`: the agent whose sessions it captures at
    its end, of a host without hooks for that."""
    command, *arguments = server_command()
    options = ["--captures", captures] if captures else []
    entry: dict[str, object] = {"command": command, "args": [*arguments, *options]}
    return {**entry, "env": set_up.named} if set_up.named else entry
