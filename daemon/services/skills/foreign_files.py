"""Finds files that a request wrote after it had read a page from outside (K1).

Such a file may hold what the page said, though the command that runs it later looks like the project's own. Invariant:
only commands and edits are read, so a page that a person pasted is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....protocol.event import AnyEvent, Ran, ToolCalled
from ....protocol.shell_text import commands
from ....protocol.tool_calls import command_of, edited_path, fetches, is_page_tool
from .tables import table

_RECIPES = {name: program for program, names in table("shell")["recipes"].items() for name in names.split()}
_WRITTEN = re.compile(r"(?:>>?\s*|\btee\s+(?:-a\s+)?|\s-(?:o|O)\s*|--output(?:-document)?[\s=])['\"]?([\w./~-]+)")


def foreign_files(events: Sequence[AnyEvent]) -> Iterator[str]:
    """Yield the names of files that were written after a page was read, and the programs whose recipes they hold."""
    has_read = False
    for event in events:
        text = _command(event)
        is_page = isinstance(event, ToolCalled) and is_page_tool(event.name)
        has_read = has_read or is_page or any(map(fetches, commands(text)))
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
