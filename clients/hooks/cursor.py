"""Cursor: its MCP server and the hooks of its agent. Cursor gives the profile to the agent as a session starts."""

from __future__ import annotations

from pathlib import Path

from . import command_hooks
from .agent_host import AgentHost, SetUp
from .config_text import JsonText
from .edits import FileEdit, read
from .program import shell_line
from .rule_hosts import json_server, without_server

NAME = "cursor"
EVENTS = ("sessionStart", "stop", "sessionEnd")


def _folder(set_up: SetUp) -> Path:
    return set_up.home / ".cursor"


def _edits(set_up: SetUp) -> list[FileEdit]:
    path = _folder(set_up) / "hooks.json"
    before = read(path)
    text = JsonText(before, path)
    text.put(("version",), text.get("version") or 1)
    command_hooks.put(text, {event: [{"command": shell_line(set_up.places, NAME, event)}] for event in EVENTS})
    return [
        json_server(set_up, _folder(set_up) / "mcp.json", ("mcpServers", "memd"), captures=NAME),
        FileEdit(path=path, before=before, after=text.content()),
    ]


def _without(path: Path, content: bytes, before: bytes | None) -> bytes | None:
    without = command_hooks.without if path.name == "hooks.json" else without_server("mcpServers", "memd")
    return without(path, content, before)


HOST = AgentHost(
    name=NAME,
    title="Cursor",
    is_here=lambda set_up: _folder(set_up).exists(),
    edits=_edits,
    without=_without,
    hooked=True,
    note="Cursor gets the profile at the start of a session.",
)
