"""Decide whether a clause is kept, and as which type (P-5): cue words and fitted models vote. Clauses that
the user marked as lasting need no salience and are left out only where plainly not meant; an agent's narration needs
most."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ..models.distiller import IDLE, ClauseReading, Modality, Speaker, Type
from ..protocol.event import Trust
from .clause_types import IDLE as IDLE_CLAUSE
from .clause_types import TYPES, probabilities
from .clauses import Clause
from .cues import LEADS, plain, weights
from .keys import exact_key
from .ownership import about_user

# Modalities in which a clause states nothing that holds.
UNMEANT: tuple[Modality, ...] = ("asked", "hypothetical", "quoted", "retracted")
# Probability of the unmeant modalities from which a clause is left out; and where it is marked as lasting.
UNMEANT_SHARE, PLAINLY_UNMEANT = 0.5, 0.8
# Probability of the idle types from which a clause is left out; and where it tells something of its speaker.
IDLE_SHARE, IDLE_TALK = 0.85, 0.95
# A user's clause with this probability of the idle types and at most this salience (of 3) is left out as well: irony
# reads like that.
HALF_IDLE, SLIGHT = 0.35, 1.0
# Score below which a clause needs another reason to be kept.
FLOOR: dict[Trust, float] = {"user": 0.44, "assistant": 0.34, "document": 0.35, "tool": 1.1}
# Salience below which a clause is left out: most of what an agent writes is about the work in hand.
SALIENT: dict[Trust, float] = {"user": 0.0, "assistant": 1.25, "document": 0.6, "tool": 3.0}
# Score from which a sentence that is not a list item needs less salience, and the salience that it needs.
CLEAR, LEAST_CLEAR = 0.6, 0.6
SUMMED_UP, SUMMED_UP_NOISE = 0.75, 0.3
# Least salience and most noise of an item of a summary of finished work; and of one that says what was done.
DONE, DONE_NOISE = 0.6, 0.45
PLAIN, PLAIN_NOISE = 1.3, 0.05  # Salience and noise of an item of a summary that needs no cue word
# Salience of a written-down wish of the user, of an explained term, and the most noise of both.
ANNOUNCED, EXPLAINED, ANNOUNCED_NOISE = 0.85, 1.0, 0.3
TELLING = 1.0  # Salience from which a user's clause outside of a project needs no cue word
RULINGS: tuple[Type, ...] = ("decision", "convention", "preference")
# Probability and salience from which a ruling of the user needs no cue word, if it names its object.
RULED, WEIGHTY = 0.6, 1.5
SIGNED = 1.4  # Salience from which a clause of a project that gives a reason or a consequence needs no cue word
# Salience of a setting or a choice, of a custom, of what a thing needs or gives; and the most noise of all three.
SETTING, CUSTOM, CONTRACT, LASTING_NOISE = 0.4, 0.6, 1.05, 0.5
# Salience of a lesson that an agent tells right before its next step: mostly it tells why it takes that step.
NARRATED = 1.7
# What an assistant or a document may teach; anything else only the user can say.
WORK_TYPES = ("fact", "decision", "convention", "lesson", "procedure")
# The clause itself names its source: then it is kept whole, as that source's statement.
_REPORTED = re.compile(
    r"\b(?:sa(?:id|ys?)|told|tells|claim(?:s|ed)?|think(?:s)?|thought|wrote|writes|according to|mention(?:s|ed)|"
    r"reckons?|insist(?:s|ed)|promised|heard|believes?|report(?:s|ed)|swears?|suggest(?:s|ed)|expects?|want(?:s|ed))\b",
    re.IGNORECASE,
)

# A wish in polite words, which read like a condition.
_WISH = re.compile(
    r"\bI(?:'d| would) (?:(?:only|always|never|rather) (?:want|like|have|use|expect|see)|prefer|want)\b"
    r"(?! (?:you|us|it|this|that|to)\b)",
    re.IGNORECASE,
)

_SELF = re.compile(r"\b(?:i|i'm|i've|me|my|mine|myself)\b", re.IGNORECASE)
_UNNAMED = re.compile(r"\b(?:it|them)\b", re.IGNORECASE)


class ClauseReader(Protocol):
    """The distiller, as the stages use it."""

    def read(self, clause: str, speaker: Speaker) -> ClauseReading: ...


class Position(NamedTuple):
    """Where a clause stands. `summed_up`: in a list that sums up finished work; `announced`: under a heading that says
    what it is; `explained`: in a list of terms; `narrated`: between two steps of the work; `outlasting`: the salience
    from which the clause outlasts its step."""

    listed: bool = False
    summed_up: bool = False
    announced: bool = False
    explained: bool = False
    narrated: bool = False
    project: bool = False
    outlasting: float = math.inf


def read(reader: ClauseReader, clause: str, trust: Trust) -> ClauseReading:
    """Read a clause as its speaker's words: the distiller knows the user and the assistant."""
    return reader.read(clause, "user" if trust == "user" else "assistant")


