"""A simulated host that gives 100 tasks to six agents: how many end well, by the way in which it chooses (O1).

Agents have a hidden skill for each of four kinds of task. The host learns half of the outcomes, each three tasks later,
and a tenth of these are wrong. Similarities of tasks are cosines of random vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...protocol.agent_outcomes import WEIGHTS, TaskOutcome
from ...protocol.agent_ranking import PastTask, RankCandidate, ranked
from .measurement import BenchOptions, Figure, PartResult, at_least

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AGENTS, KINDS, TASKS = 6, 4, 100
DIMENSION = 24
COMMON, KIND = 0.5, 0.46
"""Length of what all tasks of a project share, and of what those of a kind share; the rest of a task is its own. Two
requests for one procedure then have a cosine of 0.46 in the mean, others 0.25, as in the invented weeks of tests/data.
"""

CLEAR_COMMON, CLEAR_KIND = 0.4, 0.8
"""The same for tasks that are told in more words: 0.8 and 0.16."""

ROLE, ROLE_FITS, ROLE_SPREAD = 0.13, 0.3, 0.08
"""Mean cosine of a role and a task, what a role that says much adds for a kind that the agent does best, and the
deviation: as the package's own model tells for eight roles and fifteen tasks in plain words."""

WORST, BEST = 0.2, 0.95
"""Chances of an agent to do a task of some kind well lie between these."""

SEEN, WRONG, LATER = 0.5, 0.1, 3
WINDOWS = {"1-20": slice(0, 20), "21-50": slice(20, 50), "51-100": slice(50, 100)}
LEAST, GAIN = -0.02, 0.05
"""What the ranking may lose against roles alone, and has to gain over the win rate where roles say little."""

_GOOD: tuple[TaskOutcome, ...] = ("as_is_checked", "as_is", "minor")
_BAD: tuple[TaskOutcome, ...] = ("major", "redo", "redo")

Roles = Literal["much", "little"]


class SeenTask(NamedTuple):
    """An outcome that the host learnt: its task, the agent, and the weight."""

    task: int
    agent: int
    weight: float


class ChoiceWorld:
    """One draw: skills, tasks, and what the host would see. `clear`: tasks are told in more words;
    `changes`: the skills are others from the middle on."""

    def __init__(
        self, random: np.random.Generator, roles: Roles, *, clear: bool = False, changes: bool = False
    ) -> None:
        kinds = _units(random.standard_normal((KINDS, DIMENSION)))
        self.kind = random.integers(0, KINDS, TASKS)
        self.skills = random.uniform(WORST, BEST, (2 if changes else 1, AGENTS, KINDS))
        common = _units(random.standard_normal((1, DIMENSION)))
        of_all, of_kind = (CLEAR_COMMON, CLEAR_KIND) if clear else (COMMON, KIND)
        tasks = _mixed(random, of_all * common + of_kind * kinds[self.kind])
        fits = (self.skills[0][:, self.kind] - WORST) / (BEST - WORST) if roles == "much" else 0.0
        self.similar: NDArray[np.float64] = tasks @ tasks.T
        self.role: NDArray[np.float64] = random.normal(ROLE + ROLE_FITS * fits, ROLE_SPREAD, (AGENTS, TASKS))
        self.luck, self.seen, self.lie = random.random((3, TASKS))
        self.degree = random.integers(0, len(_GOOD), TASKS)
        self.any = random.integers(0, AGENTS, TASKS)

    def is_done(self, task: int, agent: int) -> bool:
        """Whether an agent does a task well."""
        now = self.skills[-1] if task >= TASKS // 2 else self.skills[0]
        return bool(self.luck[task] < now[agent, self.kind[task]])

    def told(self, task: int, agent: int) -> SeenTask | None:
        """Return what the host learns of a task, None for nothing."""
        if self.seen[task] >= SEEN:
            return None
        outcomes = _GOOD if self.is_done(task, agent) != (self.lie[task] < WRONG) else _BAD
        return SeenTask(task, agent, WEIGHTS[outcomes[self.degree[task]]])


