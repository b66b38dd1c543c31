"""The hosts that memd can be set up in: their edits, the reverting edits, and their problems for `memd doctor`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...protocol.errors import InvalidRequest, MemdError
from ...protocol.places import Places
from ..importers.agent_files import AGENTS
from ..python.client import places_here
from . import claude_code, program
from .edits import EditLog, FileEdit, read
from .notes import folder

PI = "pi"
TITLES = {claude_code.NAME: "Claude Code", PI: "pi"}


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """A host. `problem`: why memd does not work in it, "" for none; `hint`: the command that sets it up."""

    name: str
    title: str
    is_here: bool
    is_set_up: bool
    problem: str = ""
    hint: str = ""


class Hosts:
    """The hosts of one home."""

    def __init__(self, places: Places, environment: Mapping[str, str]) -> None:
        self._places, self._environment = places, environment

    def log(self, name: str) -> EditLog:
        """Return the record of the changes in a host."""
        return EditLog(folder(self._places.state) / "hosts", name)

    def edits(self, name: str) -> list[FileEdit]:
        """Return the edits that set memd up in a host. Raises InvalidRequest, StoreError."""
        if name not in TITLES:
            raise _unknown(name)
        edit = _pi_edit if name == PI else claude_code.edits
        return edit(self._places, self._environment)

    def set_up(self, name: str, edits: list[FileEdit]) -> None:
        """Install the program and make the edits. Raises StoreError, Refused, OSError."""
        program.install(self._places, self._environment)
        program.write_changed(self._own_files(name))
        self.log(name).apply(edits)

    def _own_files(self, name: str) -> dict[Path, bytes]:
        return claude_code.own_files(self._places, server_command()) if name == claude_code.NAME else {}

    def restoring(self, name: str) -> list[FileEdit]:
        """Return the edits that remove memd from a host. Raises InvalidRequest, StoreError."""
        if name not in TITLES:
            raise _unknown(name)
        if name != claude_code.NAME:
            return self.log(name).restoring(lambda path, content: None)
        edits = self.log(name).restoring(claude_code.without)
        return [*edits, *claude_code.noted(self._environment)] if edits else []

    def take_out(self, name: str, edits: list[FileEdit]) -> None:
        """Make the edits of `restoring`, and remove the program unless another host runs it. Raises StoreError."""
        self.log(name).restore(edits)
        if name == claude_code.NAME:
            shutil.rmtree(claude_code.marketplace(self._places), ignore_errors=True)
        if not any(self.log(host).files for host in TITLES):
            program.remove(self._places)

    def state(self, name: str, *, tried: bool = True) -> HostState:
        """Return a host's state; the hook is run if `tried`. A file that can't be read is the problem."""
        home = AGENTS[name].folder(self._environment).parent
        try:
            is_set_up = bool(self.log(name).files)
            problem = self._problem(name, tried) if is_set_up else ""
        except (MemdError, OSError) as error:
            is_set_up, problem = True, str(error)
        hint = "" if is_set_up and not problem else f"memd setup {name}"
        state = HostState(name=name, title=TITLES[name], is_here=home.is_dir(), is_set_up=is_set_up)
        return msgspec.structs.replace(state, problem=problem, hint=hint)

    def _problem(self, name: str, tried: bool) -> str:
        if wrong := program.problem(self._places, self._environment, tried):
            return f"the hook does not run: {wrong}"
        for path, content in self._own_files(name).items():
            if not path.exists() or path.read_bytes() != content:
                return f"{path} differs from memd's version"
        if name == claude_code.NAME and (wrong := claude_code.problem(self._environment)):
            return wrong
        changed = [str(edit.path) for edit in self.edits(name) if edit.is_change]
        return f"{', '.join(changed)} differs from memd's version" if changed else ""


def _unknown(name: str) -> InvalidRequest:
    return InvalidRequest(f"there is no host {name!r}", hint=f"one of {', '.join(TITLES)}, or all")


def _pi_edit(places: Places, environment: Mapping[str, str]) -> list[FileEdit]:
    """Return memd's extension in the folder that pi loads extensions from, the only file of pi that memd changes."""
    path = AGENTS[PI].folder(environment).parent / "extensions/memd.ts"
    template = Path(__file__).with_name("pi_extension.ts").read_text(encoding="utf-8")
    content = template.replace("__COMMAND__", json.dumps(program.command(places, PI)))
    return [FileEdit(path=path, before=read(path), after=content.encode())]


def server_command() -> list[str]:
    """Return the command line of the MCP server, which starts 200 ms faster than `memd mcp`."""
    return [sys.executable, "-P", "-m", "memd.clients.mcp"]


def check_hosts(*, tried: bool = True) -> list[HostState]:
    """Return the state of every host that is installed or set up: 30 ms each if `tried`, else 1 ms."""
    hosts = Hosts(places_here(), os.environ)
    states = (hosts.state(name, tried=tried) for name in TITLES)
    return [state for state in states if state.is_here or state.is_set_up]
