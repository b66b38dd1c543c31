"""aider: your personal profile as a file that aider reads at each turn, written anew after each turn.

aider has no hooks; the command that it starts when a turn is over does both. The file has nothing of a project, because
one file serves the sessions of all projects.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...protocol.errors import Refused
from . import program
from .agent_host import AgentHost, SetUp
from .config_text import YamlText
from .edits import FileEdit, read
from .notes import folder

NAME = "aider"
COMMAND = "notifications-command"


EMPTY = b"memd fills this file after your first turn.\n"


def _config(set_up: SetUp) -> Path:
    return set_up.home / ".aider.conf.yml"


def _profile(set_up: SetUp) -> Path:
    return folder(set_up.places.state) / f"{NAME}.md"


def _command(set_up: SetUp) -> str:
    """Return memd's command, which must not read what the user types into aider."""
    return f"</dev/null {program.shell_line(set_up.places, NAME, 'turn_end')}"


def _edits(set_up: SetUp) -> list[FileEdit]:
    path, profile, command = _config(set_up), _profile(set_up), _command(set_up)
    before, content = read(path), read(profile)
    text = YamlText(before, path)
    if _is_ours(text) and text.value[COMMAND] != command:  # of an earlier place of memd
        text.unset(COMMAND)
    if text.value.get(COMMAND) not in (None, command):
        raise Refused(f"{path} has another {COMMAND}", hint=f"take it out, or let it also run: {command}")
    if text.value.get(COMMAND) is None:
        text.set(COMMAND, json.dumps(command))
    if "notifications" not in text.value:
        text.set("notifications", "true")
    if str(profile) not in _read_files(text):
        text.add("read", [json.dumps(str(profile), ensure_ascii=False)])
    return [
        FileEdit(path=path, before=before, after=text.content()),
        FileEdit(path=profile, before=content, after=EMPTY if content is None else content),
    ]


def _is_ours(text: YamlText) -> bool:
    return program.SOURCE.name in str(text.value.get(COMMAND) or "")


def _read_files(text: YamlText) -> list[Any]:
    """Return the files that aider reads. It takes one name instead of a list, too."""
    files: Any = text.value.get("read") or []
    return files if isinstance(files, list) else [files]  # pyright: ignore[reportUnknownVariableType]


def _without(path: Path, content: bytes, before: bytes | None) -> bytes | None:
    if path.suffix != ".yml":
        return None
    text = YamlText(content, path)
    if _is_ours(text):
        text.unset(COMMAND)
        if text.value.get("notifications") is True and "notifications" not in YamlText(before, path).value:
            text.unset("notifications")
    text.drop("read", lambda name: isinstance(name, str) and Path(name).parts[-2:] == ("hooks", f"{NAME}.md"))
    return text.content() if before is not None or text.value else None


HOST = AgentHost(
    name=NAME,
    title="aider",
    is_here=lambda set_up: _config(set_up).exists() or (set_up.home / ".aider").exists(),
    edits=_edits,
    without=_without,
    hooked=True,
    note="aider gets your personal profile, not the project's. For that one: `/run memd profile`.",
)
