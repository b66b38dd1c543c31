"""Splits a shell text into simple commands and words, without a shell (K1).

Invariants: it never raises; `text[start:end]` of the commands, in order, are disjoint; a text that was cut anywhere
gives the commands before the cut. Only a plain word has a text: whatever was quoted or expanded has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

DEPTH = 40
"""Most expansions within each other that are read."""

_PLAIN = re.compile(r"[\w./:=@,+%^~-]+", re.ASCII)
_HEREDOC = re.compile(r"<<(?P<tabs>-?)\s*(?P<quote>['\"]?)(?P<end>[\w.+-]+)(?P=quote)")
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>|>\||>&|<&|>|<<<|<)(?:\s*[^\s;&|<>()]+)?")
_SEPARATOR = re.compile(r"&&|\|\||;;|[;\n]|\|&?|&(?!>)")
_ORDINARY = re.compile(r"[^ \t\r\n;&|<>()\\'\"`$]+")
_WITHIN_QUOTES = re.compile(r"[^\\\"`$]+")
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")
_KEYWORDS = frozenset(("if then else elif while until do ! { } ( ) time coproc").split())
_HEADS = frozenset(("for case select function fi done esac [[ [ test").split())


class ShellWord(NamedTuple):
    """A word. `text`: its characters, "" unless they are plain: letters, digits and ./:=@,+%^~- alone."""

    text: str
    raw: str


class SimpleCommand(NamedTuple):
    """A command between separators. `piped`: it reads the output of the one before."""

    words: tuple[ShellWord, ...]
    piped: bool
    start: int
    end: int


@lru_cache(2048)
def commands(text: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands of a shell text in order, without those of loops' heads and tests."""
    return tuple(command for command in _Reader(text).commands() if command.words)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0
        self._pending: list[tuple[str, bool]] = []
        self._depth = 0

    def commands(self) -> Iterator[SimpleCommand]:
        text, piped, start, words = self._text, False, 0, list[ShellWord]()
        while self._place < len(text):
            if blank := _BLANK.match(text, self._place):
                self._place = blank.end()
            elif text[self._place] == "#":
                self._to_line_end()
            elif heredoc := _HEREDOC.match(text, self._place):
                self._pending.append((heredoc["end"], bool(heredoc["tabs"])))
                self._place = heredoc.end()
            elif redirection := _REDIRECTION.match(text, self._place):
                self._place = redirection.end()
            elif separator := _SEPARATOR.match(text, self._place):
                yield _command(words, piped, start, self._place)
                self._place = separator.end()
                if separator[0] == "\n":
                    self._skip_heredocs()
                piped, start, words = separator[0].startswith("|") and separator[0] != "||", self._place, []
            elif text[self._place] in "()":
                yield _command(words, piped, start, self._place)
                self._place += 1
                piped, start, words = False, self._place, []
            else:
                words.append(self._word())
        yield _command(words, piped, start, self._place)

    def _word(self) -> ShellWord:
        text, begin = self._text, self._place
        while self._place < len(text) and text[self._place] not in " \t\r\n;&|<>()":
            if ordinary := _ORDINARY.match(text, self._place):
                self._place = ordinary.end()
            else:
                self._part()
        if self._place == begin:
            self._place += 1
        raw = text[begin : self._place]
        return ShellWord(raw if _PLAIN.fullmatch(raw) else "", raw)

    def _part(self) -> None:
        """Go past one character of a word, or past all that is quoted or expanded from here."""
        text, place = self._text, self._place
        if text[place] == "\\":
            self._place = min(place + 2, len(text))
        elif text[place] == "'":
            self._place = self._after("'", place + 1)
        elif text[place] in '"`':
            self._quoted(text[place])
        elif text[place] == "$" and text[place + 1 : place + 2] in ("(", "{"):
            self._place += 2
            self._nested(")" if text[place + 1] == "(" else "}")
        else:
            self._place += 1

    def _quoted(self, end: str) -> None:
        """Go behind a quotation that begins here; one may hold `$( )`, which may hold quotations."""
        text = self._text
        self._place += 1
        while self._place < len(text) and text[self._place] != end:
            if text[self._place] == "\\":
                self._place += 2
            elif text.startswith("$(", self._place):
                self._place += 2
                self._nested(")")
            elif plain := _WITHIN_QUOTES.match(text, self._place):
                self._place = plain.end()
            else:
                self._place += 1
        self._place = min(self._place + 1, len(text))

    def _nested(self, end: str) -> None:
        """Go behind an expansion whose opening was read; one that is nested too deeply goes to the end of the text."""
        text = self._text
        self._depth += 1
        if self._depth > DEPTH:
            self._place = len(text)
        while self._place < len(text) and text[self._place] != end:
            letter = text[self._place]
            if heredoc := _HEREDOC.match(text, self._place):
                self._pending.append((heredoc["end"], bool(heredoc["tabs"])))
                self._place = heredoc.end()
            elif letter in "()<>;&| \t\r\n":
                self._place += 1
                if letter == "(":
                    self._nested(")")
                elif letter == "\n":
                    self._skip_heredocs()
            else:
                self._part()
        self._depth -= 1
        self._place = min(self._place + 1, len(text))

    def _after(self, mark: str, place: int) -> int:
        found = self._text.find(mark, place)
        return len(self._text) if found < 0 else found + len(mark)

    def _to_line_end(self) -> None:
        found = self._text.find("\n", self._place)
        self._place = len(self._text) if found < 0 else found

    def _skip_heredocs(self) -> None:
        """Go behind the bodies of the documents that the line before announced."""
        for end, tabs in self._pending:
            while self._place < len(self._text):
                line_end = self._after("\n", self._place)
                line = self._text[self._place : line_end].rstrip("\n")
                self._place = line_end
                if (line.lstrip("\t") if tabs else line) == end:
                    break
        self._pending = []


def _command(words: list[ShellWord], piped: bool, start: int, end: int) -> SimpleCommand:
    while words and words[0].raw in _KEYWORDS:
        words = words[1:]
    if words and words[0].raw in _HEADS:
        words = []
    return SimpleCommand(tuple(words), piped, start, end)
