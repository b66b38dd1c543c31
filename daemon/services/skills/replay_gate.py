"""Decides whether an edited skill is better, by rounds that the optimizer did not see (K3).

A replay compares the steps of a skill with the steps that a round did well. So it measures whether a text foretells
what worked, not whether an agent does better with it. A set of held-out rounds may judge one proposal: of many
proposals, one passes by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb
from statistics import fmean
from typing import NamedTuple

from .mining import Round

HELD_OUT = 40
"""Percentage of the sessions, the newest ones, that are held out."""

UNITS, SESSIONS = 5, 2
"""Least held-out rounds, and least sessions that they are from."""

CHANCE = 0.05
"""Highest probability that an edit without effect does so well."""


class Replay(NamedTuple):
    """A round that ended well. `session`: its document; `done`: the names of the steps that went well, in order."""

    session: str
    done: tuple[str, ...]


class ReplaySplit(NamedTuple):
    """The rounds that an optimizer learns from, and those that judge its edits. No session has rounds in both."""

    train: tuple[Replay, ...]
    held_out: tuple[Replay, ...]


class EditVerdict(NamedTuple):
    """Whether edits are accepted, and `why` in one sentence for the user.

    `mean_before`, `mean_after`: mean scores from 0 to 1 over the held-out rounds, 0 without any; `better`, `worse`: how
    many rounds score higher or lower with the edits; `units`, `sessions`: how many held-out rounds there are, and their
    sessions; `p`: of the sign test.
    """

    accepted: bool
    why: str
    mean_before: float
    mean_after: float
    better: int
    worse: int
    units: int
    sessions: int
    p: float


def replays(rounds: Iterable[Round]) -> tuple[Replay, ...]:
    """Return the rounds that are known to have ended well, in the order given."""
    good = [each for each in rounds if each.unit.end == "good"]
    return tuple(Replay(each.unit.document, _done(each)) for each in good)


def _done(each: Round) -> tuple[str, ...]:
    """Return the steps of a round that went well, without repetitions of the one before."""
    names = [step.name for step in each.steps if step.outcome != "error"]
    return tuple(name for place, name in enumerate(names) if place == 0 or names[place - 1] != name)


def split(rounds: Sequence[Replay]) -> ReplaySplit:
    """Hold out the newest `HELD_OUT` percent of the sessions, rounded up, but never all. `rounds`: oldest first."""
    newest = split_sessions([each.session for each in rounds])
    return ReplaySplit(
        tuple(each for each in rounds if each.session not in newest),
        tuple(each for each in rounds if each.session in newest),
    )


def split_sessions(sessions: Iterable[str]) -> set[str]:
    """Return the sessions that are held out. `sessions`: of the rounds, oldest first."""
    distinct = list(dict.fromkeys(sessions))
    count = min(-(-len(distinct) * HELD_OUT // 100), len(distinct) - 1)
    return set(distinct[len(distinct) - count :]) if count > 0 else set()


def score(steps: Sequence[str], done: Sequence[str]) -> float:
    """Return how well a skill's steps foretell those that were done: 1 if they are equal, 0 if they share none.

    F1 of the longest common subsequence: 2 × its length / (steps of the skill + steps done), which is Dice's
    coefficient (Dice 1945) of ordered steps. Two empty sequences are equal.
    """
    total = len(steps) + len(done)
    return 2 * common(steps, done) / total if total else 1.0


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, with a row of the table as the bits of a number (Hyyrö 2004,
    "Bit-parallel LCS-length computation revisited")."""
    places: dict[str, int] = {}
    for place, name in enumerate(one):
        places[name] = places.get(name, 0) | 1 << place
    row = (1 << len(one)) - 1
    for name in other:
        matched = row & places.get(name, 0)
        row = (row + matched) | (row - matched)
    return len(one) - (row & (1 << len(one)) - 1).bit_count()


def sign_test(better: int, worse: int) -> float:
    """Return the one-sided p of a sign test: how probable at least `better` of `better + worse` are by fair coins.

    The exact binomial tail, sum of C(n, k) / 2^n for k from `better` to n, with n = better + worse and ties left out
    (Dixon and Mood 1946, "The statistical sign test"). Without any difference it is 1.
    """
    n = better + worse
    return sum(comb(n, k) for k in range(better, n + 1)) / 2**n


def judged(before: Sequence[str], after: Sequence[str], held_out: Sequence[Replay]) -> EditVerdict:
    """Judge the steps of a skill after its edits by held-out rounds.

    They are accepted if the mean score is strictly higher, there are at least `UNITS` rounds of `SESSIONS` sessions,
    and the sign test over the rounds gives at most `CHANCE`.
    """
    scores = [(score(before, each.done), score(after, each.done)) for each in held_out]
    return verdict_of(scores, len({each.session for each in held_out}))


def verdict_of(scores: Sequence[tuple[float, float]], sessions: int) -> EditVerdict:
    """Judge an edit by the scores of held-out rounds before and after it, as `judged` does. `sessions`: of the
    rounds."""
    better = sum(new > old for old, new in scores)
    worse = sum(new < old for old, new in scores)
    counted = EditVerdict(
        accepted=False,
        why="",
        mean_before=fmean(old for old, _ in scores) if scores else 0.0,
        mean_after=fmean(new for _, new in scores) if scores else 0.0,
        better=better,
        worse=worse,
        units=len(scores),
        sessions=sessions,
        p=sign_test(better, worse),
    )
    objection = _objection(counted)
    return counted._replace(accepted=not objection, why=objection or f"{_counts(counted)}, which is hardly chance")


def _objection(verdict: EditVerdict) -> str:
    """Return why edits are not accepted, "" if nothing speaks against them."""
    if verdict.units < UNITS or verdict.sessions < SESSIONS:
        rounds, sessions = _number(verdict.units, "held-out round"), _number(verdict.sessions, "session")
        verb = "decides" if verdict.units == 1 else "decide"
        return f"{rounds} of {sessions} {verb} nothing: {UNITS} of {SESSIONS} are needed"
    if verdict.mean_after <= verdict.mean_before:
        means = f"{verdict.mean_before:.2f} before and {verdict.mean_after:.2f} after"
        return f"the edited skill fits the held-out rounds no better: on average {means}"
    if verdict.p > CHANCE:
        return f"{_counts(verdict)}, which may be chance (p = {verdict.p:.2g}, at most {CHANCE} is accepted)"
    return ""


def _counts(verdict: EditVerdict) -> str:
    rounds, sessions = _number(verdict.units, "held-out round"), _number(verdict.sessions, "session")
    return f"of {rounds} in {sessions} the edited skill fits {verdict.better} better and {verdict.worse} worse"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