def _units(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows / (rows**2).sum(axis=1, keepdims=True) ** 0.5


def _mixed(random: np.random.Generator, shared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return vectors of length 1 that have a shared part, and a part of their own."""
    own = (1 - (shared**2).sum(axis=1, keepdims=True)).clip(0.05) ** 0.5
    return _units(shared + own * _units(random.standard_normal(shared.shape)))


Choose = Callable[[ChoiceWorld, int, Sequence[SeenTask], Sequence[int]], int]
"""Chooses an agent for a task, from what the host has seen and the agents of the tasks under way."""


def _at_random(world: ChoiceWorld, task: int, seen: Sequence[SeenTask], running: Sequence[int]) -> int:
    return int(world.any[task])


def _by_win_rate(world: ChoiceWorld, task: int, seen: Sequence[SeenTask], running: Sequence[int]) -> int:
    def rate(agent: int) -> float:
        own = [past.weight > 0 for past in seen if past.agent == agent]
        return (sum(own) + 1) / (len(own) + 2)

    return max(range(AGENTS), key=rate)


def _by_rank(*, past: bool = True, known: bool = False, half: int = 0, running_cost: float = 0.0) -> Choose:
    def choose(world: ChoiceWorld, task: int, seen: Sequence[SeenTask], running: Sequence[int]) -> int:
        candidates = [
            RankCandidate(
                name=str(agent),
                role_cosine=float(world.role[agent, task]),
                past=_past(world, task, seen, agent, known) if past else (),
                running=running.count(agent),
            )
            for agent in range(AGENTS)
        ]
        return int(ranked(candidates, half=half, running_cost=running_cost)[0].name)

    return choose


def _past(world: ChoiceWorld, task: int, seen: Sequence[SeenTask], agent: int, known: bool) -> list[PastTask]:
    """Return the outcomes of an agent. `known`: with the kinds of the tasks in place of their similarity."""
    similar = world.kind == world.kind[task] if known else world.similar[task]
    own = [each for each in reversed(seen) if each.agent == agent]
    return [PastTask(float(similar[each.task]), each.weight, age) for age, each in enumerate(own)]


RATE, ROLES, RANKING, RECENT = "by win rate", "by role alone", "by ranking", "by ranking, recent ones first"

STRATEGIES: dict[str, Choose] = {
    "at random": _at_random,
    RATE: _by_win_rate,
    ROLES: _by_rank(past=False),
    RANKING: _by_rank(),
    RECENT: _by_rank(half=10),
    "by ranking, if it knew the kinds": _by_rank(known=True),
    "by ranking, less if busy": _by_rank(running_cost=0.05),
}


class ChoiceSetting(NamedTuple):
    """Worlds of one sort."""

    name: str
    roles: Roles
    clear: bool = False
    changes: bool = False
    strategies: Sequence[str] = tuple(STRATEGIES)


SETTINGS = (
    ChoiceSetting("roles say much", "much"),
    ChoiceSetting("roles say little", "little"),
    ChoiceSetting("roles say little, tasks in more words", "little", clear=True),
    ChoiceSetting("skills change after 50", "little", clear=True, changes=True, strategies=(RATE, RANKING, RECENT)),
)


def agents(options: BenchOptions) -> PartResult:
    """Tasks that end well, by the way in which a host chooses among agents."""
    import numpy as np

    figures: list[Figure] = []
    for setting in SETTINGS:
        random = np.random.default_rng(options.seed)
        count = 60 if options.quick else 400
        worlds = [
            ChoiceWorld(random, setting.roles, clear=setting.clear, changes=setting.changes) for _ in range(count)
        ]
        shares = {name: _shares(worlds, STRATEGIES[name]) for name in setting.strategies}
        figures += _figures(setting, shares, count)
    return PartResult(tuple(figures), "hosts that choose otherwise; real agents, whose skills nobody knows")


def _shares(worlds: Sequence[ChoiceWorld], choose: Choose) -> list[float]:
    """Return the share of tasks that end well in each window."""
    runs = [_run(world, choose) for world in worlds]
    return [fmean(done for run in runs for done in run[window]) for window in WINDOWS.values()]


def _run(world: ChoiceWorld, choose: Choose) -> list[bool]:
    seen: list[SeenTask] = []
    chosen: list[int] = []
    for task in range(TASKS):
        known = task - LATER
        if known >= 0 and (told := world.told(known, chosen[known])):
            seen.append(told)
        chosen.append(choose(world, task, seen, chosen[-LATER:]))
    return [world.is_done(task, agent) for task, agent in enumerate(chosen)]


def _figures(setting: ChoiceSetting, shares: dict[str, list[float]], worlds: int) -> Iterator[Figure]:
    name = setting.name
    for strategy, values in shares.items():
        for window, value in zip(WINDOWS, values, strict=True):
            yield Figure(f"{name}, {strategy}, tasks {window}", value, samples=worlds)
    if setting.changes:
        return
    gained = zip(WINDOWS, shares[RANKING], shares[ROLES], shares[RATE], strict=True)
    for window, value, by_role, by_rate in gained:
        yield Figure(f"{name}, gain over roles, tasks {window}", value - by_role, "", 0, worlds, at_least(LEAST))
        if setting.roles == "little":
            yield Figure(f"{name}, gain over win rate, tasks {window}", value - by_rate, "", 0, worlds, at_least(GAIN))
