"""pi: memd's extension in the folder that pi loads extensions from, the only file of pi that memd changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from ...protocol.event import StatementType
from ..importers.agent_files import AGENTS
from . import program
from .agent_host import AgentHost, SetUp, memd_command
from .command_files import slash_command
from .edits import FileEdit

NAME = "pi"


def _folder(set_up: SetUp) -> Path:
    return AGENTS[NAME].folder(set_up.environment).parent


def _edits(set_up: SetUp) -> list[FileEdit]:
    path = _folder(set_up) / "extensions/memd.ts"
    template = Path(__file__).with_name("pi_extension.ts").read_text(encoding="utf-8")
    values: dict[str, object] = {
        "__COMMAND__": program.command(set_up.places, NAME),
        "__REFLECTS__": set_up.options.reflects,
        "__MEMD__": memd_command(),
        "__VARIABLES__": program.variables(set_up.environment),
        "__TYPES__": get_args(StatementType),
        "__QUESTION__": slash_command().rpartition("---\n")[2].strip(),
    }
    for name, value in values.items():
        template = template.replace(name, json.dumps(value, ensure_ascii=False))
    return [set_up.own_file(path, template.encode())]


HOST = AgentHost(
    name=NAME, title=AGENTS[NAME].title, is_here=lambda set_up: _folder(set_up).exists(), edits=_edits, hooked=True
)
