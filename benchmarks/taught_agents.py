"""Two agents that are taught different handbooks, and fifty days with one task each, by a daemon whose clock is driven:
what each answers, how each orders what both read, what each keeps (O3, Q6, R7, T6)."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec

from ..clients.bench.session_data import new_repository
from ..clients.bench.taught_agents import TaughtAgent, TaughtAgents
from ..clients.importers.course_file import Course, read_course
from ..clients.python.client import Client
from ..daemon.config import Config
from ..daemon.server.home import check_home
from ..daemon.server.startup import Daemon
from ..daemon.services.courses.course_parts import words_in
from ..daemon.world import World, real_world
from ..protocol.courses import TEST_TOKENS, CourseQuestion
from ..protocol.errors import InvalidRequest
from ..protocol.event import Origin, Said, SessionEnded, SessionStarted
from ..protocol.instant import from_micros
from ..protocol.places import Places
from ..protocol.record import Status
from ..protocol.request import Remember

DAY = 86_400_000_000
TASKS, EVERY = 50, 5
"""Days with one task of each agent, and days between two measurements."""

BUDGETS = (300, TEST_TOKENS, 1500)
SETTLED_S = 120.0

SHARED = (
    "Deliveries to the quay come before the first crossing of the day.",
    "Deliveries of bread for the saloon go in the grey crates with lids.",
    "Deliveries to the ship are signed for by whoever stands at the ramp.",
    "Deliveries in frost need the heated van of the workshop.",
    "Deliveries on Sundays are ordered on Thursday by telephone.",
    "Deliveries for the crew mess are paid from another account.",
    "Deliveries that come late wait in the cold store of the terminal.",
    "Deliveries with eggs must not stand below heavy boxes.",
)
"""Records of a project that both agents read."""

SHARED_QUESTION = "What do I have to know about the deliveries?"
LEFT_ALONE = (
    "The wall calendar in the corridor shows lighthouses.",
    "A visitor once asked whether the building has a lift.",
    "The radio in the corner was repaired by a cousin of the porter.",
)
"""Records of each agent's own memory that no task uses."""


class TaskAgent(NamedTuple):
    """An agent: its handbook, its perspective, the shared records that its tasks use, and notes that they use."""

    name: str
    file: str
    perspective: str
    uses: range
    notes: tuple[str, ...]


AGENTS = (
    TaskAgent(
        "baker",
        "bakery.md",
        "freshness",
        range(4),
        (
            "The miller Aldous answers before seven only.",
            "Sourdough in the blue tub rises faster than in the white one.",
        ),
    ),
    TaskAgent(
        "mate",
        "ferry.yaml",
        "safety",
        range(4, 8),
        ("The winch of the ramp jams if it is not oiled on Saturdays.", "Captain Brun wants the log in pencil."),
    ),
)


