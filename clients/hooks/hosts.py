"""The hosts that memd can be set up in: what that changes, how it is taken back, and whether it still works.

Comes in: a host's name. Goes out: edits to show or to make; for `memd doctor`, what no longer runs. Invariants: setting
up twice is as once; taking back restores each file byte by byte, unless the user changed it since: then memd's own
entries leave it; nothing is written before it could be shown.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...protocol.errors import InvalidRequest, MemdError
from ...protocol.places import Places
from ..python.client import places_here
from ..python.folder import make_private
from . import claude_code, pi, program
from .edits import Edit, Ledger
from .notes import folder

TITLES = {claude_code.NAME: "Claude Code", pi.NAME: "pi"}


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """A host: is it on this machine, is memd set up in it, and what is wrong with that ("" if nothing)."""

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

    def ledger(self, name: str) -> Ledger:
        """The record of what was changed in a host."""
        return Ledger(folder(self._places.state) / "hosts", name)

    def edits(self, name: str) -> list[Edit]:
        """What setting up changes in a host's configuration. Raises InvalidRequest, StoreError."""
        match name:
            case claude_code.NAME:
                return claude_code.edits(self._places, self._environment)
            case pi.NAME:
                return pi.edits(self._places, self._environment)
            case _:
                raise InvalidRequest(f"there is no host {name!r}", hint=f"one of {', '.join(TITLES)}, or all")

    def set_up(self, name: str, edits: list[Edit]) -> None:
        """Installs the program and makes the edits. Raises StoreError, Refused, OSError."""
        program.install(self._places, self._environment)
        for path, content in self._own_files(name).items():
            if not path.exists() or path.read_bytes() != content:
                make_private(path.parent)
                program.replace(path, content)
        self.ledger(name).apply(edits)

    def _own_files(self, name: str) -> dict[Path, bytes]:
        return claude_code.own_files(self._places, server_command()) if name == claude_code.NAME else {}

    def restoring(self, name: str) -> list[Edit]:
        """What taking memd out of a host changes there. Raises InvalidRequest, StoreError."""
        if name not in TITLES:
            raise InvalidRequest(f"there is no host {name!r}", hint=f"one of {', '.join(TITLES)}, or all")
        if name != claude_code.NAME:
            return self.ledger(name).restoring(_whole)
        edits = self.ledger(name).restoring(claude_code.without)
        return [*edits, *claude_code.noted(self._environment)] if edits else []

    def take_out(self, name: str, edits: list[Edit]) -> None:
        """Makes those edits, and takes the program away when no host runs it any more. Raises StoreError."""
        self.ledger(name).restore(edits)
        if name == claude_code.NAME:
            shutil.rmtree(claude_code.marketplace(self._places), ignore_errors=True)
        if not any(self.ledger(each).kept for each in TITLES):
            program.remove(self._places)

    def state(self, name: str, *, tried: bool = True) -> HostState:
        """How things stand with a host; the hook is `tried` as the host would run it. What can't be read is the
        problem."""
        here = (claude_code if name == claude_code.NAME else pi).is_here(self._environment)
        try:
            is_set_up = bool(self.ledger(name).kept)
            problem = self._problem(name, tried) if is_set_up else ""
        except (MemdError, OSError) as error:
            is_set_up, problem = True, str(error)
        hint = "" if is_set_up and not problem else f"memd setup {name}"
        return HostState(name=name, title=TITLES[name], is_here=here, is_set_up=is_set_up, problem=problem, hint=hint)

    def _problem(self, name: str, tried: bool) -> str:
        if wrong := program.problem(self._places, self._environment, tried):
            return f"the hook does not run: {wrong}"
        for path, content in self._own_files(name).items():
            if not path.exists() or path.read_bytes() != content:
                return f"{path} is not as it should be"
        if name == claude_code.NAME and (wrong := claude_code.problem(self._environment)):
            return wrong
        changed = [str(edit.path) for edit in self.edits(name) if edit.is_change]
        return f"{', '.join(changed)} is not as it should be" if changed else ""


def _whole(path: Path, content: bytes) -> bytes | None:
    return None  # all of such a file is memd's


def server_command() -> list[str]:
    """How a host runs the MCP server: what `memd mcp` becomes, 200 ms sooner."""
    return [sys.executable, "-P", "-m", "memd.clients.mcp"]


def check_hosts(*, tried: bool = True) -> list[HostState]:
    """How things stand with every host that is here or set up: for `memd doctor`, and, not `tried`, for `memd status`.

    30 ms a host where it is tried, one without.
    """
    hosts = Hosts(places_here(), os.environ)
    states = (hosts.state(name, tried=tried) for name in TITLES)
    return [state for state in states if state.is_here or state.is_set_up]
