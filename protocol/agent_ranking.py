"""The ranking of agents for a task (O1): a prior from the role, and the outcomes of similar tasks. Pure, for the daemon
and for the simulation that measures it.

An agent's chance to do a task well is the mean of Beta(1 + s + good, 2 - s + bad): s in [0, 1] tells how its role fits
the task, good and bad are the weights of its outcomes, each by a kernel of the similarity of its task.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

FAR, SAME = 0.3, 0.65
"""Cosines of two tasks up to which an outcome of one says nothing of the other, and from which it counts in full. Of
requests for one procedure half have a cosine below 0.46, a quarter above 0.63; of others a quarter above 0.39."""

ROLE_FAR, ROLE_NEAR = 0.1, 0.5
"""Cosines of role and task that count as no fit and as a whole one."""

ENOUGH = 3.0
"""Effective outcomes below which the role decides for the most part."""

Z_80 = 1.2816
"""Standard deviations on each side of the mean that hold 80 % of a normal distribution."""

RECENT_HALF, RUNNING_COST = 0, 0.0
"""Outcomes after which one counts half, 0 for never; what each task under way takes from the score. The simulation
(`memd bench learn/agents`) found no gain in either, so both are off."""


class PastTask(NamedTuple):
    """An outcome of an agent's task. `similarity`: cosine with the task that is asked for; `weight`: in [-2, 2]; `age`:
    how many outcomes of the agent are newer."""

    similarity: float
    weight: float
    age: int = 0


class RankCandidate(NamedTuple):
    """An agent. `role_cosine`: of its role and the task; `running`: tasks under way."""

    name: str
    role_cosine: float
    past: Sequence[PastTask] = ()
    running: int = 0


class Rank(NamedTuple):
    """A candidate with its score. `low`, `high`: the 80 % interval; `n`, `n_eff`: number of outcomes of similar tasks,
    and what they count together."""

    name: str
    score: float
    low: float
    high: float
    n: int
    n_eff: float
    role_fit: float

    @property
    def by_role(self) -> bool:
        """Whether the role decides for the most part."""
        return self.n_eff < ENOUGH


def role_fit(cosine: float) -> float:
    """Return how a role fits a task, in [0, 1]."""
    return min(1.0, max(0.0, (cosine - ROLE_FAR) / (ROLE_NEAR - ROLE_FAR)))


def kernel(similarity: float) -> float:
    """Return what an outcome of a task counts for another task."""
    return min(1.0, (similarity - FAR) / (SAME - FAR)) ** 2 if similarity > FAR else 0.0


def ranked(
    candidates: Iterable[RankCandidate], *, half: int = RECENT_HALF, running_cost: float = RUNNING_COST
) -> list[Rank]:
    """Return the candidates, the best one first. `half`, `running_cost`: as `RECENT_HALF` and `RUNNING_COST`."""
    ranks = [_rank(candidate, half, running_cost) for candidate in candidates]
    return sorted(ranks, key=lambda rank: (-rank.score, rank.name))


def _rank(candidate: RankCandidate, half: int, running_cost: float) -> Rank:
    fit = role_fit(candidate.role_cosine)
    good, bad, n, effective = 1 + fit, 2 - fit, 0, 0.0
    for past in candidate.past:
        counts = kernel(past.similarity) * (0.5 ** (past.age / half) if half else 1.0)
        if counts and past.weight:
            n, effective = n + 1, effective + counts
            good += counts * max(past.weight, 0.0)
            bad += counts * max(-past.weight, 0.0)
    total = good + bad
    mean = good / total
    spread = Z_80 * math.sqrt(mean * (1 - mean) / (total + 1))
    return Rank(
        name=candidate.name,
        score=mean - running_cost * candidate.running,
        low=max(0.0, mean - spread),
        high=min(1.0, mean + spread),
        n=n,
        n_eff=effective,
        role_fit=fit,
    )
