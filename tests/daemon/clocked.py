"""A real daemon in this process whose clock stands still unless a test moves it."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memd.clients.importers.course_file import Course, read_course
from memd.clients.python.client import Client
from memd.daemon.config import Config
from memd.daemon.server.home import check_home
from memd.daemon.server.startup import Daemon
from memd.daemon.world import World, real_world
from memd.protocol.courses import CoursesAsked
from memd.protocol.instant import from_micros
from memd.protocol.places import places

DAY = 86_400_000_000
COURSES = Path(__file__).parent.parent / "data" / "courses"


class Clocked(NamedTuple):
    """The daemon, its clock in microseconds, and a client."""

    daemon: Daemon
    clock: list[int]
    client: Client

    @property
    def now(self) -> str:
        return from_micros(self.clock[0])

    def service(self, name: str) -> Any:
        return next(service for service in self.daemon._services if service.name == name)

    def pass_days(self, days: float) -> None:
        self.clock[0] += round(days * DAY)

    def settle(self) -> None:
        self.client.distil()
        while self.client.status().pending:
            time.sleep(0.02)

    def test(self, agent: str) -> CoursesAsked:
        """Ask what is due, once every section can be found."""
        while not (asked := self.client.ask_courses(agent)).is_read:
            time.sleep(0.02)
        return asked

    def teach(self, agent: str, course: Course) -> None:
        """Teach an agent, which gets a memory of its own, and test it."""
        self.client.open_agent(agent)
        self.client.teach(agent, course.title, course.chapters)
        self.test(agent)


@contextmanager
def clocked_daemon(home: Path, days_ago: float) -> Iterator[Clocked]:
    home.mkdir(mode=0o700)
    real = real_world()
    clock = [real.now() - round(days_ago * DAY)]
    at_home = places({**os.environ, "MEMD_HOME": str(home)}, os.getuid())
    check_home(at_home)
    daemon = Daemon(at_home, Config(), World(lambda: clock[0], real.monotonic, real.token))
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        with Client(at_home, 20_000) as client:
            yield Clocked(daemon, clock, client)
    finally:
        daemon.stop()
        thread.join(30)


def handbook(name: str) -> Course:
    """One of the two invented handbooks."""
    return read_course(COURSES / name)