def agents_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`teach-agents FOLDER`: the fifty days with the two handbooks of a folder, in an empty home."""
    if len(arguments) != 1:
        raise InvalidRequest("which courses?", hint="python -m memd.benchmarks teach-agents tests/data/courses")
    return msgspec.to_builtins(fifty_tasks(places, Path(arguments[0])))


def fifty_tasks(places: Places, folder: Path) -> TaughtAgents:
    """Return what became of the two agents. `places`: of an empty home; `folder`: of the handbooks."""
    clock = [real_world().now() - (TASKS + 5) * DAY]
    with _daemon(places, clock) as client:
        return _Life(client, clock, folder, _project(places.data.parent / "harbour")).lived()


def _project(folder: Path) -> str:
    """Make a repository with a commit, and return its path."""
    path = new_repository(folder)
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    commit = ("commit", "-q", "--allow-empty", "-m", "begin")
    subprocess.run(["git", "-C", path, *identity, *commit], check=True)
    return path


@contextmanager
def _daemon(places: Places, clock: list[int]) -> Generator[Client]:
    real = real_world()
    check_home(places)
    daemon = Daemon(places, Config(), World(lambda: clock[0], real.monotonic, real.token))
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        with Client(places, 20_000) as client:
            yield client
    finally:
        daemon.stop()
        thread.join(30)


class _Life:
    """The days of the two agents."""

    def __init__(self, client: Client, clock: list[int], folder: Path, cwd: str) -> None:
        self._client, self._clock, self._cwd = client, clock, cwd
        self._courses = {agent.name: read_course(folder / agent.file) for agent in AGENTS}
        self._shared: list[str] = []
        self._notes: dict[str, list[str]] = {}
        self._left: dict[str, list[str]] = {}
        self._learnt: set[tuple[str, str]] = set()

    def lived(self) -> TaughtAgents:
        untaught = {agent.name: self._begin(agent) for agent in AGENTS}
        self._shared = [self._remember(text, "project") for text in SHARED]
        self._settle()
        first = {agent.name: self._order(agent) for agent in AGENTS}
        days: list[int] = []
        own: dict[str, list[int]] = {agent.name: [] for agent in AGENTS}
        other: dict[str, list[int]] = {agent.name: [] for agent in AGENTS}
        for day in range(TASKS + 1):
            if day:
                self._clock[0] += DAY
                for agent in AGENTS:
                    self._task(agent, day)
                self._settle()
            if day % EVERY == 0:
                days.append(day)
                for agent, foreign in zip(AGENTS, AGENTS[::-1], strict=True):
                    own[agent.name].append(self._right(agent.name, agent.name, TEST_TOKENS))
                    other[agent.name].append(self._right(agent.name, foreign.name, TEST_TOKENS))
        outcomes = tuple(
            TaughtAgent(
                agent=agent.name,
                course=self._courses[agent.name].title,
                questions=len(_questions(self._courses[agent.name])),
                foreign=len(_questions(self._courses[AGENTS[0].name if agent is AGENTS[1] else AGENTS[1].name])),
                untaught=untaught[agent.name],
                own=tuple(own[agent.name]),
                other=tuple(other[agent.name]),
                by_budget={str(budget): self._right(agent.name, agent.name, budget) for budget in BUDGETS},
                uses=tuple(agent.uses),
                order_before=first[agent.name],
                order_after=self._order(agent),
                used=self._statuses(self._notes[agent.name]),
                unused=self._statuses(self._left[agent.name]),
                sections=self._sections(agent.name),
            )
            for agent in AGENTS
        )
        return TaughtAgents(days=tuple(days), agents=outcomes)

    def _begin(self, agent: TaskAgent) -> int:
        """Open an agent, ask it untaught, and teach it; return how much it answered."""
        self._client.open_agent(agent.name, perspectives=(agent.perspective,))
        pool, course = f"agent/{agent.name}", self._courses[agent.name]
        self._notes[agent.name] = [self._remember(text, pool) for text in agent.notes]
        self._left[agent.name] = [self._remember(text, pool) for text in LEFT_ALONE]
        self._settle()
        untaught = self._right(agent.name, agent.name, TEST_TOKENS)
        self._client.teach(agent.name, course.title, course.chapters)
        self._test(agent.name)
        return untaught

    def _remember(self, text: str, pool: str) -> str:
        origin = Origin(host="cli", session="notes", cwd=self._cwd)
        noted = Remember(text=text, turn=f"{pool} {text}", at=from_micros(self._clock[0]), origin=origin, pool=pool)
        return self._client.remember(noted).record.id

    def _settle(self) -> None:
        self._client.distil()
        end = time.monotonic() + SETTLED_S
        while self._client.status().pending and time.monotonic() < end:
            time.sleep(0.02)

    def _test(self, agent: str) -> None:
        end = time.monotonic() + SETTLED_S
        while not self._client.ask_courses(agent).is_read and time.monotonic() < end:
            time.sleep(0.05)

    def _task(self, agent: TaskAgent, day: int) -> None:
        """One task: a session in the project that uses a shared record and a note; then what is due is asked."""
        at = from_micros(self._clock[0])
        origin = Origin(host="claude-code", session=f"{agent.name}-{day}", cwd=self._cwd, agent=agent.name)
        self._client.capture(origin, (SessionStarted(turn="session-start", at=at),))
        self._use(agent, SHARED_QUESTION, self._shared[agent.uses[day % len(agent.uses)]])
        self._use(agent, agent.notes[day % len(agent.notes)], self._notes[agent.name][day % len(agent.notes)])
        said = Said(turn="1", at=at, role="user", text="Please go on.")
        self._client.capture(origin, (said, SessionEnded(turn="session-end", at=at)))
        self._test(agent.name)

    def _use(self, agent: TaskAgent, question: str, id: str) -> None:
        """An agent asks, and reports one record of the answer as used; the first time also what it learnt from it."""
        answer = self._client.recall(
            question, cwd=self._cwd, agent=agent.name, perspective=agent.perspective, limit=20, budget_tokens=4000
        )
        if id in [hit.record.id for hit in answer.hits]:
            taught = None if (agent.name, id) in self._learnt else {id: f"It decides what {agent.perspective} needs."}
            self._client.feedback(answer.recall, used=(id,), perspective=agent.perspective, learned=taught)
            self._learnt.add((agent.name, id))

    def _order(self, agent: TaskAgent) -> tuple[int, ...]:
        """Return the shared records in the order in which an agent finds them."""
        answer = self._client.recall(
            SHARED_QUESTION,
            cwd=self._cwd,
            agent=agent.name,
            perspective=agent.perspective,
            limit=20,
            budget_tokens=4000,
        )
        found = (hit.record.id for hit in answer.hits)
        return tuple(self._shared.index(id) for id in found if id in self._shared)

    def _right(self, agent: str, of: str, budget: int) -> int:
        """Return how many questions of an agent's course another one, or itself, answers within a budget."""
        right = 0
        for question in _questions(self._courses[of]):
            hits = self._client.recall(question.question, agent=agent, budget_tokens=budget).hits
            words = "\n".join(f"{hit.record.description}\n{hit.record.provenance.quote}" for hit in hits)
            right += set(words_in(words, question.keywords)) == set(question.keywords)
        return right

    def _statuses(self, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._client.get(id).status for id in ids)

    def _sections(self, agent: str) -> tuple[str, ...]:
        page = self._client.list(pools=[f"agent/{agent}"], statuses=get_args(Status), limit=500)
        return tuple(record.status for record in page.records if "course" in record.tags)


def _questions(course: Course) -> list[CourseQuestion]:
    return [question for chapter in course.chapters for question in chapter.questions]
