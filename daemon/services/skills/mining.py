"""Finds the procedures that units of work repeat (K1).

A procedure is a set of own steps that several units share, with an order that most of them keep. Candidates are the
shared own steps of two units each; the one with most evidence goes first, and takes the candidates that share half of
its own steps with it. Its steps are those that `SHARE` of its rounds have, in the order of the majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from statistics import mean
from typing import NamedTuple

from .steps import StepSeen, SubCommands
from .units import WorkUnit

OWN, ROUNDS, SESSIONS, DAYS = 3, 3, 2, 2
"""Least own steps of a procedure, and least rounds, sessions and days in which it was done."""

AGREE = 0.75
"""Least mean share of rounds that keep the order of two steps."""

COMPLETE = 0.85
"""Least mean share of own steps that a round has: steps that stand together by chance are seldom all there."""

GAP = 3
"""Most other steps between two steps of a round."""

SHARE = 0.6
"""Share of rounds from which a step is part of the procedure; and least share of the own steps that a round has."""

MOST_UNITS, MOST_SETS = 1000, 400
"""Newest units of a pool that are read, and sets of own steps that are tried, those first that most pairs share."""


class Round(NamedTuple):
    """One time that a procedure was done: a unit, and its steps from the first to the last one of the procedure."""

    unit: WorkUnit
    steps: tuple[StepSeen, ...]


class DoneUnit(NamedTuple):
    """A unit, and the own steps that were done well in it."""

    unit: WorkUnit
    done: frozenset[str]


class ProcedureStep(NamedTuple):
    """A step of a procedure. `rounds`: how many have it; `seen`: how it was done in each."""

    name: str
    own: bool
    rounds: int
    seen: tuple[StepSeen, ...]


class Procedure(NamedTuple):
    """A repeated procedure. `agree`: the mean share of rounds that keep the order of two steps."""

    steps: tuple[ProcedureStep, ...]
    rounds: tuple[Round, ...]
    agree: float

    @property
    def own(self) -> frozenset[str]:
        return frozenset(step.name for step in self.steps if step.own)

    @property
    def complete(self) -> float:
        """The mean share of own steps that a round has."""
        own = [step.rounds for step in self.steps if step.own]
        return sum(own) / max(1, len(own) * len(self.rounds))

    @property
    def sessions(self) -> int:
        return len({each.unit.document for each in self.rounds})

    @property
    def days(self) -> int:
        return len({each.unit.day for each in self.rounds})


def procedures(units: Iterable[WorkUnit]) -> list[Procedure]:
    """Return the procedures of a pool's units, those with most rounds first."""
    newest = list(units)[-MOST_UNITS:]
    subs = SubCommands(unit.steps for unit in newest)
    named = [unit._replace(steps=_collapsed(map(subs.named, unit.steps))) for unit in newest]
    usable = [DoneUnit(unit, _done(unit.steps)) for unit in named if unit.end != "bad"]
    found: list[Procedure] = []
    for shared in _shared(usable):
        if any(_overlap(shared, known.own) >= 0.5 for known in found):
            continue
        procedure = _procedure(usable, shared)
        if procedure and not any(_overlap(procedure.own, known.own) >= 0.5 for known in found):
            found.append(procedure)
    return sorted(found, key=lambda each: (-len(each.rounds), sorted(each.own)))


def _collapsed(steps: Iterable[StepSeen]) -> tuple[StepSeen, ...]:
    """Return steps without repetitions of the one before; the last one of a repetition counts."""
    kept: list[StepSeen] = []
    for step in steps:
        if kept and kept[-1].name == step.name:
            kept[-1] = step
        else:
            kept.append(step)
    return tuple(kept)


def _done(steps: Iterable[StepSeen]) -> frozenset[str]:
    """Return the own steps that were done well."""
    return frozenset([step.name for step in steps if step.own and step.outcome != "error"])


