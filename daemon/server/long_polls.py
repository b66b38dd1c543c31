"""Requests that wait until there is something to tell, so that a client need not ask again and again (U9).

Only the request server's thread uses the requests; any thread may call `notify`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class LongPoll(NamedTuple, Generic[T]):
    """A waiting request. `until_s`: when it is answered at the latest, on the monotonic clock."""

    request: T
    is_ready: Callable[[], bool]
    until_s: float


class LongPolls(Generic[T]):
    """The waiting requests of all clients."""

    def __init__(self, monotonic: Callable[[], float], wake: Callable[[], None]) -> None:
        """`wake`: ends the server's wait for messages."""
        self._monotonic, self._wake = monotonic, wake
        self._waiting: list[LongPoll[T]] = []

    def add(self, request: T, is_ready: Callable[[], bool], wait_s: float) -> None:
        """Let a request wait."""
        self._waiting.append(LongPoll(request, is_ready, self._monotonic() + wait_s))

    def notify(self) -> None:
        """Tell the server that requests may be ready; without waiting ones it is not woken."""
        if self._waiting:
            self._wake()

    def wait_s(self, longest_s: float) -> float:
        """Return how long the server may wait for messages: at most until a request must be answered."""
        now = self._monotonic()
        return min((max(0.0, poll.until_s - now) for poll in self._waiting), default=longest_s)

    def due(self) -> list[T]:
        """Take the requests to answer now. Call it between `add` and the wait for messages: what another thread writes
        before is seen here, and of what it writes later `notify` tells."""
        if not self._waiting:
            return []
        now = self._monotonic()
        due = [poll for poll in self._waiting if poll.until_s <= now or poll.is_ready()]
        self._waiting = [poll for poll in self._waiting if poll not in due] if due else self._waiting
        return [poll.request for poll in due]
