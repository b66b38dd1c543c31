"""A user's turn as lines, of which the finders of passages blank those that somebody else wrote (P-19)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from .rules import table

_DATA = table("speakers")
Writer = Literal["quoted", "pasted", "agent"]
FIRSTS = re.compile(rf"\W*{_DATA['firsts']}", re.IGNORECASE)
_SEPARATOR = re.compile(r"\s*(?:[-*_=~]\s?){3,}$")
WORDS = re.compile(r"[^\W\d_]+")

LONGEST_FIELD = 200  # Characters of a line that is a title or a field
LONGEST_NAME = 4  # Words
LONGEST_READ = 40_000  # Characters of a turn that are read, half of them from each end


class Passage(NamedTuple):
    """Characters `start:end` of a turn that are not its user's own words."""

    start: int
    end: int
    writer: Writer


class TurnText:
    """A turn as lines, of which those that are found to be somebody else's are blanked."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._length = len(text)
        self.found: list[Passage] = []

    def leave_middle(self) -> None:
        """Take the middle of a very long turn for pasted, unread."""
        if self._length > LONGEST_READ:
            first = bisect_left(self._starts, LONGEST_READ // 2)
            last = bisect_left(self._starts, self._length - LONGEST_READ // 2)
            self.mark(first, max(first, min(last, len(self.lines))))

    @property
    def text(self) -> str:
        """The text without what was found, its characters in their places."""
        return "\n".join(self.lines)

    def mark(self, first: int, last: int, writer: Writer = "pasted") -> None:
        """Lines `first:last` are not the user's."""
        if first == last:
            return
        self.found.append(Passage(self._starts[first], min(self._length, self._starts[last] - 1), writer))
        self.lines[first:last] = [" " * len(line) for line in self.lines[first:last]]

    def mark_span(self, start: int, end: int, writer: Writer) -> None:
        """Characters `start:end` are not the user's. Call `blank` after the last one."""
        self.found.append(Passage(start, end, writer))

    def blank(self) -> None:
        """Blank what `mark_span` found."""
        text, pieces, at = self.text, list[str](), 0
        for start, end, _ in sorted(self.found):
            pieces += text[at:start], re.sub(r"[^\n]", " ", text[max(at, start) : end])
            at = max(at, end)
        self.lines = "".join((*pieces, text[at:])).split("\n")

    def start(self, line: int) -> int:
        return self._starts[line]

    def paragraphs(self) -> Iterator[tuple[int, int]]:
        """First and last line (exclusive) of each run of lines with words."""
        first = -1
        for at, line in enumerate((*self.lines, "")):
            if line.strip():
                first = at if first < 0 else first
            elif first >= 0:
                yield first, at
                first = -1

    def until(self, first: int, is_end: Callable[[str], bool]) -> int:
        """The next line from `first` on for which `is_end` holds, or the number of lines."""
        return next((at for at in range(first, len(self.lines)) if is_end(self.lines[at])), len(self.lines))

    def passages(self) -> tuple[Passage, ...]:
        """What was found, in order and disjoint."""
        return merged(self.found)


def merged(found: Iterable[Passage]) -> tuple[Passage, ...]:
    """Passages in order; where two overlap, the one that starts first has the words of both."""
    out: list[Passage] = []
    for passage in sorted(found):
        if out and passage.start <= out[-1].end:
            out[-1] = out[-1]._replace(end=max(out[-1].end, passage.end))
        else:
            out.append(passage)
    return tuple(out)


def is_separator(line: str) -> bool:
    return _SEPARATOR.match(line) is not None


def block_end(turn: TurnText, line: int) -> int:
    return turn.until(line, lambda words: not words.strip())
