"""Agents that are taught a handbook: what they answer at once, and over fifty days with a task each (O3)."""

from __future__ import annotations

import msgspec

from .measurement import BenchOptions, Curve, Figure, PartResult, at_least, at_most, share
from .temporary_daemon import empty_home, measure

FOLDER = "courses"
OWN, FOREIGN = 0.8, 0.2
"""Least share of its own handbook that an agent answers, and most of one that it was not taught."""


class TaughtAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that was taught. `own`, `other`: questions of its own and of the other handbook that it answered, by day
    of measurement; `untaught`: of its own before it was taught; `uses`: numbers of the shared records that its tasks
    use; `order_before`, `order_after`: the shared records as it finds them; `used`, `unused`, `sections`: states of its
    notes and of its course's sections at the end."""

    agent: str
    course: str
    questions: int
    foreign: int
    untaught: int
    own: tuple[int, ...]
    other: tuple[int, ...]
    by_budget: dict[str, int]
    uses: tuple[int, ...]
    order_before: tuple[int, ...]
    order_after: tuple[int, ...]
    used: tuple[str, ...]
    unused: tuple[str, ...]
    sections: tuple[str, ...]


class TaughtAgents(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of `teach-agents`. `days`: of the measurements."""

    days: tuple[int, ...]
    agents: tuple[TaughtAgent, ...]


def course(options: BenchOptions) -> PartResult:
    """Two agents that are taught different handbooks: questions answered, over fifty days with one task each."""
    folder = options.find(FOLDER).resolve()
    options.progress("fifty tasks of two agents")
    with empty_home() as (_, environment):
        lived = msgspec.json.decode(measure(environment, "teach-agents", str(folder)), type=TaughtAgents)
    total = sum(agent.questions for agent in lived.agents)
    figures: list[Figure] = []
    for budget in lived.agents[0].by_budget:
        right = sum(agent.by_budget[budget] for agent in lived.agents)
        figures.append(share(f"answered within {int(budget):,} tokens", right, total))
    for agent in lived.agents:
        figures += (
            share(f"{agent.agent}: own handbook, at its worst", min(agent.own), agent.questions, at_least(OWN)),
            share("  after fifty tasks", agent.own[-1], agent.questions),
            share("  untaught", agent.untaught, agent.questions, at_most(FOREIGN)),
            share("  the other handbook, at most", max(agent.other), agent.foreign, at_most(FOREIGN)),
            share("  used shared records among as many first, before", *_first(agent, agent.order_before)),
            share("  after fifty tasks", *_first(agent, agent.order_after)),
            share("  used notes kept", agent.used.count("active"), len(agent.used), at_least(1)),
            share("  unused notes archived", agent.unused.count("archived"), len(agent.unused), at_least(1)),
        )
    first, second = lived.agents
    figures.append(Figure("shared records at other places in their orders", _moved(first, second), target=at_least(1)))
    return PartResult(
        tuple(figures),
        shows_not="whether an agent's model reads the passages well; handbooks of more than 15 sections",
        curves=_curves(lived),
    )


def _first(agent: TaughtAgent, order: tuple[int, ...]) -> tuple[int, int]:
    """Return how many of the first records of an order are among those that an agent's tasks use, and of how many."""
    return len({*order[: len(agent.uses)]} & {*agent.uses}), len(agent.uses)


def _moved(first: TaughtAgent, second: TaughtAgent) -> int:
    places = {record: place for place, record in enumerate(second.order_after)}
    return sum(places.get(record) != place for place, record in enumerate(first.order_after))


def _curves(lived: TaughtAgents) -> tuple[Curve, ...]:
    over = "Questions answered within 600 tokens, over fifty days with one task each"
    curves: list[Curve] = []
    for agent in lived.agents:
        for name, right, total in (("own", agent.own, agent.questions), ("other", agent.other, agent.foreign)):
            points = tuple((float(day), each / total) for day, each in zip(lived.days, right, strict=True))
            curves.append(Curve(over, f"{agent.agent}, {name} handbook", points))
    return tuple(curves)
