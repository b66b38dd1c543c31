"""Gemini CLI: an extension of memd's own with hooks and the MCP server, and the command for a reflection.

Gemini CLI loads each folder in its `extensions`, so that no file of the user changes.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ... import __version__
from ..importers.agent_files import AGENTS
from . import command_hooks
from .agent_host import AgentHost, SetUp, server_entry
from .command_files import COMMAND_HOSTS, command_edit
from .edits import FileEdit

NAME = "gemini"
EVENTS = ("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd")
TIMEOUT_MS = 2000


def _folder(set_up: SetUp) -> Path:
    return AGENTS[NAME].folder(set_up.environment).parent


def _edits(set_up: SetUp) -> list[FileEdit]:
    extension = _folder(set_up) / "extensions/memd"
    manifest = {"name": "memd", "version": __version__, "mcpServers": {"memd": server_entry(set_up)}}
    hooks = command_hooks.groups(set_up.places, NAME, EVENTS, TIMEOUT_MS)
    files: dict[str, object] = {"gemini-extension.json": manifest, "hooks/hooks.json": {"hooks": hooks}}
    return [
        *(set_up.own_file(extension / name, _json(value)) for name, value in files.items()),
        command_edit(NAME, set_up),
    ]


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"


HOST = AgentHost(
    name=NAME,
    title=AGENTS[NAME].title,
    is_here=lambda set_up: _folder(set_up).exists(),
    edits=_edits,
    hooked=True,
    note=f"{COMMAND_HOSTS[NAME].command} asks the agent what lasts of a session.",
)
