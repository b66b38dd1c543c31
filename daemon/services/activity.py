"""What the daemon does: the last outcome of each kind of work and the time each host was last active, for
`memd status`, and the last events in order, for clients that follow them (U9)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count

from ...protocol.instant import from_micros
from ...protocol.reply import ActivityEvent, ActivityPage, Outcome
from ..world import World
from .events import CapturesCommitted

EVENTS = 1000
"""Events that are kept for clients that follow them."""


class Activity:
    """Last outcomes by name and last events, in memory. Any thread may call it."""

    def __init__(self, world: World) -> None:
        self.on_event: Callable[[], object] = lambda: None
        """Called after each event, on the thread that noted it."""
        self._events: deque[ActivityEvent] = deque(maxlen=EVENTS)
        self._seqs, self._lock = count(1), threading.Lock()
        self._world = world
        self._outcomes: dict[str, Outcome] = {}
        self._active_at: dict[str, int] = {}

    def note(self, name: str, text: str) -> None:
        """Record an outcome, and tell it."""
        self._outcomes[name] = Outcome(at=from_micros(self._world.now()), what=text)
        self.tell(name, text)

    def tell(self, event: str, what: str) -> None:
        """Tell clients that follow what the daemon does."""
        with self._lock:  # a client that has seen event N asks for no earlier one
            at = from_micros(self._world.now())
            self._events.append(ActivityEvent(seq=next(self._seqs), at=at, event=event, what=what))
        self.on_event()

    @property
    def last(self) -> int:
        """The seq of the last event, 0 for none."""
        events = self._events
        return events[-1].seq if events else 0

    def after(self, seq: int, limit: int) -> ActivityPage:
        """Return at most `limit` events after one; after one of an earlier run, which had more, those of this run."""
        events, last = list(self._events), self.last
        start = seq if seq <= last else 0
        return ActivityPage(events=tuple(event for event in events if event.seq > start)[:limit], last=last)

    def put(self, name: str, outcome: Outcome) -> None:
        """Record an outcome with its own time."""
        self._outcomes[name] = outcome

    def captured(self, event: CapturesCommitted) -> None:
        for document in event.documents:
            self.note("captured", document)
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
