"""The command `/memd:reflect` in hosts without a plugin of memd: a file that such a host reads as a command of its
user, and the session in which its agent runs the command (W4).

Codex replaces words such as `$NAME` in the file, and Gemini CLI what stands in `!{…}`, `@{…}` and `{{…}}`, so the text
has none of them.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ...protocol.errors import NotFound
from ...protocol.places import Places
from ..importers.agent_files import AGENTS, find, reader
from ..importers.cursors import Cursors
from ..python.client import Client
from .agent_host import SetUp, memd_command
from .edits import FileEdit
from .notes import SessionNote

FILES = 5
"""Newest session files of an agent among which the running one is looked for."""


class CommandHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host with a command file. `place`: of the file in the host's folder; `command`: what the user types;
    `variable`: by which the host tells the shell commands of a session its id, "" for none."""

    name: str
    place: str
    command: str
    written: Callable[[str, str], str]
    variable: str = ""


def _markdown(about: str, text: str) -> str:
    return f"---\ndescription: {about}\n---\n{text}\n"


def _toml(about: str, text: str) -> str:
    """TOML escapes characters like JSON."""
    lines = "\n".join(json.dumps(line, ensure_ascii=False)[1:-1] for line in text.split("\n"))
    return f'description = {json.dumps(about)}\nprompt = """\n{lines}\n"""\n'


COMMAND_HOSTS = {
    host.name: host
    for host in (
        CommandHost(
            name="codex",
            place="prompts/memd-reflect.md",
            command="/prompts:memd-reflect",
            written=_markdown,
            variable="CODEX_THREAD_ID",
        ),
        CommandHost(name="gemini", place="commands/memd/reflect.toml", command="/memd:reflect", written=_toml),
    )
}


def command_edit(name: str, set_up: SetUp) -> FileEdit:
    """Return the edit that makes the command file of a host. Raises Refused for a file of the user, StoreError."""
    host = COMMAND_HOSTS[name]
    head, _, text = slash_command(name).rpartition("---\n")
    about = head.partition("description: ")[2].partition("\n")[0]
    path = AGENTS[name].folder(set_up.environment).parent / host.place
    return set_up.own_file(path, host.written(about, text.strip()).encode())


_TOOL = "If you have the tool memory_reflect, call it with `title`, `statements` and `open`. Otherwise r"


def slash_command(name: str = "") -> str:
    """Return the text of the slash command by which the user asks the agent of a host for a reflection; `name`: of a
    host that tells neither the tool nor the shell which session it is."""
    text = Path(__file__).with_name("reflect_command.md").read_text(encoding="utf-8")
    values = {"__TOOL__": "R", "__SESSION__": name} if name else {"__TOOL__": _TOOL, "__SESSION__": '"$MEMD_SESSION"'}
    for placeholder, value in {"__MEMD__": shlex.join(memd_command()), **values}.items():
        text = text.replace(placeholder, value)
    return text


def running_session(client: Client, name: str, places: Places, environment: Mapping[str, str], cwd: Path) -> str:
    """Capture the session of a host that runs in a folder, as far as it is in its file, and return its document. Raises
    NotFound, Unavailable."""
    from .follow import read_on

    agent, cursors = AGENTS[name], Cursors(places.state)
    folder, id = agent.folder(environment), environment.get(COMMAND_HOSTS[name].variable, "")
    files = list(find([folder], agent.patterns, agent.example)) if folder.is_dir() else []
    named = [file for file in files if id and id in file.name]
    for file in sorted(named or files, key=lambda file: file.stat().st_mtime, reverse=True)[:FILES]:
        for session in reader(name, file, "", cursors, dry_run=True)(None).sessions:
            if not session.origin.cwd or os.path.realpath(session.origin.cwd) == os.path.realpath(cwd):
                read_on(client, SessionNote(agent=name, path=str(file), cwd=str(cwd)), places)
                client.drain()
                return session.origin.document
    raise NotFound(f"no session of {agent.title} in {cwd}", hint="`memd session list` shows the sessions")
