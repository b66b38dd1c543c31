"""The hosts that memd can be set up in: their edits, the reverting edits, and their problems for `memd doctor`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import get_args

import msgspec

from ...protocol.errors import InvalidRequest, MemdError
from ...protocol.event import StatementType
from ...protocol.places import Places
from ..importers.agent_files import AGENTS
from ..python.client import places_here
from . import claude_code, command_files, program, shell_setup
from .command_files import COMMAND_HOSTS
from .edits import EditLog, FileEdit, read
from .notes import folder

PI = "pi"
TITLES = {
    **{name: AGENTS[name].title for name in (claude_code.NAME, PI, *COMMAND_HOSTS)},
    shell_setup.NAME: shell_setup.TITLE,
}
HOOKED = (claude_code.NAME, PI)
"""The hosts that run memd's hook. Only they can ask for a reflection by themselves."""

_TOOL = "If you have the tool memory_reflect, call it with `title`, `statements` and `open`. Otherwise r"


class HostOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choices for a host. `reflects`: its agent is asked for a reflection once a session (W4)."""

    reflects: bool = False


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """A host. `problem`: why memd does not work in it, "" for none; `hint`: the command that sets it up; `reflects`: as
    in `HostOptions`; `note`: what memd does there, where it is less than in the other hosts."""

    name: str
    title: str
    is_here: bool
    is_set_up: bool
    problem: str = ""
    hint: str = ""
    reflects: bool = False
    note: str = ""


class Hosts:
    """The hosts of one home."""

    def __init__(self, places: Places, environment: Mapping[str, str]) -> None:
        self._places, self._environment = places, environment

    def log(self, name: str) -> EditLog:
        """Return the record of the changes in a host."""
        return EditLog(folder(self._places.state) / "hosts", name)

    def options(self, name: str) -> HostOptions:
        """Return the user's choices for a host; the default ones if the file is missing or damaged."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._options_file(name).read_bytes(), type=HostOptions)
        return HostOptions()

    def _options_file(self, name: str) -> Path:
        return folder(self._places.state) / "hosts" / f"{name}.options"

    def edits(self, name: str, options: HostOptions | None = None) -> list[FileEdit]:
        """Return the edits that set memd up in a host; `options`: None for the present ones. Raises InvalidRequest,
        StoreError, Refused."""
        if name not in TITLES:
            raise _unknown(name)
        if name == shell_setup.NAME:
            return shell_setup.edits(self._places, self._environment)
        if name in COMMAND_HOSTS:
            if options is not None and options.reflects:
                raise InvalidRequest(
                    f"memd can't ask the agent of {TITLES[name]} by itself",
                    hint=f"after `memd setup {name}` you ask by {COMMAND_HOSTS[name].command}",
                )
            head, _, text = slash_command(name).rpartition("---\n")
            about = head.partition("description: ")[2].partition("\n")[0]
            files = self.log(name).files
            return [command_files.edit(name, about, text.strip(), self._environment, ours=files)]
        if name == PI:
            return [_pi_edit(self._places, self._environment, options or self.options(name))]
        return claude_code.edits(self._places, self._environment)

    def set_up(self, name: str, edits: list[FileEdit], options: HostOptions | None = None) -> None:
        """Install the program and make the edits; `options`: None for the present ones. Raises StoreError, Refused,
        OSError."""
        if name in HOOKED:
            program.install(self._places, self._environment)
        if options is not None:
            program.write_changed({self._options_file(name): msgspec.json.encode(options) + b"\n"})
        program.write_changed(self._own_files(name))
        self.log(name).apply(edits)

    def _own_files(self, name: str) -> dict[Path, bytes]:
        if name == shell_setup.NAME:
            return shell_setup.own_files(self._places, self._environment)
        if name != claude_code.NAME:
            return {}
        reflects = self.options(name).reflects
        server = [*server_command(), *(("--tools", "reflect") if reflects else ())]
        return claude_code.own_files(self._places, server, slash_command(), reflects=reflects)

    def restoring(self, name: str) -> list[FileEdit]:
        """Return the edits that remove memd from a host. Raises InvalidRequest, StoreError."""
        if name not in TITLES:
            raise _unknown(name)
        if name == shell_setup.NAME:
            return self.log(name).restoring(shell_setup.without)
        if name != claude_code.NAME:
            return self.log(name).restoring(lambda path, content: None)
        edits = self.log(name).restoring(claude_code.without)
        return [*edits, *claude_code.noted(self._environment)] if edits else []

    def take_out(self, name: str, edits: list[FileEdit]) -> None:
        """Make the edits of `restoring`, and remove the program unless another host runs it. Raises StoreError."""
        self.log(name).restore(edits)
        self._options_file(name).unlink(missing_ok=True)
        if name == claude_code.NAME:
            shutil.rmtree(claude_code.marketplace(self._places), ignore_errors=True)
        if name == shell_setup.NAME:
            shutil.rmtree(shell_setup.own_folder(self._places), ignore_errors=True)
        if not any(self.log(host).files for host in HOOKED):
            program.remove(self._places)

    def state(self, name: str, *, tried: bool = True) -> HostState:
        """Return a host's state; the hook is run if `tried`. A file that can't be read is the problem."""
        if name == shell_setup.NAME:
            is_here = shell_setup.is_here(self._environment)
        else:
            is_here = AGENTS[name].folder(self._environment).parent.is_dir()
        try:
            is_set_up = bool(self.log(name).files)
            problem = self._problem(name, tried) if is_set_up else ""
        except (MemdError, OSError) as error:
            is_set_up, problem = True, str(error)
        hint = "" if is_set_up and not problem else f"memd setup {name}"
        state = HostState(name=name, title=TITLES[name], is_here=is_here, is_set_up=is_set_up)
        reflects = is_set_up and self.options(name).reflects
        note = COMMAND_HOSTS[name].note if name in COMMAND_HOSTS else ""
        return msgspec.structs.replace(state, problem=problem, hint=hint, reflects=reflects, note=note)

    def _problem(self, name: str, tried: bool) -> str:
        if name == shell_setup.NAME:
            return shell_setup.problem(self._places, self._environment)
        if name in HOOKED and (wrong := program.problem(self._places, self._environment, tried)):
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


