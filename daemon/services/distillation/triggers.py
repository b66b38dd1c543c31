"""The triggers of distillation: urgent captures, quiet, and the end of idle sessions.

An idle session is closed by an event in the archive, so replay sees the same end. A restart goes on counting idle
time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from ...config import Config
from ...world import World
from ..events import CapturesCommitted
from ..scheduler import Scheduler


class DistillationTriggers:
    """Two jobs: one a while after the last capture, one at least every minute over the open sessions."""

    def __init__(
        self,
        scheduler: Scheduler,
        world: World,
        config: Callable[[], Config],
        distil: Callable[[], None],
        end_session: Callable[[str], None],
    ) -> None:
        self._scheduler, self._world, self._config = scheduler, world, config
        self._distil, self._end_session = distil, end_session
        self._heard: dict[str, float] = {}
        self._lock = threading.Lock()
        self._quiet_at, self._waiting = 0.0, False

    @property
    def _session_idle_s(self) -> float:
        return self._config().session_idle_min * 60

    def watch_sessions(self) -> None:
        """Check for idle sessions at the interval of the settings."""
        self._scheduler.every(max(0.1, min(60.0, self._session_idle_s / 2)), self._end_idle, "sessions")

    def resume(self, heard_at: Mapping[str, int]) -> None:
        """Watch live sessions that were open at the last stop; `heard_at` in microseconds."""
        now, monotonic = self._world.now(), self._world.monotonic()
        with self._lock:
            self._heard.update({name: monotonic - max(0.0, (now - at) / 1e6) for name, at in heard_at.items()})

    def captured(self, event: CapturesCommitted) -> None:
        """Distil now if the captures are urgent, otherwise once it is quiet."""
        now = self._world.monotonic()
        with self._lock:
            for document in event.ended:
                self._heard.pop(document, None)
            self._heard.update(dict.fromkeys(event.live, now))
        if event.urgent:
            self._distil()
            return
        with self._lock:
            self._quiet_at = now + self._config().idle_s
            waiting, self._waiting = self._waiting, True
        if not waiting:  # a job for each capture would cost more than the capture
            self._scheduler.soon(self._check_quiet, "idle", self._config().idle_s)

    def _check_quiet(self) -> None:
        """Distil if it has been quiet long enough; else check again later."""
        with self._lock:
            left_s = self._quiet_at - self._world.monotonic()
            self._waiting = left_s > 0
        if left_s > 0:
            self._scheduler.soon(self._check_quiet, "idle", left_s)
        else:
            self._distil()

    def _end_idle(self) -> None:
        now = self._world.monotonic()
        with self._lock:
            idle = [document for document, at in self._heard.items() if now - at > self._session_idle_s]
            for document in idle:
                del self._heard[document]
        for document in idle:
            self._end_session(document)
