"""opencode: memd's plugin in its folder of plugins, the only file of opencode that memd changes."""

from __future__ import annotations

import json
from pathlib import Path

from . import program
from .agent_host import AgentHost, SetUp, server_command
from .edits import FileEdit

NAME = "opencode"


def _folder(set_up: SetUp) -> Path:
    return Path(set_up.environment.get("OPENCODE_CONFIG_DIR") or set_up.config / "opencode")


def _edits(set_up: SetUp) -> list[FileEdit]:
    text = Path(__file__).with_name("opencode_plugin.js").read_text(encoding="utf-8")
    values: dict[str, object] = {
        "__COMMAND__": program.command(set_up.places, NAME),
        "__SERVER__": server_command(),
        "__VARIABLES__": set_up.named,
    }
    for name, value in values.items():
        text = text.replace(name, json.dumps(value, ensure_ascii=False))
    return [set_up.own_file(_folder(set_up) / "plugin/memd.js", text.encode())]


HOST = AgentHost(
    name=NAME, title="opencode", is_here=lambda set_up: _folder(set_up).exists(), edits=_edits, hooked=True
)
