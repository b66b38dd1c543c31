"""What a profile or a context package said at another time (Q12, Q1).

Invariants: it is made anew for each request, and stored nowhere; records, their use and captures are those of that
time, but rules, titles and passes those of today. It has no section on the last session, and nothing that was said just
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import Protocol

from ....protocol.event import Captured
from ....protocol.instant import micros
from ....protocol.record import Record
from ...projections.profile import CARDS, Part, part, weight
from ...projections.timeline import View
from ...storage.archive import Archive


class PastRequest(Protocol):
    """A request that may ask for another time."""

    @property
    def as_of(self) -> str: ...
    @property
    def believed_at(self) -> str: ...


def is_past(request: PastRequest) -> bool:
    """Whether a request asks for another time than now."""
    return bool(request.as_of or request.believed_at)


class PastCards:
    """The records that a profile could have had then."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._parts: dict[str, dict[Part, list[Record]]] = {}

    def cards(self, pool: str, name: Part) -> list[Record]:
        """Return the records of a pool's part, in no order."""
        if pool not in self._parts:
            parts: dict[Part, list[Record]] = {"static": [], "recent": [], "threads": []}
            for record in self._view.live(pool):
                if (own := part(record)) is not None:
                    parts[own].append(record)
            self._parts[pool] = parts
        return nlargest(CARDS, self._parts[pool][name], key=weight)


class PastCaptures:
    """The captures that memd had then, and that had been said then."""

    def __init__(self, archive: Archive, request: PastRequest) -> None:
        self._archive = archive
        self._moment = micros(request.as_of) if request.as_of else None
        self._upto = archive.log.seq_at(micros(request.believed_at)) if request.believed_at else archive.last

    def around(self, document: str, turn: str, before: int, after: int) -> Sequence[tuple[int, Captured]]:
        """Return the captures of a document around a turn, in order, with their seqs."""
        return [
            (seq, captured)
            for seq, captured in self._archive.around(document, turn, before, after)
            if seq <= self._upto and (self._moment is None or micros(captured.event.at) <= self._moment)
        ]
