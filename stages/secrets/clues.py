"""Search a text for many expressions in one pass, in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperscan import Scratch

_PLAIN = re.compile(r"(?:[A-Za-z0-9_ :/@=-]|\\[^A-Za-z0-9]|\[ _\])+")
"""An expression of which no part can match a part of a character."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")

Places = dict[int, list[tuple[int, int]]]
"""For the number of each clue that stands in a text, start and end of its matches, in bytes. They may overlap."""


class ClueSearch:
    """Expressions that are searched together. Several threads may search at once."""

    def __init__(self, clues: Sequence[Sequence[str]], *, any_case: bool = True, in_ascii: bool = False) -> None:
        """`clues`: alternative expressions of each; several short ones compile faster than one that joins them. They
        match characters if one of them has a character beyond ASCII, and bytes otherwise, which is faster to compile;
        so are plain words. `in_ascii`: only texts in ASCII are searched, and one match of each clue is enough, whose
        start is not told: longer expressions compile so.
        Raises hyperscan.error for an expression that cannot be searched in linear time."""
        import hyperscan  # here, for the daemon's start: 12 ms

        wanted = hyperscan.HS_FLAG_SINGLEMATCH if in_ascii else hyperscan.HS_FLAG_SOM_LEFTMOST
        bytewise = wanted | (hyperscan.HS_FLAG_CASELESS if any_case else 0)
        if in_ascii:  # one byte that does not occur, so that `ü?` stays one optional character
            clues = [[_BEYOND_ASCII.sub("\x7f", pattern) for pattern in clue] for clue in clues]
        flags = [bytewise if "".join(clue).isascii() else bytewise | hyperscan.HS_FLAG_UTF8 for clue in clues]
        patterns = [(number, pattern) for number, clue in enumerate(clues) for pattern in clue]
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=[pattern.encode() for _, pattern in patterns],
            ids=[number for number, _ in patterns],
            elements=len(patterns),
            flags=[bytewise if _PLAIN.fullmatch(pattern) else flags[number] for number, pattern in patterns],
        )
        self._new_scratch = hyperscan.Scratch
        self._scratches: list[Scratch] = []

    def search(self, data: bytes) -> Places:
        """Return what stands in `data`, which is UTF-8."""
        try:  # memory of one search; two at the same time, also of one thread and a signal's handler, must not share it
            scratch = self._scratches.pop()
        except IndexError:
            scratch = self._new_scratch(self._database)
        places: Places = {}
        self._database.scan(data, _add, 0, places, scratch)
        self._scratches.append(scratch)
        return places


def _add(number: int, start: int, end: int, flags: int, places: Places) -> None:
    places.setdefault(number, []).append((start, end))