def _pi_edit(places: Places, environment: Mapping[str, str], options: HostOptions) -> FileEdit:
    """Return memd's extension in the folder that pi loads extensions from, the only file of pi that memd changes."""
    path = AGENTS[PI].folder(environment).parent / "extensions/memd.ts"
    template = Path(__file__).with_name("pi_extension.ts").read_text(encoding="utf-8")
    values: dict[str, object] = {
        "__COMMAND__": program.command(places, PI),
        "__REFLECTS__": options.reflects,
        "__MEMD__": memd_command(),
        "__VARIABLES__": program.variables(environment),
        "__TYPES__": get_args(StatementType),
        "__QUESTION__": slash_command().rpartition("---\n")[2].strip(),
    }
    for name, value in values.items():
        template = template.replace(name, json.dumps(value, ensure_ascii=False))
    return FileEdit(path=path, before=read(path), after=template.encode())


def memd_command() -> list[str]:
    """Return the command line of `memd` for another program."""
    return [sys.executable, "-P", "-m", "memd.clients.cli.main"]


def slash_command(name: str = "") -> str:
    """Return the text of the slash command by which the user asks the agent of a host for a reflection; `name`: of a
    host without memd's hook, in which neither the tool nor the shell knows the session."""
    text = Path(__file__).with_name("reflect_command.md").read_text(encoding="utf-8")
    values = {"__TOOL__": "R", "__SESSION__": name} if name else {"__TOOL__": _TOOL, "__SESSION__": '"$MEMD_SESSION"'}
    for placeholder, value in {"__MEMD__": shlex.join(memd_command()), **values}.items():
        text = text.replace(placeholder, value)
    return text


def server_command() -> list[str]:
    """Return the command line of the MCP server, which starts 200 ms faster than `memd mcp`."""
    return [sys.executable, "-P", "-m", "memd.clients.mcp"]


def check_hosts(*, tried: bool = True) -> list[HostState]:
    """Return the state of every host that is installed or set up: 30 ms each if `tried`, else 1 ms."""
    hosts = Hosts(places_here(), os.environ)
    states = (hosts.state(name, tried=tried) for name in TITLES)
    return [state for state in states if state.is_here or state.is_set_up]
