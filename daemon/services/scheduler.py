"""Background jobs by interval or at once, on apscheduler's threads. A job never runs beside itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.background import BackgroundScheduler

from ..world import World


class Scheduler:
    """Jobs by name: a second job of a name replaces the first."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._scheduler = BackgroundScheduler(timezone=UTC, job_defaults={"max_instances": 1, "coalesce": True})

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        self._scheduler.shutdown(wait=False)

    def every(self, seconds: float, work: Callable[[], object], name: str) -> None:
        """Call `work` again and again, for the first time after one interval."""
        self._scheduler.add_job(work, "interval", seconds=seconds, id=name, replace_existing=True)

    def soon(self, work: Callable[[], object], name: str, seconds: float = 0.0) -> None:
        """Call `work` once, after so many seconds."""
        when = datetime.fromtimestamp(self._world.now() / 1e6, UTC) + timedelta(seconds=seconds)
        self._scheduler.add_job(
            work, "date", run_date=when, id=name, replace_existing=True, misfire_grace_time=None if not seconds else 1
        )
