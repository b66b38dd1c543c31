"""Edits of skills whose best steps are known: which the held-out rounds accept, and which of these are worse (K3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

import msgspec

from ..clients.bench.repeated_work import OwnerHistory, captured
from ..daemon.services.skills.edits import applied
from ..daemon.services.skills.mining import procedures
from ..daemon.services.skills.optimizer import SearchOptimizer
from ..daemon.services.skills.replay_gate import SESSIONS, UNITS, Replay, judged, replays, score
from ..daemon.services.skills.units import SessionEvents, work_units
from ..daemon.world import World
from ..protocol.errors import InvalidRequest
from ..protocol.places import Places

SEED = 7

TRIALS = 20
"""Draws of held-out sessions for each start of a procedure."""

LEAST_ROUNDS = UNITS + 3
"""Least good rounds of a procedure: held-out ones, two to learn from, and one that neither has."""


class RepeatedProcedure(NamedTuple):
    """A procedure: its steps, its good rounds, and steps of the same repository that none of its rounds has."""

    steps: tuple[str, ...]
    rounds: tuple[Replay, ...]
    foreign: tuple[str, ...]


class DrawnRounds(NamedTuple):
    """Rounds to learn from, rounds that judge, and the others. No session has rounds in two of them."""

    train: tuple[Replay, ...]
    held_out: tuple[Replay, ...]
    unseen: tuple[Replay, ...]


class EditTrial(NamedTuple):
    """How one draw ended. `plain`: a strictly better mean alone would have accepted the edits; `is_worse`: the edited
    steps fit the rounds outside the train set worse; `is_worse_unseen`: those that the gate did not see either."""

    start: str
    accepted: bool
    plain: bool
    is_worse: bool
    is_worse_unseen: bool


def edits_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`try-skill-edits FOLDER`: counts of trials by start, over the owners of a folder, the same each time."""
    if len(arguments) != 1:
        raise InvalidRequest("which owners?", hint="python -m memd.benchmarks try-skill-edits tests/data/owners")
    files = sorted(Path(arguments[0]).glob("[0-9]*.json"))
    tried = [procedure for file in files for procedure in _procedures(file)]
    chance = Random(SEED)
    trials = [trial for procedure in tried for trial in _trials(procedure, chance)]
    counts = {name: _counts([trial for trial in trials if trial.start == name]) for name in ("good", "missing", "junk")}
    return {"procedures": len(tried), "starts": counts}


def _counts(trials: Sequence[EditTrial]) -> dict[str, int]:
    return {
        "trials": len(trials),
        "accepted": sum(each.accepted for each in trials),
        "worse": sum(each.accepted and each.is_worse for each in trials),
        "worse_unseen": sum(each.accepted and each.is_worse_unseen for each in trials),
        "plain": sum(each.plain for each in trials),
        "plain_worse": sum(each.plain and each.is_worse for each in trials),
        "plain_worse_unseen": sum(each.plain and each.is_worse_unseen for each in trials),
    }


def _procedures(file: Path) -> Iterator[RepeatedProcedure]:
    """Yield the procedures of an owner's repositories that have enough good rounds."""
    owner = msgspec.json.decode(file.read_bytes(), type=OwnerHistory)
    by_repository: dict[str, list[SessionEvents]] = defaultdict(list)
    for session, events in captured(owner.sessions):
        by_repository[session.repository].append(SessionEvents(session.id, events))
    for sessions in by_repository.values():
        units = list(work_units(sessions))
        names = {step.name for unit in units for step in unit.steps}
        for procedure in procedures(units):
            rounds = replays(procedure.rounds)
            own = {step.name for each in procedure.rounds for step in each.steps}
            if len(rounds) >= LEAST_ROUNDS:
                steps = tuple(step.name for step in procedure.steps)
                yield RepeatedProcedure(steps, rounds, tuple(sorted(names - own)))


def _trials(procedure: RepeatedProcedure, chance: Random) -> Iterator[EditTrial]:
    for _ in range(TRIALS):
        for name, start in _starts(procedure, chance):
            yield _trial(name, start, _drawn(procedure.rounds, chance))


def _starts(procedure: RepeatedProcedure, chance: Random) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a skill as it was drafted, one that lacks a step, and one with a step that has nothing to do with it."""
    steps = procedure.steps
    place = chance.randrange(len(steps))
    yield "good", steps
    yield "missing", (*steps[:place], *steps[place + 1 :])
    place = chance.randrange(len(steps) + 1)
    yield "junk", (*steps[:place], chance.choice(procedure.foreign), *steps[place:])


def _drawn(rounds: Sequence[Replay], chance: Random) -> DrawnRounds:
    """Hold out sessions at random until the gate has enough rounds, and learn from half of the others."""
    sessions = list(dict.fromkeys(each.session for each in rounds))
    chance.shuffle(sessions)
    parts: tuple[list[Replay], list[Replay], list[Replay]] = ([], [], [])
    held_out, train, unseen = parts
    for count, session in enumerate(sessions):
        if len(held_out) < UNITS or count < SESSIONS:
            part = held_out
        else:
            part = train if len(train) <= len(unseen) else unseen
        part.extend(each for each in rounds if each.session == session)
    return DrawnRounds(tuple(train), tuple(held_out), tuple(unseen))


def _trial(name: str, start: tuple[str, ...], drawn: DrawnRounds) -> EditTrial:
    edits = SearchOptimizer().propose(start, [each.done for each in drawn.train])
    after = applied(start, edits)
    verdict = judged(start, after, drawn.held_out)
    return EditTrial(
        start=name,
        accepted=verdict.accepted,
        plain=verdict.mean_after > verdict.mean_before,
        is_worse=_is_worse(start, after, (*drawn.held_out, *drawn.unseen)),
        is_worse_unseen=_is_worse(start, after, drawn.unseen),
    )


def _is_worse(before: tuple[str, ...], after: tuple[str, ...], rounds: Sequence[Replay]) -> bool:
    return bool(rounds) and fmean(score(after, each.done) - score(before, each.done) for each in rounds) < 0