def _shared(units: Sequence[DoneUnit]) -> list[frozenset[str]]:
    """Return the sets of own steps that two units share, those first that explain most."""
    several = [(each.done, each.unit.document) for each in units if len(each.done) >= OWN]
    pairs = (one & other for (one, _), (other, _) in combinations(several, 2))
    candidates = Counter(shared for shared in pairs if len(shared) >= OWN)
    weights: dict[frozenset[str], float] = {}
    for names, _ in candidates.most_common(MOST_SETS):
        holders = [document for each, document in several if names <= each]
        if len(holders) >= ROUNDS and len(set(holders)) >= SESSIONS:
            weights[names] = len(holders) * (len(names) - OWN + 1)
    return sorted(weights, key=lambda names: (-weights[names], sorted(names)))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))


def _procedure(units: Sequence[DoneUnit], own: frozenset[str]) -> Procedure | None:
    rounds = [each for unit, done in units if _is_enough(done, own) for each in _rounds(unit, own)]
    if len(rounds) < ROUNDS:
        return None
    counts = Counter(name for each in rounds for name in {step.name for step in each.steps})
    kept = {name for name, count in counts.items() if count >= SHARE * len(rounds)}
    places = [_places(each, kept) for each in rounds]
    order, agree = _ordered(kept, places)
    seen = {name: tuple(s for each in rounds for s in each.steps if s.name == name) for name in order}
    steps = tuple(ProcedureStep(name, seen[name][0].own, counts[name], seen[name]) for name in order)
    found = Procedure(steps, tuple(rounds), agree)
    is_one = len(found.own) >= OWN and len(rounds) >= ROUNDS and found.sessions >= SESSIONS and found.days >= DAYS
    return found if is_one and agree >= AGREE and found.complete >= COMPLETE else None


def _rounds(unit: WorkUnit, own: frozenset[str]) -> Iterator[Round]:
    """Yield the rounds of a unit: stretches without a gap that have enough of the own steps, each step once."""
    stretch: list[StepSeen] = []
    since = 0
    for step in (*unit.steps, None):
        is_again = step is not None and step.name in own and _is_complete(stretch, own, step.name)
        if step is None or since > GAP or is_again:
            yield from _round(unit, stretch, own)
            stretch, since = [], 0
        if step is not None and (stretch or step.name in own):
            stretch.append(step)
            since = 0 if step.name in own else since + 1


def _is_complete(stretch: Sequence[StepSeen], own: frozenset[str], name: str) -> bool:
    """Whether a step begins the next round: all own steps were done well, and this is the one that it began with."""
    done = {step.name for step in stretch if step.outcome != "error"}
    return own <= done and stretch[0].name == name


def _round(unit: WorkUnit, stretch: Sequence[StepSeen], own: frozenset[str]) -> Iterator[Round]:
    if _is_enough(_done(stretch), own):
        last = max(place for place, step in enumerate(stretch) if step.name in own)
        yield Round(unit, tuple(stretch[: last + 1]))


def _is_enough(done: frozenset[str], own: frozenset[str]) -> bool:
    """Whether enough of the own steps of a procedure were done."""
    return len(done & own) >= max(2, SHARE * len(own))


def _places(each: Round, kept: set[str]) -> dict[str, int]:
    """Return where each step was done well in a round, the last time if it was repeated."""
    return {step.name: place for place, step in enumerate(each.steps) if step.name in kept}


def _ordered(names: Iterable[str], places: Sequence[dict[str, int]]) -> tuple[list[str], float]:
    """Return names by the majority of their precedences, and how much of the rounds agrees with it."""
    names = sorted(names)
    before: dict[tuple[str, str], float] = {}
    for one, other in combinations(names, 2):
        both = [each[one] < each[other] for each in places if one in each and other in each]
        before[one, other] = mean(both) if both else 0.5
        before[other, one] = 1 - before[one, other]
    wins = {name: sum(before[name, other] for other in names if other != name) for name in names}
    order = sorted(names, key=lambda name: (-wins[name], name))
    agree = [before[one, other] for one, other in combinations(order, 2)]
    return order, mean(agree) if agree else 1.0
