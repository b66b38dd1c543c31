"""What a clause is worth, and as what: its type and score, and whether it reaches its floor (P-5).

Comes in: a clause that no word rule left out, whose words they are, its nearness to the prototypes, and what the
distiller reads. Goes out: type, score, and a reason to leave it out or "". Invariants: pure; cue words, prototypes and
the distiller vote on the type; what the user marked as lasting needs no salience, what an agent narrates needs most.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from ..models.distiller import Reading, Type
from ..protocol.event import Trust
from .cues import plain, weights
from .rules import any_of, table
from .words import STOP, tokens

FLOOR: dict[Trust, float] = {"user": 0.36, "assistant": 0.3, "document": 0.35, "tool": 1.1}
"""A clause whose score is lower is left out, unless it is telling."""

TELLING = 1.0
"""Salience (of 3) from which a user's clause outside of a project is kept whatever its score."""

SALIENT: dict[Trust, float] = {"user": 0.0, "assistant": 1.2, "document": 0.6, "tool": 3.0}
"""Salience below which a clause is left out: most of what an agent writes is about the work in hand."""

SURE, LEAST = 0.48, 0.6
"""A sentence that is no list item and whose words speak so clearly needs less salience: but this much."""

SUMMED_UP, EMPTY_SUM = 0.75, 0.3
DONE, EMPTY_DONE = 0.6, 0.45
"""What a summary of finished work lists needs less salience, and still less where it says what was done; but it must
say something: at most so much of noise."""

PLAIN, NO_NOISE = 1.3, 0.05
"""Salience and noise of an item of a summary that needs no cue word."""

ANNOUNCED, EXPLAINED = 0.85, 1.0
"""Salience of what its heading announces: a wish of the user's that was written down; a term with what it means."""

FEWEST_TOLD = 3
"""Content words that must be said of a name beside those that it holds itself."""

RULINGS: tuple[Type, ...] = ("decision", "convention", "preference")
RULED, WEIGHTY = 0.6, 1.5
"""What a user lays down needs no cue word either, where the distiller is so sure and it matters so much."""

_MEANT = re.compile(r"\b(?:it|them)\b", re.IGNORECASE)
"""… and where it says what it is about."""

SIGNED = 1.4
"""Salience from which a clause of a project that says why, or what follows, needs no cue word either."""

SET, CUSTOM, KNOWN, HALF = 0.4, 0.6, 1.05, 0.5
"""Salience of a setting or a choice, of how things are done, of what a thing needs or gives; and the most noise of all
three."""

NARRATED = 1.7
"""Salience of a lesson that an agent tells right before its next step: mostly it tells why it takes that step."""

REPORTED, EMPTY_REPORT = 1.05, 0.15
"""What a report with headings lists needs a little less salience than a remark, and next to no noise."""

WORK_TYPES = ("decision", "convention", "lesson", "procedure", "fact")
"""What an assistant or a document may teach; anything else only the user can say."""

CUED, READ, HEADED = 0.55, 0.3, 0.2
"""Weights of the cue words, of the distiller and of the heading beside the prototypes, when the type is chosen."""


class Place(NamedTuple):
    """Where a clause stands. `summed_up`: an item of a summary of finished work; `announced`: its heading says what it
    is, so that its salience alone decides; `explained`: it is an item of a list of terms; `narrated`: a remark on the
    way from one step of the work to the next; `reported`: an item of a report with headings, or one that says what
    a name stands for; `project`: said in a project; `outlasting`: the salience from which it outlasts its step."""

    listed: bool = False
    summed_up: bool = False
    announced: bool = False
    explained: bool = False
    narrated: bool = False
    reported: bool = False
    project: bool = False
    outlasting: float = math.inf


_MENDED, _TAUGHT, _SETTING, _CHOICE, _CONTRACT, _CUSTOM, _REASON, _SPECIFIC = (
    any_of(table("noise")["leads"][name])
    for name in ("mended", "taught", "setting", "choice", "contract", "custom", "reason", "specific")
)
_EMPTY = frozenset({"use", "new"})
_SELF = re.compile(r"\b(?:i|i'm|i've|me|my|mine|myself)\b", re.IGNORECASE)
_EXPLAINS = re.compile(r"(?:\*\*[^*]{2,40}\*\*|\*\*[^*]{2,40}:\*\*|`[^`]+`)\s*(?:—|–|-|:|(?<=:\*\*))\s*[^\s\d]")
_QUOTED = re.compile(r'"[^"]*"')


