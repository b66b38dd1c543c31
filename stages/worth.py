"""What a clause is worth, and as what: its type and score, and whether it reaches its floor (P-5).

Comes in: a clause that no word rule left out, whose words they are, its nearness to the prototypes, and what the
distiller reads. Goes out: type, score, and a reason to leave it out or "". Invariants: pure; cue words, prototypes and
the distiller vote on the type; what the user marked as lasting needs no salience, what an agent narrates needs most.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..models.distiller import Reading
from ..protocol.event import Trust
from .cues import weights

FLOOR: dict[Trust, float] = {"user": 0.36, "assistant": 0.3, "document": 0.35, "tool": 1.1}
"""A clause whose score is lower is left out, unless it is telling."""

TELLING = 1.0
"""Salience (of 3) from which a user's clause outside of a project is kept whatever its score."""

SALIENT: dict[Trust, float] = {"user": 0.0, "assistant": 1.2, "document": 0.6, "tool": 3.0}
"""Salience below which a clause is left out: most of what an agent writes is about the work in hand."""

SURE, LEAST = 0.48, 0.6
"""A sentence that is no list item and whose words speak so clearly needs less salience: but this much."""

SUMMED_UP, EMPTY_SUM = 0.75, 0.3
DONE, EMPTY_DONE = 0.45, 0.45
"""What a summary of finished work lists needs less salience, and still less where it says what was done; but it must
say something: at most so much of noise."""

WORK_TYPES = ("decision", "convention", "lesson", "procedure", "fact")
"""What an assistant or a document may teach; anything else only the user can say."""

CUED, READ, HEADED = 0.55, 0.3, 0.2
"""Weights of the cue words, of the distiller and of the heading beside the prototypes, when the type is chosen."""


def typed(words: str, source: Trust, near: Mapping[str, float], read: Reading, headed: str = "") -> tuple[str, float]:
    """The clause's type, and its score in [0, 1] from its cue words and its nearest prototypes. `headed`: the type that
    its heading announces."""
    cued = weights(words, source)
    spoken = {
        name: CUED * cued.get(name, 0.0) + nearness
        for name, nearness in near.items()
        if name != "noise" and (source == "user" or name in WORK_TYPES)
    }
    best = max(spoken, key=lambda name: (spoken[name], name))
    tilt = min(1.0, max(0.0, 0.5 + 2.0 * (near[best] - near["noise"])))
    score = round(0.5 * cued.get(best, 0.0) + 0.15 * min(1.0, sum(cued.values()) / 2) + 0.35 * tilt, 4)
    voted = _voted(read)
    votes = {name: own + READ * voted.get(name, 0.0) + HEADED * (name == headed) for name, own in spoken.items()}
    return max(votes, key=lambda name: (votes[name], name)), score


def _voted(read: Reading) -> dict[str, float]:
    """The distiller's types as ours: to it, a lasting fact of a project is one of its identity. An event is told by the
    words alone: "I moved to Oslo" says where somebody lives as well."""
    return {
        **{str(name): share for name, share in read.types.items()},
        "event": 0.0,
        "fact": read.types["identity"] / 2,
    }


def too_little(source: Trust, score: float, read: Reading, *, listed: bool, summed_up: bool, project: bool) -> str:
    """Why the clause is not worth keeping, "" if it is. `summed_up`: it is an item of a summary of finished work."""
    if summed_up:
        least, most = (DONE, EMPTY_DONE) if read.type == "event" else (SUMMED_UP, EMPTY_SUM)
        empty = read.salience < least or read.types["noise"] > most
        return "empty" if empty or score < FLOOR[source] else ""
    clear = not listed and score >= SURE
    if read.salience < (min(LEAST, SALIENT[source]) if clear else SALIENT[source]):
        return "slight"
    if score < FLOOR[source] and not (source == "user" and not project and read.salience >= TELLING):
        return "weak"
    return ""
