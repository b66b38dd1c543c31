"""aider's history of a project (`.aider.chat.history.md`), one document for each start of aider, as capture events.

aider quotes what you type as `#### text` and its own output as `> text`; a line of either ends in two spaces. Only the
first line of an output is quoted, so its other lines last to the first that ends in two spaces. Other text is the
model's. `.aider.input.history` beside it tells when you typed.
Invariants: nothing before your first line of a session is the model's; a heading of the model's, which has no two
spaces at its end, is not your word (W5); blocks that replace text of files are left out, and the files' names stay.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from ...protocol.event import ToolCalled
from .json_line import TAKEN, arguments_in, lines
from .session_reader import read_lines
from .text_reader import TextReader, decoded, name_of
from .transcript import Mark, Transcript

HOST = "aider"
CHAT, INPUT = ".aider.chat.history.md", ".aider.input.history"
_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_END = "  "
_TYPED, _OUTPUT = re.compile(r"#### (.*?)  "), "> "
_EDITED = re.compile(r"> Applied edit to (.+?)  ")
_COMMAND = re.compile(r"[/!]")
_ASKING = re.compile(r"/(?:ask|code|architect|context)\s+(?=\S)")
_REPLACEMENT = re.compile(r"^<{5,9} SEARCH\b.*?^>{5,9} REPLACE[^\n]*\n?", re.DOTALL | re.MULTILINE)
_EMPTY_FENCE = re.compile(r"^(`{3,})[^\n]*\n\s*\1[ \t]*\n?", re.MULTILINE)
_TYPED_AT = re.compile(rb"# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\s*")
_INPUT_LIMIT = 64 * 1024 * 1024


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read the sessions in a history, from `mark` on. Raises StoreError."""
    return read_lines(path, lambda: AiderReader(path, mark), mark, cwd or str(path.resolve().parent), output_limit)


class AiderReader(TextReader):
    """Reads the lines of a history."""

    host = HOST

    def __init__(self, path: Path, mark: Mark | None) -> None:
        super().__init__(mark)
        self._path = path
        self._is_quoted = False
        self._has_typed = mark is not None
        self._typed_at: dict[str, list[str]] | None = None

    def take(self, content: bytes, number: int) -> str:
        """Take a line; return its kind. Raises BadLine."""
        line = decoded(content)
        if start := _START.fullmatch(line):
            self._begin(start[1])
            return "start of aider"
        if self.document is None:
            return "before the first start"
        if typed := _TYPED.fullmatch(line):
            return self._typed(typed[1])
        if self.role == "user":
            self.end_message()
        if self._is_quoted or line.startswith(_OUTPUT):
            return self._output(line)
        if not self._has_typed:
            return "output of aider"
        if self.role is None:
            self.begin_message("assistant")
        return self.add_line(line)

    def _begin(self, started: str) -> None:
        self.end_message()
        self._is_quoted = self._has_typed = False
        with suppress(ValueError, OverflowError, OSError):
            self.time = datetime.fromisoformat(started).astimezone().isoformat()
        self.enter(f"{name_of(self._path)}-{re.sub(r'[^0-9]', '', started)}").seen(self.time)

    def _typed(self, text: str) -> str:
        self._is_quoted, self._has_typed = False, True
        if self.role != "user":
            self.end_message()
            if (_COMMAND.match(text) and not _ASKING.match(text)) or text == "<blank>":
                return "command of aider"
            self.begin_message("user")
        return self.add_line(text)

    def _output(self, line: str) -> str:
        self.end_message()
        self._is_quoted = not line.endswith(_END)
        if (edited := _EDITED.fullmatch(line)) and self.document:
            path = msgspec.json.encode({"path": edited[1]}).decode()
            call = ToolCalled(
                turn=self.turn("edit"), at=self.time, name="edit", arguments=arguments_in(path), outcome="ok"
            )
            self.document.seen(self.time)
            self.document.add(call)
            return TAKEN
        return "output of aider"

    def cleaned(self, text: str) -> str:
        """Return a text without the command that asks, and without replaced text of files."""
        if self.role == "user":
            return _ASKING.sub("", text, count=1)
        return _EMPTY_FENCE.sub("", _REPLACEMENT.sub("", text)).strip("\n")

    def time_of(self, text: str) -> str:
        """Return when the user typed a text first since the session began, else when the session began."""
        if self._typed_at is None:
            self._typed_at = _typed_at(self._path.with_name(INPUT))
        times = self._typed_at.get(text, [])
        place = bisect_left(times, self.time)
        return times[place] if place < len(times) else self.time


def _typed_at(path: Path) -> dict[str, list[str]]:
    """Return the times of each text in an input history, in order; none if it is not there."""
    times: defaultdict[str, list[str]] = defaultdict(list)
    at, typed = "", list[str]()
    with suppress(OSError, ValueError, OverflowError):
        if path.stat().st_size > _INPUT_LIMIT:
            return {}
        with path.open("rb") as file:
            for content, *_ in lines(file):
                if content and (told := _TYPED_AT.fullmatch(content)):
                    times["\n".join(typed)].append(at)
                    at, typed = datetime.fromisoformat(told[1].decode()).astimezone().isoformat(), []
                elif content and content.startswith(b"+"):
                    typed.append(content[1:].decode(errors="replace").rstrip("\r\n"))
    times["\n".join(typed)].append(at)
    return {text: sorted(filter(None, listed)) for text, listed in times.items() if text}
