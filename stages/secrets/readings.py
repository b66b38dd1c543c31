"""Other readings of a text: without invisible characters, escapes and encodings, each with its place in the text.

A reading is made only where one of `MARKED` and `encoded_clues` stands: expressions for Hyperscan, in any case.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_INVISIBLE = "\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f"
_STYLED = "\uff01-\uff5e\U0001d400-\U0001d7ff"
_CODED = re.compile(
    rf"[{_INVISIBLE}]+|[{_STYLED}]|\x1b\[[0-9;]*[A-Za-z]|\\+u[0-9A-Fa-f]{{4}}|\\+x[0-9A-Fa-f]{{2}}|%[2-7][0-9A-Fa-f]"
    r"|&(?:#x?[0-9A-Fa-f]{2,6}|quot|apos|amp|lt|gt);|=3[Dd]"
)
_IGNORED = re.compile(f"[{_INVISIBLE}]")
MARKED = (
    rf"[{_INVISIBLE}{_STYLED}]|\x1b\[|\\u(?:00(?:3[ad]|2[27]|40|[4-7])|200b|ff[0-5])|\\x(?:3[ad]|2[27]|[4-7])"
    r"|%(?:3[ad]|22)|&(?:quot|apos|#3[49]|#x2[27]|#6[14]|#x3[ad]);|[a-z]=3d"
)
"""Marks of characters that hide the name of a secret, its value, or what stands between the two."""
AROUND = 400
"""Characters around a mark that a reading holds."""

_ANNOUNCING = (
    "password passwd passwort secret token api_key apikey access_key private_key ghp_ github_pat_ glpat- sk-ant- xoxb- "
    "xoxp- sk_live_ -----BEGIN"
).split()
_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX_RUN = re.compile(r"(?:[0-9A-Fa-f]{2}){12,}")
LONGEST = 65_536
"""Characters of an encoded run that is decoded."""


class Reading(NamedTuple):
    """A text to search. `changes`: for each changed piece the place behind it, here and in the original, in ascending
    order; `whole`: the span in the original that stands for every hit, if characters have no places of their own."""

    text: str
    changes: Sequence[tuple[int, int, int]] = ()
    whole: tuple[int, int] | None = None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The span in the original text of a span in this reading, in characters."""
        return self.whole or (self._place(start, True), self._place(end, False))

    def _place(self, at: int, is_start: bool) -> int:
        """`changes` holds (begin here, begin in the original, end in the original) of each piece."""
        number = bisect_right(self.changes, (at, -1, -1)) - 1
        if is_start and number + 1 < len(self.changes) and self.changes[number + 1][0] == at:
            number += 1
        begin, original, _ = self.changes[number]
        return original + at - begin


def decoded_escapes(text: str, marks: Iterator[int]) -> Iterator[Reading]:
    """The text around these places, in characters and in ascending order, without escapes and invisible characters."""
    start, end = 0, -1
    for mark in marks:
        if end < 0 or mark - AROUND > end:
            if end >= 0:
                yield _plain(text, start, end)
            start = max(0, mark - AROUND)
        end = min(len(text), mark + AROUND)
    if end >= 0:
        yield _plain(text, start, end)


def _plain(text: str, start: int, end: int) -> Reading:
    parts: list[str] = []
    changes: list[tuple[int, int, int]] = [(0, start, start)]
    size, at = 0, start
    for match in _CODED.finditer(text, start, end):
        before, piece = text[at : match.start()], _character(match[0])
        parts += before, piece
        size += len(before)
        changes.append((size, match.start(), match.end()))
        size += len(piece)
        at = match.end()
        changes.append((size, at, at))
    parts.append(text[at:end])
    return Reading("".join(parts), changes)


def _character(coded: str) -> str:
    """The character that an escape or a styled letter means; "" for what nobody sees."""
    if coded[0] == "\\":
        plain = chr(int(coded.lstrip("\\")[1:], 16))
    elif coded[0] in "%=":
        plain = chr(int(coded[1:], 16))
    elif coded[0] == "&":
        plain = html.unescape(coded)
    else:
        plain = "" if coded[0] == "\x1b" else coded
    plain = unicodedata.normalize("NFKC", _IGNORED.sub("", plain))
    return plain if len(plain) <= 1 else plain[0]


def encoded_clues() -> tuple[str, ...]:
    """The middle of each announcing word in base64, at each of three offsets, and in hex, as expressions."""
    clues: set[str] = set()
    for word in _ANNOUNCING:
        for form in {word, word.upper(), word.capitalize()}:
            clues.add(form.encode().hex())
            for offset in range(3):
                code = base64.b64encode(b"\0" * offset + form.encode()).decode().rstrip("=")
                clues.add(code[(offset * 8 + 5) // 6 : (offset + len(form)) * 8 // 6])
    return tuple(sorted(map(re.escape, clues)))


def decoded_runs(text: str) -> Iterator[Reading]:
    """What the runs of base64 and hex in `text` say, where it is text."""
    for match in _RUN.finditer(text):
        if match.end() - match.start() <= LONGEST and (plain := _decoded(match[0])):
            yield Reading(plain, whole=match.span())


def _decoded(run: str) -> str:
    try:
        if _HEX_RUN.fullmatch(run):
            plain = bytes.fromhex(run).decode()
        else:
            bare = run.rstrip("=").translate(str.maketrans("-_", "+/"))
            plain = base64.b64decode(bare + "=" * (-len(bare) % 4)).decode()
    except (ValueError, binascii.Error):
        return ""
    return plain if plain.isprintable() or "\n" in plain else ""
