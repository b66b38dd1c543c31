"""What a tool call tells: the shell command, the edited file, whether it reads a page. Its arguments may be cut off."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from .event import ToolCalled
from .shell_text import SimpleCommand

_COMMAND = re.compile(r'"(?:command|cmd|script)"\s*:\s*(?:"((?:[^"\\]|\\.)*)|\[((?:[^\]\\]|\\.)*))')
_EDITS = frozenset(
    "edit write multiedit notebookedit update create_file apply_patch replace write_file str_replace".split()
)
_PATH = re.compile(r'"(?:file_path|path|notebook_path|filePath)"\s*:\s*"((?:[^"\\]|\\.)+)"')
_PATCHED = re.compile(r"\*\*\* Begin Patch.{0,4}\*\*\* (?:Update|Add) File: ([^\\\n\"]+)", re.DOTALL)
_COMMAND_PATH = re.compile(r'"command"\s*:\s*"([\w./-]+\.\w+)"')

_FETCHERS = frozenset("aria2c axel curl curlie fetch http https links lynx w3m wget xh".split())
"""Programs that read from other machines."""
_PAGE_TOOLS = frozenset("browse browsernavigate fetch googlewebsearch readurl urlfetch webfetch websearch".split())
"""Tools of agents that do, in small letters and without underscores."""
_DELEGATING = {
    "agent": "general-purpose",
    "delegate_to_agent": "",
    "spawn_agent": "default",
    "subagent": "",
    "task": "general-purpose",
}
"""Tools that give a task to another agent, in small letters, with the agent that they mean if they name none."""
AGENT_NAME = re.compile(r'"(?:subagent_type|agent_type|agent_name|agent)"\s*:\s*"([\w.:-]{1,64})"')
_TASK = re.compile(r'"(?:description|prompt|task|message|objective)"\s*:\s*"((?:[^"\\]|\\.)+)')

_LOCAL = re.compile(r"\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0)\b|\[::1\]")


def command_of(arguments: str) -> str:
    """Return the shell command in a tool call's arguments, "" where it has none; they may be cut off."""
    found = _COMMAND.search(arguments)
    if found is None:
        return ""
    if found[2] is not None:  # a list of words: the last one is the script
        words = re.findall(r'"((?:[^"\\]|\\.)*)"?', found[2])
        return _unescaped(words[-1] if len(words) == 3 and words[1].startswith("-") else " ".join(words))
    return _unescaped(found[1])


def _unescaped(text: str) -> str:
    try:
        return msgspec.json.decode(f'"{text}"', type=str)
    except msgspec.MsgspecError:  # cut off within an escape
        return text.replace("\\n", "\n").replace('\\"', '"')


def edited_path(call: ToolCalled) -> str:
    """Return the file that a call was to edit, "" for another call."""
    found = _PATCHED.search(call.arguments)
    if found is None and call.name.casefold() in _EDITS:
        found = _PATH.search(call.arguments) or _COMMAND_PATH.search(call.arguments)
    return "/".join(found[1].replace("\\\\", "/").split("/")[-2:]) if found else ""


def is_edit(name: str) -> bool:
    """Whether a tool edits files."""
    return name.casefold() in _EDITS


class Delegation(NamedTuple):
    """A call that gives a task to another agent. `task`: the first words of it."""

    agent: str
    task: str


def delegation(call: ToolCalled) -> Delegation | None:
    """Return the agent that a call gives a task to, None for another call."""
    default = _DELEGATING.get(call.name.casefold())
    if default is None:
        return None
    named, words = AGENT_NAME.search(call.arguments), _TASK.findall(call.arguments)
    agent = named[1] if named else default
    return Delegation(agent, _unescaped(" ".join(words))) if agent and words else None


def is_page_tool(name: str) -> bool:
    """Whether a tool reads pages of other machines."""
    return name.casefold().replace("_", "") in _PAGE_TOOLS


def fetches(command: SimpleCommand) -> bool:
    """Whether a command reads from another machine."""
    words = [word.raw for word in command.words]
    is_fetcher = any(word.rpartition("/")[2] in _FETCHERS for word in words[:3])
    return is_fetcher and not any(map(_LOCAL.search, words))
