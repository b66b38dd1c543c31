"""Finds which skills a session's events call by name, and whose files they read (K2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ....protocol.event import AnyEvent, Ran, Said, ToolCalled
from ....protocol.shell_text import commands
from ....protocol.tool_calls import command_of
from .tables import table

_TOOLS = frozenset(("skill", "activateskill", "useskill"))
_READS = frozenset(("read", "readfile", "view", "viewfile", "open", "openfile"))
_READERS = frozenset(table("shell")["readers"].split()) | {"sed"}
_ARGUMENT = re.compile(r'"(?:skill|name|command)"\s*:\s*"/?([a-z0-9][a-z0-9-]{0,63})"')
_SLASH = re.compile(r"\s*(?:<command-name>)?[/$]([a-z0-9][a-z0-9-]{0,63})(?![\w/-])")
_FILE = re.compile(r"([a-z0-9][a-z0-9-]{0,63})[/\\]+SKILL\.md")


def called_skills(events: Iterable[AnyEvent]) -> Iterator[str]:
    """Yield the names of skills that the agent called with success, or that the user named with a slash."""
    for event in events:
        match event:
            case ToolCalled(name=tool, arguments=arguments, outcome=outcome):
                is_call = tool.casefold().replace("_", "") in _TOOLS and outcome not in ("error", "refused")
                yield from _ARGUMENT.findall(arguments) if is_call else ()
            case Said(role="user", text=text):
                yield from filter(None, (found[1] if (found := _SLASH.match(text)) else "",))
            case _:
                pass


def read_skills(events: Iterable[AnyEvent]) -> Iterator[str]:
    """Yield the names of skills whose file a tool or a command read with success."""
    for event in events:
        match event:
            case ToolCalled(name=tool, arguments=arguments, outcome=outcome) if outcome not in ("error", "refused"):
                is_read = tool.casefold().replace("_", "") in _READS
                yield from _FILE.findall(arguments) if is_read else _read_by(command_of(arguments))
            case Ran(command=command, exit_status=0):
                yield from _read_by(command)
            case _:
                pass


def _read_by(text: str) -> Iterator[str]:
    """Yield the names of skills whose file a shell text reads."""
    for command in commands(text):
        if command.words[0].text.rpartition("/")[2] in _READERS:
            yield from (name for word in command.words for name in _FILE.findall(word.raw))
