"""How a placed skill is used, and what is known of it (K2). Pure: no store, no clock, no file.

A skill is used when an agent or the user calls it by its name, or when an agent reads its file. When most of its own
steps were done in order without that, its trigger was missed: that counts, but it is no success of the skill.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from ....protocol.skills import Rung, SkillRevision, SkillUse, UseKind
from .replay_gate import common
from .units import WorkUnit

FOLLOWED = 0.6
"""Share of the own steps, in order, from which they were done without the skill."""

USES, SESSIONS, RATE, LAST, FALLEN = 3, 2, 0.6, 5, 0.4
"""Least uses, sessions and rate of good ends of a verified skill; of how many last known ends a rate below the last
number makes it fall."""

UNUSED, MISSED = 20, 5
"""Sessions without a use, from which a bad rate retires a skill; times that its steps were done without it."""

RUNGS: tuple[Rung, ...] = ("placed", "verified", "honed", "tuned")


def uses(units: Iterable[WorkUnit], name: str, own: Sequence[str], since: int = 0) -> Iterator[SkillUse]:
    """Yield the uses of a skill, one of a unit at most. `own`: its own steps; `since`: microseconds, from which they
    count."""
    for unit in units:
        if unit.at >= since and (how := _how(unit, name, own)):
            yield SkillUse(document=unit.document, turn=unit.turns[0], day=unit.day, how=how, end=unit.end, at=unit.at)


def _how(unit: WorkUnit, name: str, own: Sequence[str]) -> UseKind | None:
    if name in unit.called:
        return "called"
    if name in unit.read:
        return "read"
    done = [step.name for step in unit.steps if step.outcome != "error"]
    return "without" if len(own) > 1 and common(own, done) >= FOLLOWED * len(own) else None


def rate(history: Sequence[SkillUse]) -> float:
    """Return the share of good ends, by the rule of succession (Laplace): (1 + good) / (2 + good + bad)."""
    good, bad = (sum(use.end == end for use in history) for end in ("good", "bad"))
    return (1 + good) / (2 + good + bad)


def used(history: Iterable[SkillUse]) -> list[SkillUse]:
    """Return the uses without those that did the steps without the skill."""
    return [use for use in history if use.how != "without"]


def rung(history: Sequence[SkillUse], revisions: Sequence[SkillRevision]) -> tuple[Rung, str]:
    """Return a skill's rung and why it fell, "" if it did not."""
    real = used(history)
    stands: Rung = "placed"
    if is_verified(real):
        stands = "verified"
        edited = list(_edits(revisions))
        if edited and _is_better_since(real, edited[-1]):
            stands = "honed"
        if stands == "honed" and any(what.by == "tuned" for what in revisions):
            stands = "tuned"
    last = [use for use in real if use.end != "unknown"][-LAST:]
    good = sum(use.end == "good" for use in last)
    if len(last) == LAST and good < FALLEN * LAST and stands != "placed":
        return RUNGS[RUNGS.index(stands) - 1], f"of its last {LAST} known ends {good} were good"
    return stands, ""


def _edits(revisions: Sequence[SkillRevision]) -> Iterator[int]:
    """Yield the time of each edit. A file that came back with the same bytes was not edited."""
    before = ""
    for what in revisions:
        if what.sha and what.sha != before and what.by in ("user", "tuned"):
            yield what.at
        before = what.sha or before


def is_verified(real: Sequence[SkillUse]) -> bool:
    """Whether a skill was used often enough and ended well often enough."""
    is_often = len(real) >= USES and len({use.document for use in real}) >= SESSIONS
    return is_often and rate(real) >= RATE and any(use.end == "good" for use in real)


def _is_better_since(real: Sequence[SkillUse], at: int) -> bool:
    before, since = [use for use in real if use.at < at], [use for use in real if use.at >= at]
    return len(since) >= USES and rate(since) >= (rate(before) if before else 0)


def missed(history: Iterable[SkillUse], revisions: Sequence[SkillRevision]) -> list[SkillUse]:
    """Return the times that a skill's steps were done without it since its file last changed; none if it was used."""
    changed = max(_edits(revisions), default=0)
    since = [use for use in history if use.at >= changed]
    return [] if used(since) else since


def why_retire(history: Sequence[SkillUse], missed: int, sessions_since: int, gone: int, steps: int) -> str:
    """Return why a skill should be retired or mended, "" for no reason. `missed`: times that its steps were done
    without it; `sessions_since`: of its pool since its last use; `gone`: of its `steps` those that name something that
    is gone."""
    real = used(history)
    if gone:
        return f"{gone} of {steps} steps name{'s' if gone == 1 else ''} a file or target that is gone"
    if sessions_since >= UNUSED and rate(real) < FALLEN:
        return f"not used in {sessions_since} sessions, and {sum(use.end == 'bad' for use in real)} uses ended badly"
    if missed >= MISSED and not real:
        return f"its steps were done {missed} times without it, and nobody ever called it"
    return ""


def newest(history: Sequence[SkillUse], most: int) -> tuple[SkillUse, ...]:
    """Return the newest uses, the newest first."""
    return tuple(islice(reversed(history), most))
