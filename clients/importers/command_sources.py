"""Tells which commands of an agent stood in a tool's result before the agent ran them (K1).

The first text with a command decides: a tool's result, or the user's turn or a call of the agent, which mark nothing.
Invariants: no text leaves the reader; texts further back in the file than the window are forgotten, and a reader that
goes on from a mark reads the window before it again, so that it marks what a reader of the whole file marks (W13).
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple

from ...protocol.event import SaidBy, ToolCalled
from ...protocol.repository_folder import repository_folder
from ...protocol.shell_text import SimpleCommand, commands
from ...protocol.tool_calls import command_of, fetches, is_page_tool

WINDOW = 2 * 1024 * 1024
"""Bytes of the file before a call, in which its commands are looked for: more than an agent has in its context."""

WORDS, LENGTH = 2, 12
"""Least words and characters of a command that is looked for: shorter ones stand anywhere by chance."""

LONGEST = 400
"""Most characters of a word that is compared: a longer one is data."""

_COMPARED = bytes(
    place if place < 128 and (chr(place).isalnum() or chr(place) in "!#$%+-./:=?@^_~") else 32 for place in range(256)
)
"""Bytes that are compared; others may stand beside a command in a text."""

NAMED = 1000
"""Characters of a call's arguments in which the file that it reads is named."""

_ASSIGNMENT = re.compile(r"\w+=")
_FILE = re.compile(r'"(?:file_path|absolute_path|path|filePath)"\s*:\s*"((?:[^"\\]|\\.)+)')
_READERS = frozenset("awk bat cat cd cut egrep fgrep grep head jq less more nl rg sed strings tail".split())
_NOT_LOOKED_FOR = (_READERS - {"sed"}) | frozenset("echo find ls printf pwd sleep wc which".split())
"""Programs that are no step of a skill."""

_FOREIGN = re.compile(r"(?:^|/)(?:node_modules|site-packages|vendor)/")
_TRACKERS = frozenset("gh glab".split())
_TRACKED = frozenset("api gist issue mr pr release search".split())
"""What `gh` and the like show of what others wrote."""

_MCP = re.compile(r"mcp_+(?!_|(?:filesystem|git|ide|memd|serena)_)")
"""Begins the name of a tool of another program, unless that reads this machine alone."""

_STRENGTH: tuple[SaidBy, ...] = ("", "file", "outside", "page")


class HeardCall(NamedTuple):
    """A call: the place of its line, its commands, and the folder of its session."""

    place: int
    call: ToolCalled
    parts: Sequence[SimpleCommand]
    folder: str


class HeardText(NamedTuple):
    """A text in the order of the session. `place`: of the line, or of the call whose result it is; `source`: that
    call, None for a text of the user or the agent; `words`: those that a command in it has."""

    place: int
    source: HeardCall | None
    words: frozenset[bytes]
    text: bytes


class CommandSources:
    """What was heard in one file so far. `place`: of the line that is being read; `folder`: of a session whose lines
    name none; `earlier`: returns what was heard before the mark from which the reader goes on."""

    def __init__(self) -> None:
        self.place, self.folder = 0, ""
        self.earlier: Callable[[], Iterable[HeardText]] | None = None
        self.texts: deque[HeardText] = deque()
        self._calls: dict[str, HeardCall] = {}

    def called(self, call: ToolCalled, folder: str) -> SaidBy:
        """Take a call with its whole arguments, made in `folder`; return what had one of its commands first."""
        typed = command_of(call.arguments)
        parts = commands(typed) if typed else ()
        self._calls[call.turn] = HeardCall(self.place, call, parts, folder or self.folder)
        said: list[SaidBy] = ["", *(self._first(words) for words in _looked_for(parts))]
        self._hear(typed or call.arguments.replace("\\n", " ").replace('\\"', '"'))
        return max(said, key=_STRENGTH.index)

    def returned(self, call: str, text: str) -> None:
        """Take the result of a call."""
        if text and call in self._calls:  # an empty one may be that of a call that still runs
            self._hear(text, self._calls.pop(call))

    def typed(self, text: str) -> None:
        """Take a text of the user."""
        self._hear(text)

    def _hear(self, text: str, source: HeardCall | None = None) -> None:
        words, place = _words(text), source.place if source else self.place
        while self.texts and self.texts[0].place <= self.place - WINDOW:
            self.texts.popleft()
        if len(words) >= WORDS:
            self.texts.append(HeardText(place, source, frozenset(words), b" %b " % b" ".join(words)))

    def _first(self, words: Sequence[bytes]) -> SaidBy:
        """Return who said a command first within the window."""
        if self.earlier:
            self.texts.extendleft(reversed(list(self.earlier())))
            self.earlier = None
        command, longest, end = b" %b " % b" ".join(words), max(words, key=len), self.place - WINDOW
        for place, source, heard, text in self.texts:
            if longest in heard and place > end and heard.issuperset(words) and command in text:
                return _speaker(source) if source else ""
        return ""


def _looked_for(parts: Iterable[SimpleCommand]) -> Iterator[list[bytes]]:
    """Yield the words of each command that is long enough, without assignments before it."""
    for part in parts:
        if part.words[0].text in _NOT_LOOKED_FOR:
            continue
        raw = dropwhile(_ASSIGNMENT.match, (word.raw for word in part.words))
        words = _words(" ".join(raw))
        if len(words) >= WORDS and sum(map(len, words)) + len(words) > LENGTH:
            yield words


def _words(text: str) -> list[bytes]:
    """Return the words of a text, without what may stand beside a command in it."""
    plain = text.encode(errors="replace").translate(_COMPARED)
    words = (plain + b" ").replace(b". ", b" ").replace(b": ", b" ").split()
    return [word for word in words if len(word) <= LONGEST] if len(plain) > LONGEST * len(words) else words


def _speaker(source: HeardCall) -> SaidBy:
    """Return who speaks in the result of a call."""
    _, call, parts, folder = source
    if is_page_tool(call.name) or _MCP.match(call.name) or any(fetches(part) or _is_tracker(part) for part in parts):
        return "page"
    paths = _read_paths(parts) if parts else _FILE.findall(call.arguments[:NAMED])
    return "outside" if any(_is_outside(path, folder) for path in paths) else "file"


def _is_tracker(part: SimpleCommand) -> bool:
    words = [word.text for word in part.words[:2]]
    return len(words) == WORDS and words[0] in _TRACKERS and words[1] in _TRACKED


def _read_paths(parts: Iterable[SimpleCommand]) -> Iterator[str]:
    """Yield the paths that commands may read, from where the last `cd` led."""
    here = ""
    for part in parts:
        program, *rest = (word.text for word in part.words)
        if program == "cd" and rest:
            here = os.path.join(here, rest[0])
        if program == "cd" or program in _READERS:
            yield from (os.path.join(here, word) for word in rest if program != "cd")
            yield here


def _is_outside(path: str, folder: str) -> bool:
    """Whether a path leads out of the repository of a folder, or to what others wrote within it."""
    if not folder or not path.startswith(("/", "~", "../")):
        return _FOREIGN.search(path) is not None
    whole = os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
    root = os.path.normpath(_root(folder))
    inside = whole.removeprefix(root)
    return (inside == whole or not f"{inside}/".startswith("/")) or _FOREIGN.search(inside) is not None


@lru_cache(maxsize=64)
def _root(folder: str) -> str:
    return str(repository_folder(Path(folder)) or folder)
