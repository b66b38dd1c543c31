"""The last outcome of each kind of work and the time each host was last heard, for `memd status`."""

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
        self._heard_at: dict[str, int] = {}

    def note(self, name: str, text: str) -> None:
        """Record an outcome that happened now."""
        self.put(name, Outcome(at=from_micros(self._world.now()), what=text))

    def put(self, name: str, outcome: Outcome) -> None:
        """Record an outcome with its own time."""
        self._outcomes[name] = outcome

    def captured(self, event: CapturesCommitted) -> None:
        """Record the hosts that captures came from."""
        self.note("captured", next(iter(event.documents)))
        self.heard(dict.fromkeys(event.documents, self._world.now()))

    def heard(self, documents: Mapping[str, int]) -> None:
        """Record when these documents were last heard, in microseconds."""
        for document, at in documents.items():
            host = document.partition(":")[0]
            self._heard_at[host] = max(at, self._heard_at.get(host, 0))

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """A copy of the last outcomes by name."""
        return dict(self._outcomes)

    @property
    def hosts(self) -> Iterable[tuple[str, int]]:
        """Each host with the time it was last heard, in microseconds, by name."""
        return sorted(self._heard_at.items())
