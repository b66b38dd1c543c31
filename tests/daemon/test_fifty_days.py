"""Fifty days of one user with three projects and two agents, by a real daemon whose clock the test drives: what is used
stays, what is not fades, also where the profile told it; nothing pinned or principled goes; two agents get two orders
(T2, T3, T5, T6, T9, T13, Q6, R7)."""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from memd.clients.python.client import Client
from memd.daemon.config import Config
from memd.daemon.server.home import check_home
from memd.daemon.server.startup import Daemon
from memd.daemon.world import World, real_world
from memd.protocol.event import Origin, Said, SessionEnded, SessionStarted
from memd.protocol.instant import from_micros
from memd.protocol.places import places
from memd.protocol.record import Record, Status
from memd.protocol.request import Remember

DAY = 86_400_000_000
DAYS = 50
PROJECTS = ("orchard", "ledger", "atlas")
USED = "The {project} service keeps its tables in PostgreSQL 15."
UNUSED = "The {project} service had a lunch talk about the colour of its logo."
TOLD = "Always run the {project} tests with the flag that checks licences."
THINGS = (
    "login invoice search basket calendar upload map chat report webhook cache avatar currency tax label "
    "printer scanner feed alarm door badge shift roster fuel route depot truck pallet crate seed frost pump "
    "sensor meter ticket refund coupon survey banner archive export import ledger audit quota token session "
    "cookie theme font icon "
).split()
NEWS = (
    "The {thing} page reads its data from the {other} table since the split.",
    "Tickets about a {thing} go to whoever looks after the {other}.",
    "A {thing} may have at most {day} open entries, because the {other} counts them by hand.",
    "Sten wrote the {thing} part, and he reviews what touches the {other}.",
    "Errors of the {thing} job land in the channel that is named after the {other}.",
)
LESSONS = {
    "review": "The {project} deploy needs migrations that are reversible.",
    "speed": "The {project} deploy needs an image cache that is warm.",
}

AGENTS = {"reviewer": "review", "tuner": "speed"}
KEPT = "does the {project} service keep its tables in PostgreSQL"
ASKED = "what does the {project} deploy need"


class Life(NamedTuple):
    """A daemon whose clock stands still unless the test moves it, with the folders of the projects."""

    daemon: Daemon
    clock: list[int]
    folders: dict[str, str]
    client: Client

    @property
    def now(self) -> str:
        return from_micros(self.clock[0])

    def settle(self) -> None:
        self.client.distil()
        while self.client.status().pending:
            pass

    def remember(self, text: str, project: str = "") -> str:
        pool = "project" if project else "personal"
        origin = Origin(host="cli", session="notes", cwd=self.folders.get(project, ""))
        return self.client.remember(Remember(text=text, turn=text, at=self.now, origin=origin, pool=pool)).record.id

    def record(self, id: str) -> Record:
        """A record with its live signal."""
        records = self.client.list(statuses=get_args(Status), limit=500).records
        return next(record for record in records if record.id == id)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    environment = {**os.environ, "MEMD_HOME": str(home)}
    real, clock = real_world(), [0]
    clock[0] = real.now() - (DAYS + 5) * DAY
    folders: dict[str, str] = {}
    for project in PROJECTS:
        folder = tmp_path / project
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        first = ("commit", "-q", "--allow-empty", "-m", f"begin {project}")
        subprocess.run(["git", "-C", str(folder), *identity, *first], check=True)
        folders[project] = str(folder)
    at_home = places(environment, os.getuid())
    check_home(at_home)
    daemon = Daemon(at_home, Config(), World(lambda: clock[0], real.monotonic, real.token))
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        with Client(at_home, 20_000) as client:
            yield Life(daemon, clock, folders, client)
    finally:
        daemon.stop()
        thread.join(30)


