"""Finds files that a request wrote after it had read a page from outside (K1).

Such a file may hold what the page said, though the command that runs it later looks like the project's own. Invariant:
only commands and edits are read, so a page that a person pasted is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....protocol.event import AnyEvent, Ran, ToolCalled
from ....protocol.tool_calls import command_of, edited_path
from .shell_text import SimpleCommand, commands
from .tables import table

_TABLE = table("shell")
_FETCHERS, _PAGE_TOOLS = frozenset(_TABLE["fetchers"].split()), frozenset(_TABLE["page_tools"].split())
_RECIPES = {name: program for program, names in _TABLE["recipes"].items() for name in names.split()}
_LOCAL = re.compile(r"\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0)\b|\[::1\]")
_WRITTEN = re.compile(r"(?:>>?\s*|\btee\s+(?:-a\s+)?|\s-(?:o|O)\s*|--output(?:-document)?[\s=])['\"]?([\w./~-]+)")


def foreign_files(events: Sequence[AnyEvent]) -> Iterator[str]:
    """Yield the names of files that were written after a page was read, and the programs whose recipes they hold."""
    has_read = False
    for event in events:
        text = _command(event)
        has_read = has_read or _is_page_tool(event) or any(map(_fetches, commands(text)))
        if has_read:
            for path in (*_WRITTEN.findall(text), *([edited_path(event)] if isinstance(event, ToolCalled) else ())):
                name = path.rpartition("/")[2]
                yield from filter(None, (name, _RECIPES.get(name, "")))


def is_foreign(program: str, foreign: frozenset[str]) -> bool:
    """Whether the file that a program's name leads to, or the file of its recipes, is among the foreign ones."""
    return program.rpartition("/")[2] in foreign


def _command(event: AnyEvent) -> str:
    match event:
        case ToolCalled(arguments=arguments):
            return command_of(arguments)
        case Ran(command=command):
            return command
        case _:
            return ""


def _is_page_tool(event: AnyEvent) -> bool:
    return isinstance(event, ToolCalled) and event.name.casefold().replace("_", "") in _PAGE_TOOLS


def _fetches(command: SimpleCommand) -> bool:
    """Whether a command reads from another machine."""
    words = [word.raw for word in command.words]
    is_fetcher = any(word.rpartition("/")[2] in _FETCHERS for word in words[:3])
    return is_fetcher and not any(map(_LOCAL.search, words))
