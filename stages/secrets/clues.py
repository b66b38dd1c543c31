"""Search a text for many expressions in one pass, in time linear in the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperscan import Scratch

Places = dict[int, list[tuple[int, int]]]
"""For the number of each expression that matches, start and end of its matches, in bytes. They may overlap."""


class ClueSearch:
    """Expressions that are searched together, in any case. Several threads may search at once."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raises hyperscan.error for an expression that cannot be searched in linear time."""
        import hyperscan  # here, for the daemon's start: 12 ms

        common = hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_SOM_LEFTMOST
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=[pattern.encode() for pattern in patterns],
            ids=range(len(patterns)),
            elements=len(patterns),
            flags=[common if pattern.isascii() else common | hyperscan.HS_FLAG_UTF8 for pattern in patterns],
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
        self._database.scan(data, match_event_handler=_add, context=places, scratch=scratch)
        self._scratches.append(scratch)
        return places


def _add(number: int, start: int, end: int, flags: int, places: Places) -> None:
    places.setdefault(number, []).append((start, end))
