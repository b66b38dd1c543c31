"""When to distil without being asked: the store is quiet, or a live session has been idle long enough to have ended.

Comes in: news of captures. Goes out: calls of `distil`. Invariants: a job never runs beside itself and never piles up;
an idle session is closed by an event of its own in the archive, so that replay sees the same end (W2); a restart
goes on counting where the last run was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.background import BackgroundScheduler

from ..config import Config
from ..world import World

IDLE_JOB, SESSIONS_JOB, UPKEEP_JOB = "idle", "sessions", "upkeep"


class Triggers:
    """Two jobs: one a while after the last capture, one at least every minute over the sessions that are open."""

    def __init__(
        self,
        world: World,
        *,
        idle_s: float,
        session_idle_min: float,
        distil: Callable[[], None],
        end_session: Callable[[str], None],
    ) -> None:
        self._world, self._idle_s, self._session_idle_s = world, idle_s, session_idle_min * 60
        self._distil, self._end_session = distil, end_session
        self._heard: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
        self._works: dict[str, Callable[[], object]] = {}
        self._lock = threading.Lock()
        self._quiet_at, self._waiting = 0.0, False
        self._scheduler = BackgroundScheduler(timezone=UTC, job_defaults={"max_instances": 1, "coalesce": True})

    def start(self) -> None:
        """Begin to watch."""
        self._watch_sessions()
        self._scheduler.start()

    def _watch_sessions(self) -> None:
        seconds = max(0.1, min(60.0, self._session_idle_s / 2))
        self._scheduler.add_job(self._end_idle, "interval", seconds=seconds, id=SESSIONS_JOB, replace_existing=True)

    def follow(self, config: Config) -> None:
        """Go on with these settings."""
        self._idle_s, self._session_idle_s = config.idle_s, config.session_idle_min * 60
        self._watch_sessions()
        if config.upkeep_s != self._seconds.get(UPKEEP_JOB) and (work := self._works.get(UPKEEP_JOB)):
            self.every(config.upkeep_s, work, UPKEEP_JOB)

    def resume(self, heard_at: Mapping[str, int]) -> None:
        """Live sessions that were open when memd ended last, with the time of their last turn in microseconds."""
        now, here = self._world.now(), self._world.monotonic()
        with self._lock:
            self._heard.update({each: here - max(0.0, (now - at) / 1e6) for each, at in heard_at.items()})

    def every(self, seconds: float, work: Callable[[], object], name: str) -> None:
        """Call `work` again and again, for the first time after one interval."""
        self._seconds[name], self._works[name] = seconds, work
        self._scheduler.add_job(work, "interval", seconds=seconds, id=name, replace_existing=True)

    def soon(self, work: Callable[[], object], name: str) -> None:
        """Call `work` once, beside whatever asks for it; a call of that name that waits is this one."""
        when = datetime.fromtimestamp(self._world.now() / 1e6, UTC)
        self._scheduler.add_job(work, "date", run_date=when, id=name, replace_existing=True, misfire_grace_time=None)

    def captured(self, live: Sequence[str], urgent: bool) -> None:
        """Captures became durable, those of the `live` documents among them: distil now if it is urgent, otherwise
        once it is quiet."""
        now = self._world.monotonic()
        with self._lock:
            self._heard.update(dict.fromkeys(live, now))
        if urgent:
            self._distil()
            return
        with self._lock:
            self._quiet_at = now + self._idle_s
            waiting, self._waiting = self._waiting, True
        if not waiting:  # a job for each capture would cost more than the capture
            self._look_in(self._idle_s)

    def _look_in(self, seconds: float) -> None:
        when = datetime.fromtimestamp(self._world.now() / 1e6, UTC) + timedelta(seconds=seconds)
        self._scheduler.add_job(self._look, "date", run_date=when, id=IDLE_JOB, replace_existing=True)

    def _look(self) -> None:
        """Distil if it has been quiet; else look again when it will have been."""
        with self._lock:
            left = self._quiet_at - self._world.monotonic()
            self._waiting = left > 0
        if left > 0:
            self._look_in(left)
        else:
            self._distil()

    def ended(self, documents: Iterable[str]) -> None:
        """These sessions ended by themselves, or with the event of `end_session`, or were never live."""
        with self._lock:
            for document in documents:
                self._heard.pop(document, None)

    def _end_idle(self) -> None:
        now = self._world.monotonic()
        with self._lock:
            idle = [document for document, at in self._heard.items() if now - at > self._session_idle_s]
            for document in idle:
                del self._heard[document]
        for document in idle:
            self._end_session(document)

    def stop(self) -> None:
        """End the jobs."""
        self._scheduler.shutdown(wait=False)