def unmeant(
    reader: ClauseReader, reading: ClauseReading, following: str, trust: Trust, lasting: bool, telling: bool
) -> str:
    """Why the clause is not meant as it stands, or "". `following`: the next clause of the turn, if any; `telling`: it
    says enough not to be idle."""
    clause = reading.clause
    floor = PLAINLY_UNMEANT if lasting else UNMEANT_SHARE
    wished = trust == "user" and reading.type == "preference" and _WISH.search(plain(clause)) is not None
    spared = {"quoted": _REPORTED.search(clause) is not None, "hypothetical": wished}
    shares = {name: reading.modalities[name] for name in UNMEANT if not spared.get(name)}
    if sum(shares.values()) >= floor:
        return max(shares, key=lambda name: shares[name])
    idle = sum(reading.types[name] for name in IDLE)
    slight = trust == "user" and idle >= HALF_IDLE and reading.salience < SLIGHT
    if not lasting and (slight or idle >= (IDLE_TALK if telling else IDLE_SHARE)):
        return reading.type if reading.type in IDLE else "slight"
    if following and read(reader, f"{clause} {following}", trust).modalities["retracted"] >= floor:
        return "retracted"
    return ""


def specific(words: str) -> bool:
    """Whether a finding is of the one thing at hand ("the wrapper only holds …"), which the next step changes, and not
    of all of its kind ("`useRef` only holds …")."""
    return LEADS["specific"].search(plain(words)) is not None


def personal(words: str) -> bool:
    """Whether a clause speaks of its speaker: a team's account of itself in a project is not the user's identity."""
    return _SELF.search(plain(words)) is not None


def outlasting(words: str) -> float:
    """The salience from which a clause outlasts the step of the work, by its form: it names a setting, a choice, a
    custom, or what a thing needs or gives. Infinite for any other form."""
    if LEADS["setting"].search(words) or LEADS["choice"].match(words):
        return SETTING
    if LEADS["custom"].search(words):
        return CUSTOM
    return CONTRACT if LEADS["contract"].search(words) else math.inf


def typed(clause: Clause, source: Trust, reading: ClauseReading) -> tuple[str, float]:
    """The clause's type, and its score in [0, 1] from its cue words and how likely it is of a type and not idle."""
    cued = weights(clause.text, source)
    likely = probabilities(clause, reading, cued, source == "user")
    most = max(likely[name] for name in (TYPES if source == "user" else WORK_TYPES))
    score = 0.5 * max(cued.values(), default=0.0) + 0.15 * min(1.0, sum(cued.values()) / 2)
    score += 0.35 * most / (most + likely[IDLE_CLAUSE])
    return _type(clause, source, reading, likely, cued), round(score, 4)


def _type(
    clause: Clause, source: Trust, reading: ClauseReading, likely: Mapping[str, float], cued: Mapping[str, float]
) -> str:
    if source != "user":
        best = max((*WORK_TYPES, "event"), key=lambda name: likely[name])
        # What an agent did is kept for what it says beside: its cue words tell that first.
        return max(WORK_TYPES, key=lambda name: (cued.get(name, 0.0), likely[name])) if best == "event" else best
    best = max(TYPES, key=lambda name: likely[name])
    best = "fact" if best == "event" and exact_key(clause.text) else best  # "I moved to Oslo" says where somebody lives
    return "identity" if best == "fact" and about_user(reading) >= 0.5 else best


def too_little(source: Trust, score: float, reading: ClauseReading, position: Position) -> str:
    """Why the clause is not worth keeping: "empty", "narrated", "slight", "weak", or "" if it is worth it."""
    noise = reading.types["noise"]
    if reading.salience >= position.outlasting:
        return "empty" if noise > LASTING_NOISE else ""
    if position.announced:
        least = EXPLAINED if position.explained else ANNOUNCED
        return "empty" if reading.salience < least or noise > ANNOUNCED_NOISE else ""
    if position.summed_up:
        return "" if _fills_a_summary(source, score, reading) else "empty"
    if position.narrated and (_is_no_lesson(reading) or specific(reading.clause)):
        return "narrated"
    least = SALIENT[source]
    if score >= CLEAR and not position.listed:
        least = min(LEAST_CLEAR, least)
    if reading.salience < least:
        return "slight"
    return "weak" if score < FLOOR[source] and not _needs_no_cue(source, reading, position) else ""


def _fills_a_summary(source: Trust, score: float, reading: ClauseReading) -> bool:
    noise = reading.types["noise"]
    least, most = (DONE, DONE_NOISE) if reading.type == "event" else (SUMMED_UP, SUMMED_UP_NOISE)
    if reading.salience < least or noise > most:
        return False
    return score >= FLOOR[source] or (reading.salience >= PLAIN and noise <= PLAIN_NOISE)


def _is_no_lesson(reading: ClauseReading) -> bool:
    return reading.type != "lesson" or reading.salience < NARRATED


def _needs_no_cue(source: Trust, reading: ClauseReading, position: Position) -> bool:
    """Whether a clause without cue words says enough by what the distiller reads in it."""
    if position.project and reading.salience >= SIGNED and LEADS["reason"].search(reading.clause):
        return True
    if source != "user":
        return not _is_no_lesson(reading)
    if not position.project and reading.salience >= TELLING:
        return True
    ruling = sum(reading.types[name] for name in RULINGS)
    return ruling >= RULED and reading.salience >= WEIGHTY and not _UNNAMED.search(reading.clause)