def mended(words: str, fault: bool = False) -> bool:
    """Whether an account of an error says only that it was put right: nobody meets it again, and nothing is learnt. A
    `fault` is one even if it does not say so.

    An error's own text may say why it came about; what its reader learnt stands outside of the quotation marks.
    """
    bare = _QUOTED.sub("", plain(words))
    return (fault or _MENDED.search(bare) is not None) and _TAUGHT.search(bare) is None


def specific(words: str) -> bool:
    """Whether a finding is of the one thing at hand ("the wrapper only holds …"), and not of all of its kind ("`useRef`
    only holds …"): the next step changes it, and whoever comes later finds it changed."""
    return _SPECIFIC.search(plain(words)) is not None


def explains(words: str) -> bool:
    """Whether an item says what a name stands for: "**Ledger** — append-only table of bookings"."""
    return _EXPLAINS.match(words) is not None


def thin(words: str) -> bool:
    """Whether what a name is said to stand for tells next to nothing that the name does not: "`csv-mode.ts`: CSV mode
    using Writer"."""
    found = _EXPLAINS.match(words)
    if found is None or words[0] != "`":
        return False
    name, told = words[: found.end() - 1], words[found.end() - 1 :]
    stems = {token.stem for token in tokens(" ".join(re.findall(r"[^\W_]+", name)))}
    fresh = [each for each in tokens(told) if each.kind in {"word", "code"} and each.text.lower() not in STOP]
    return len({each.stem for each in fresh} - stems - _EMPTY) < FEWEST_TOLD


def personal(words: str) -> bool:
    """Whether a clause speaks of its speaker: what a team tells of itself in a project is no identity of the user."""
    return _SELF.search(plain(words)) is not None


def outlasting(words: str) -> float:
    """The salience from which a clause says what who comes later has to know as well: what something is set to, what
    was chosen and why, what a thing that it names needs or gives, how things are done in the project; infinite where it
    says none of these."""
    if _SETTING.search(words) or _CHOICE.match(words):
        return SET
    if _CUSTOM.search(words):
        return CUSTOM
    return KNOWN if _CONTRACT.search(words) else math.inf


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


def too_little(source: Trust, score: float, read: Reading, place: Place) -> str:
    """Why the clause is not worth keeping, "" if it is."""
    if read.salience >= place.outlasting:
        return "empty" if read.types["noise"] > HALF else ""
    if place.announced:
        least = EXPLAINED if place.explained else ANNOUNCED
        return "empty" if read.salience < least or read.types["noise"] > EMPTY_SUM else ""
    if place.summed_up:
        least, most = (DONE, EMPTY_DONE) if read.type == "event" else (SUMMED_UP, EMPTY_SUM)
        empty = read.salience < least or read.types["noise"] > most
        plain = read.salience >= PLAIN and read.types["noise"] <= NO_NOISE
        return "empty" if empty or (score < FLOOR[source] and not plain) else ""
    if place.narrated and (read.type != "lesson" or read.salience < NARRATED or specific(read.clause)):
        return "narrated"
    clear = not place.listed and score >= SURE
    told = place.reported and read.types["noise"] <= EMPTY_REPORT
    least = min(REPORTED, SALIENT[source]) if told else SALIENT[source]
    if read.salience < (min(LEAST, least) if clear else least):
        return "slight"
    personal = source == "user" and not place.project and read.salience >= TELLING
    ruling = sum(read.types[name] for name in RULINGS)
    ruled = source == "user" and ruling >= RULED and read.salience >= WEIGHTY and not _MEANT.search(read.clause)
    plain_lesson = source != "user" and read.type == "lesson" and read.salience >= NARRATED
    signed = place.project and read.salience >= SIGNED and _REASON.search(read.clause) is not None
    if score < FLOOR[source] and not (personal or ruled or plain_lesson or signed):
        return "weak"
    return ""
