"""The hosts that memd can be set up in: their edits, the reverting edits, and their problems for `memd doctor`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ...protocol.errors import InvalidRequest, MemdError
from ...protocol.places import Places
from ..python.client import places_here
from . import aider, claude_code, codex, cursor, gemini, opencode, pi_host, program, shell_setup
from .agent_host import AgentHost, HostOptions, SetUp
from .edits import EditLog, FileEdit
from .notes import folder
from .rule_hosts import RULE_HOSTS

HOSTS = {
    host.name: host
    for host in (
        claude_code.HOST,
        pi_host.HOST,
        codex.HOST,
        gemini.HOST,
        opencode.HOST,
        cursor.HOST,
        aider.HOST,
        *RULE_HOSTS,
        shell_setup.HOST,
    )
}
TITLES = {name: host.title for name, host in HOSTS.items()}
REFLECTING = (claude_code.NAME, pi_host.NAME)
"""The hosts in which memd can ask for a reflection by itself."""


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """A host. `problem`: why memd does not work in it, "" for none; `hint`: the command that sets it up; `reflects`: as
    in `HostOptions`; `note`: what the user should know of it."""

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

    def _set_up(self, name: str, options: HostOptions | None = None) -> SetUp:
        return SetUp(
            places=self._places,
            environment=self._environment,
            options=options or self.options(name),
            ours=self.log(name).files,
        )

    def edits(self, name: str, options: HostOptions | None = None) -> list[FileEdit]:
        """Return the edits that set memd up in a host; `options`: None for the present ones. Raises InvalidRequest,
        StoreError, Refused."""
        host = host_named(name)
        if options is not None and options.reflects and name not in REFLECTING:
            raise InvalidRequest(
                f"memd can't ask the agent of {host.title} by itself",
                hint=f"leave --reflect out, or use it for {' or '.join(REFLECTING)}",
            )
        return host.edits(self._set_up(name, options))

    def set_up(self, name: str, edits: list[FileEdit], options: HostOptions | None = None) -> None:
        """Install the program and make the edits; `options`: None for the present ones. Raises StoreError, Refused,
        OSError."""
        if HOSTS[name].hooked:
            program.install(self._places, self._environment)
        if options is not None:
            program.write_changed({self._options_file(name): msgspec.json.encode(options) + b"\n"})
        program.write_changed(HOSTS[name].own_files(self._set_up(name)))
        self.log(name).apply(edits)

    def restoring(self, name: str) -> list[FileEdit]:
        """Return the edits that remove memd from a host. Raises InvalidRequest, StoreError."""
        edits = self.log(name).restoring(host_named(name).without)
        return [*edits, *claude_code.noted(self._environment)] if edits and name == claude_code.NAME else edits

    def take_out(self, name: str, edits: list[FileEdit]) -> None:
        """Make the edits of `restoring`, and remove the program unless another host runs it. Raises StoreError."""
        self.log(name).restore(edits)
        self._options_file(name).unlink(missing_ok=True)
        if own_folder := HOSTS[name].own_folder:
            shutil.rmtree(own_folder(self._places), ignore_errors=True)
        if not any(self.log(host.name).files for host in HOSTS.values() if host.hooked):
            program.remove(self._places)

    def state(self, name: str, *, tried: bool = True) -> HostState:
        """Return a host's state; the hook is run if `tried`. A file that can't be read is the problem."""
        host = HOSTS[name]
        is_here = host.is_here(SetUp(places=self._places, environment=self._environment))
        try:
            is_set_up = bool(self.log(name).files)
            problem = self._problem(host, tried) if is_set_up else ""
        except (MemdError, OSError) as error:
            is_set_up, problem = True, str(error)
        hint = "" if is_set_up and not problem else f"memd setup {name}"
        reflects = is_set_up and self.options(name).reflects
        state = HostState(name=name, title=host.title, is_here=is_here, is_set_up=is_set_up, note=host.note)
        return msgspec.structs.replace(state, problem=problem, hint=hint, reflects=reflects)

    def _problem(self, host: AgentHost, tried: bool) -> str:
        if host.hooked and (wrong := program.problem(self._places, self._environment, tried)):
            return f"the hook does not run: {wrong}"
        set_up = self._set_up(host.name)
        for path, content in host.own_files(set_up).items():
            if not path.exists() or path.read_bytes() != content:
                return f"{path} differs from memd's version"
        if wrong := host.problem(set_up):
            return wrong
        changed = [str(edit.path) for edit in host.edits(set_up) if edit.is_change]
        return f"{', '.join(changed)} differs from memd's version" if changed else ""


def host_named(name: str) -> AgentHost:
    """Return the host of that name. Raises InvalidRequest."""
    if name not in HOSTS:
        raise InvalidRequest(f"there is no host {name!r}", hint=f"one of {', '.join(TITLES)}, or all")
    return HOSTS[name]


def check_hosts(*, tried: bool = True) -> list[HostState]:
    """Return the state of every host that is installed or set up: 30 ms each if `tried`, else 1 ms."""
    hosts = Hosts(places_here(), os.environ)
    states = (hosts.state(name, tried=tried) for name in TITLES)
    return [state for state in states if state.is_here or state.is_set_up]
