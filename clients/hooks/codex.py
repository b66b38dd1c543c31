"""Codex: hooks in its `hooks.json`, the MCP server in its `config.toml`, and the command for a reflection."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...protocol.errors import StoreError
from ..importers.agent_files import AGENTS
from . import command_hooks
from .agent_host import AgentHost, SetUp, server_entry
from .command_files import COMMAND_HOSTS, command_edit
from .config_text import JsonText
from .edits import FileEdit, read

NAME = "codex"
EVENTS = ("SessionStart", "UserPromptSubmit", "SubagentStop", "Stop", "PreCompact", "SessionEnd")
TIMEOUT_S = 2
HOOKS, CONFIG = "hooks.json", "config.toml"

_HEADER = re.compile(r"\[mcp_servers\.memd[].]")
_TABLE = re.compile(r"\n?^\[mcp_servers\.memd\]\n(?:(?!\[|\n).*\n?)*", re.MULTILINE)


def _folder(set_up: SetUp) -> Path:
    return AGENTS[NAME].folder(set_up.environment).parent


def _edits(set_up: SetUp) -> list[FileEdit]:
    return [
        _hooks(set_up, _folder(set_up) / HOOKS),
        _config(set_up, _folder(set_up) / CONFIG),
        command_edit(NAME, set_up),
    ]


def _hooks(set_up: SetUp, path: Path) -> FileEdit:
    before = read(path)
    text = JsonText(before, path)
    command_hooks.put(text, command_hooks.groups(set_up.places, NAME, EVENTS, TIMEOUT_S))
    return FileEdit(path=path, before=before, after=text.content())


def _config(set_up: SetUp, path: Path) -> FileEdit:
    """Return the edit that appends memd's table, or replaces it where it stands."""
    before = read(path)
    text, table = (before or b"").decode(errors="replace"), _server(set_up)
    if table not in text:
        rest = _TABLE.sub("", text)
        text = rest + ("\n" if rest and not rest.endswith("\n") else "") + ("\n" if rest else "") + table
        _check(path, text)
    return FileEdit(path=path, before=before, after=text.encode())


def _server(set_up: SetUp) -> str:
    """Return memd's table; TOML writes texts and lists of texts like JSON."""
    lines = ["[mcp_servers.memd]\n"]
    for name, value in server_entry(set_up).items():
        written = json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict):
            written = "{ " + ", ".join(f"{key} = {json.dumps(item)}" for key, item in set_up.named.items()) + " }"
        lines.append(f"{name} = {written}\n")
    return "".join(lines)


def _check(path: Path, text: str) -> None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StoreError(
            f"memd's entry in {path} can't be changed: {error}",
            hint="repair the file, or take its own entry mcp_servers.memd out; memd did not change it",
        ) from error


def _without(path: Path, content: bytes, before: bytes | None) -> bytes | None:
    if path.name == HOOKS:
        return command_hooks.without(path, content, before)
    if path.name == CONFIG:
        after = _without_table(path, content)
        return after if before is not None or after.strip() else None
    return before


def _without_table(path: Path, content: bytes) -> bytes:
    """Return the configuration without memd's table and the tables below it, in which Codex keeps the user's consents:
    with these alone Codex does not start. Comments stay. Raises StoreError for a text that it can't change so."""
    kept: list[str] = []
    is_ours = False
    for line in content.decode(errors="replace").splitlines(keepends=True):
        if line.startswith("["):
            is_ours = _HEADER.match(line) is not None
        if not is_ours or line.startswith("#"):
            kept.append(line)
    text = "".join(kept)
    _check(path, text)
    return text.encode()


HOST = AgentHost(
    name=NAME,
    title=AGENTS[NAME].title,
    is_here=lambda set_up: _folder(set_up).exists(),
    edits=_edits,
    without=_without,
    hooked=True,
    note="Codex asks you once to trust these hooks: choose “Trust all”, or review them by /hooks. "
    f"{COMMAND_HOSTS[NAME].command} asks the agent what lasts of a session.",
)
