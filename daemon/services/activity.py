"""The last outcome of each kind of work and the time each host was last active, for `memd status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...protocol.instant import from_micros
from ...protocol.reply import Outcome
from ..world import World
from .events import CapturesCommitted


class Activity:
    """Last outcomes by name, in memory. Any thread may call it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._outcomes: dict[str, Outcome] = {}
        self._active_at: dict[str, int] = {}

    def note(self, name: str, text: str) -> None:
        self._outcomes[name] = Outcome(at=from_micros(self._world.now()), what=text)

    def put(self, name: str, outcome: Outcome) -> None:
        """Record an outcome with its own time."""
        self._outcomes[name] = outcome

    def captured(self, event: CapturesCommitted) -> None:
        self.note("captured", next(iter(event.documents)))
        self.note_active(dict.fromkeys(event.documents, self._world.now()))

    def note_active(self, documents: Mapping[str, int]) -> None:
        """Record when these documents were last active, in microseconds."""
        for document, at in documents.items():
            host = document.partition(":")[0]
            self._active_at[host] = max(at, self._active_at.get(host, 0))

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """Return a copy of the last outcomes by name."""
        return dict(self._outcomes)

    @property
    def hosts(self) -> Iterable[tuple[str, int]]:
        """Return the hosts by name, each with the time of its last activity in microseconds."""
        return sorted(self._active_at.items())
