"""What became of the tasks of agents, and which agent fits a task (O1, O2)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .request_fields import Request

TaskOutcome = Literal[
    "as_is_checked",
    "as_is",
    "minor",
    "major",
    "redo",
    "refused",
    "failed",
    "rerouted",
    "interrupted",
    "silent",
    "running",
]
"""What became of a task: its lines stayed and checks passed; its lines stayed; a few, some or most of them are gone;
the user refused a call; the call failed; another agent got the task; the user interrupted it; nothing tells; it is
under way."""

WEIGHTS: dict[TaskOutcome, float] = {
    "as_is_checked": 1.0,
    "as_is": 0.5,
    "minor": 0.3,
    "major": -0.5,
    "redo": -1.0,
    "refused": -1.0,
    "failed": -1.0,
    "rerouted": -1.0,
    "interrupted": -1.0,
    "silent": 0.0,
    "running": 0.0,
}

OUTCOME_WORDS: dict[TaskOutcome, str] = {
    "as_is_checked": "kept as it was, checks passed",
    "as_is": "kept as it was",
    "minor": "minor changes",
    "major": "major changes",
    "redo": "done again",
    "refused": "refused",
    "failed": "failed",
    "rerouted": "given to another agent",
    "interrupted": "interrupted",
    "silent": "nothing tells",
    "running": "under way",
}
"""The outcomes as people read them."""

USER_WEIGHT = 2.0
"""The word of the user counts so many times as much as what memd observed."""

Rating = Literal["as-is", "minor", "major", "redo", "failed"]

RATED: dict[Rating, TaskOutcome] = {
    "as-is": "as_is_checked",
    "minor": "minor",
    "major": "major",
    "redo": "redo",
    "failed": "failed",
}
"""The outcomes that a user may tell."""

AnyAgent = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
"""The name of an agent as its host gives it, such as "plugin:reviewer"; only one that is a `Name` has a memory."""

Task = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class AgentOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An outcome of an agent's task. `at`: when the task was given; `document`, `turn`: where; `by`: who tells it;
    `task`: its first words in the session, "" if they are gone."""

    at: str
    document: str
    turn: str
    outcome: TaskOutcome
    weight: float
    by: Literal["memd", "user"] = "memd"
    perspective: str = ""
    task: str = ""


class ExplainAgent(Request, tag="explain_agent", frozen=True, kw_only=True):
    """Ask for the outcomes of an agent's tasks (O2)."""

    agent: AnyAgent


class AgentOutcomes(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `explain_agent` and `rate_task`: the outcomes, the newest first."""

    agent: str
    outcomes: tuple[AgentOutcome, ...] = ()


class RateTask(Request, tag="rate_task", frozen=True, kw_only=True):
    """Store what the user says became of a task (O2). `session`: its name or the beginning of it; `turn`: the task, ""
    for the agent's last one there; `outcome`: "" takes back what the user said."""

    agent: AnyAgent
    session: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    turn: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    outcome: Rating | Literal[""] = ""
    perspective: Annotated[str, msgspec.Meta(max_length=100)] = ""


class RankAgents(Request, tag="rank_agents", frozen=True, kw_only=True):
    """Ask which agent fits a task (O1). `agents`: these alone, otherwise all with a memory or an outcome."""

    task: Task
    agents: Annotated[tuple[AnyAgent, ...], msgspec.Meta(max_length=64)] = ()


class RankedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent in a ranking. `score`: expected share of tasks that end well; `low`, `high`: its 80 % interval; `n`:
    outcomes of similar tasks; `n_eff`: what they count together; `by_role`: they count too little, so that the role
    decides; `role_fit`: of the role to the task, in [0, 1]; `recent`: mean weight of the last five outcomes of any
    task; `running`: tasks under way. The last two do not change the score."""

    agent: str
    score: float
    low: float
    high: float
    n: int
    n_eff: float
    by_role: bool
    role_fit: float
    recent: float = 0.0
    running: int = 0


class AgentRanking(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `rank_agents`: the best one first. The host chooses."""

    agents: tuple[RankedAgent, ...] = ()
