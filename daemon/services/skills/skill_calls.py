"""Finds which skills a session's events call by name, and whose files they read (K2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ....protocol.event import AnyEvent, Ran, Said, ToolCalled
from ....protocol.tool_calls import command_of

_TOOLS = frozenset(("skill", "activateskill", "useskill"))
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
            case ToolCalled(arguments=arguments, outcome=outcome) if outcome not in ("error", "refused"):
                yield from _FILE.findall(f"{command_of(arguments)} {arguments}")
            case Ran(command=command, exit_status=0):
                yield from _FILE.findall(command)
            case _:
                pass
