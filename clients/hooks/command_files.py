"""The command `/memd:reflect` in hosts that run no hook of memd: a file that such a host reads as a command of its
user, and the session in which its agent runs the command (W4).

Codex replaces words such as `$NAME` in the file, and Gemini CLI what stands in `!{…}`, `@{…}` and `{{…}}`, so the text
has none of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Mapping
from pathlib import Path

import msgspec

from ...protocol.errors import NotFound, Refused
from ...protocol.places import Places
from ..importers.agent_files import AGENTS, find, reader
from ..importers.cursors import Cursors
from ..python.client import Client
from .edits import FileEdit, read
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

    @property
    def note(self) -> str:
        """What a user of the host has by it."""
        return f"{self.command} asks the agent what lasts of a session; `memd import {self.name}` takes sessions in"


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


def edit(name: str, about: str, text: str, environment: Mapping[str, str], *, ours: Container[str]) -> FileEdit:
    """Return the edit that makes the command file of a host; `ours`: the paths of memd's files. Raises Refused for a
    file of the user, StoreError."""
    host = COMMAND_HOSTS[name]
    path = AGENTS[name].folder(environment).parent / host.place
    before, after = read(path), host.written(about, text).encode()
    if before not in (None, after) and str(path.resolve()) not in ours:
        raise Refused(f"{path} is not memd's", hint="rename it, then run the command again")
    return FileEdit(path=path, before=before, after=after)


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