def task(life: Life, project: str, day: int) -> str:
    """A session of a day in a project, in which an agent is given the profile, and asks and uses one record."""
    host = Origin(host="claude-code", session=f"{project}-{day}", cwd=life.folders[project])
    life.client.capture(host, (SessionStarted(turn="session-start", at=life.now),))
    profile = life.client.profile(cwd=host.cwd, document=host.document, trigger="start")
    life.client.printed(host.document, profile.rev)
    said = Said(turn="1", at=life.now, role="user", text=f"Please go on with day {day} of the work.")
    life.client.capture(host, (said, SessionEnded(turn="session-end", at=life.now)))
    return profile.text


def news(number: int) -> str:
    """What a user adds that day."""
    thing, other = THINGS[number % len(THINGS)], THINGS[(number * 3 + 1) % len(THINGS)]
    return NEWS[number % len(NEWS)].format(thing=thing, other=other, day=number)


def use(life: Life, project: str, agent: str, question: str, id: str) -> None:
    """An agent asks under its perspective and reports one record of the answer as used."""
    perspective = AGENTS[agent]
    answer = life.client.recall(question, cwd=life.folders[project], agent=agent, perspective=perspective)
    assert id in [hit.record.id for hit in answer.hits], (question, answer.reason)
    life.client.feedback(answer.recall, used=(id,), perspective=perspective)


def test_fifty_days_of_one_user_T2_T3_T5_T6_T9_T13_Q6_R7(life: Life) -> None:
    for agent, perspective in AGENTS.items():
        life.client.open_agent(agent, perspectives=(perspective,))
    used: dict[str, str] = {}
    unused: dict[str, str] = {}
    told: dict[str, str] = {}
    lessons: dict[str, dict[str, str]] = {}
    for project in PROJECTS:
        used[project] = life.remember(USED.format(project=project), project)
        unused[project] = life.remember(UNUSED.format(project=project), project)
        told[project] = life.remember(TOLD.format(project=project), project)
        texts = {name: text.format(project=project) for name, text in LESSONS.items()}
        lessons[project] = {name: life.remember(text, project) for name, text in texts.items()}
    pinned = life.remember("My spare key lies with Halvard in flat nine.")
    principle = life.remember("Never force-push to a shared branch.")
    life.settle()
    for project in PROJECTS:
        for perspective, id in lessons[project].items():
            life.client.learn(id, perspective, f"this is what matters for {perspective}")
    life.client.pin(pinned)
    life.client.pin(principle, principle=True)
    profiles: dict[str, list[str]] = {project: [] for project in PROJECTS}
    for day in range(DAYS):
        life.clock[0] += DAY
        for place, project in enumerate(PROJECTS):
            life.remember(news(day + 7 * place), project)
            profiles[project].append(task(life, project, day))
            if day % 2 == 0:
                use(life, project, "reviewer", KEPT.format(project=project), used[project])
                use(life, project, "reviewer", ASKED.format(project=project), lessons[project]["review"])
                use(life, project, "tuner", ASKED.format(project=project), lessons[project]["speed"])
        life.settle()
    for project in PROJECTS:
        kept, gone = life.record(used[project]), life.record(unused[project])
        assert kept.status == "active" and kept.signal.access_count >= 20 and kept.signal.strength > 1.0, kept
        assert kept.signal.level > gone.signal.level == 0
        assert gone.status == "archived" or gone.signal.strength < 0.3, gone
        flagged = ["checks licences" in text for text in profiles[project]]
        assert all(flagged[:10]) and sum(flagged[-20:]) < 10, "a line that is told and not used gives way, and fades"
        assert all("PostgreSQL" in text for text in profiles[project]), "one that is used stays"
        assert life.record(told[project]).signal.strength < 0.6
        first: dict[str, bool] = {}
        for agent, perspective in AGENTS.items():
            cwd = life.folders[project]
            answer = life.client.recall(ASKED.format(project=project), cwd=cwd, agent=agent, perspective=perspective)
            order = [hit.record.id for hit in answer.hits]
            first[agent] = order.index(lessons[project]["review"]) < order.index(lessons[project]["speed"])
        assert first == {"reviewer": True, "tuner": False}, project
    for id in (pinned, principle):
        assert life.record(id).status == "active"
