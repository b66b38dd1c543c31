"""Meaning: what the distiller reads in a clause, and whether it is meant as it stands (P-5).

Comes in: a clause, what follows it, and whose words they are. Goes out: its reading, and a reason to leave it out, or
"". Invariants: a clause is only ever left out here, never changed; a negation, a condition and a reporting verb stay in
their clause and are no reason; what the user marked as lasting is left out only where it is plainly not meant.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from ..models.distiller import Modality, Reading, Speaker
from ..protocol.event import Trust
from .cues import plain

UNMEANT: tuple[Modality, ...] = ("asked", "hypothetical", "quoted", "retracted")
"""Modalities in which a clause says nothing that holds."""

IDLE = ("instruction", "question", "smalltalk", "noise")
"""Types of a clause that nobody looks for later."""

SURE, PLAIN, EMPTY = 0.5, 0.8, 0.85
"""Probabilities from which a clause is left out: not meant; not meant though marked as lasting; not worth keeping."""

EMPTY_TALK = 0.95
"""The same of a remark that tells something of its speaker."""

HALF_EMPTY, SLIGHT = 0.35, 1.0
"""A user's clause that may be idle and matters as little as this (of 3) is left out as well: irony reads like that."""


_REPORTED = re.compile(
    r"\b(?:sa(?:id|ys?)|told|tells|claim(?:s|ed)?|think(?:s)?|thought|wrote|writes|according to|mention(?:s|ed)|"
    r"reckons?|insist(?:s|ed)|promised|heard|believes?|report(?:s|ed)|swears?|suggest(?:s|ed)|expects?|want(?:s|ed))\b",
    re.IGNORECASE,
)
"""Who says so stands in the clause itself: then it is kept whole, as what somebody says."""


_WISH = re.compile(
    r"\bI(?:'d| would) (?:(?:only|always|never|rather) (?:want|like|have|use|expect|see)|prefer|want)\b"
    r"(?! (?:you|us|it|this|that|to)\b)",
    re.IGNORECASE,
)
"""A wish in polite words. What the words of a condition are to others, is how its speaker wants things."""


class Reader(Protocol):
    """What the stages ask of the distiller."""

    def read(self, clause: str, speaker: Speaker) -> Reading:
        """What a clause says."""
        ...


def speaker(trust: Trust) -> Literal["user", "assistant"]:
    """Whose words they are, as the distiller knows speakers."""
    return "user" if trust == "user" else "assistant"


class Meaning:
    """The distiller's say on clauses that no word rule left out."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, clause: str, trust: Trust) -> Reading:
        """What the clause says, as its speaker's words."""
        return self._reader.read(clause, speaker(trust))

    def objection(
        self, read: Reading, clause: str, following: str, trust: Trust, *, lasting: bool, telling: bool
    ) -> str:
        """Why the clause is left out, in a word or two, or "". `following`: the next clause of the turn, if any;
        `telling`: it says enough not to be idle."""
        floor = PLAIN if lasting else SURE
        reported = _REPORTED.search(clause) is not None
        wished = trust == "user" and read.type == "preference" and _WISH.search(plain(clause)) is not None
        spared = {"quoted": reported, "hypothetical": wished}
        unmeant = {name: read.modalities[name] for name in UNMEANT if not spared.get(name)}
        if sum(unmeant.values()) >= floor:
            return max(unmeant, key=lambda name: unmeant[name])
        idle = sum(read.types[name] for name in IDLE)
        idle_enough = EMPTY_TALK if telling else EMPTY
        slight = trust == "user" and idle >= HALF_EMPTY and read.salience < SLIGHT
        if not lasting and (idle >= idle_enough or slight):
            return read.type if read.type in IDLE else "slight"
        if following:
            both = self._reader.read(f"{clause} {following}", speaker(trust))
            if both.modalities["retracted"] >= floor:
                return "retracted"
        return ""
