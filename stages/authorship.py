"""Tell which parts of a user's turn somebody else wrote: pasted, quoted or reported words (P-19).

A turn is cut into parts: lines, and in them sentences. A linear chain with two states (the user's, somebody else's)
reads what each part looks like, what stands around it, and how the turn goes; Viterbi's algorithm finds the likeliest
states. It was fitted on authored turns (`models/recipes/train_authorship.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from .linear_model import path
from .reports import introduces, is_reported, names_source
from .rules import table, words
from .turn_text import WORDS

Array = NDArray[np.float32]

_SPEAKERS: dict[str, str | list[str]] = table("speakers")
_DATA = table("authorship")
_OF_WORDS = ("sources", "persons", "mail", "topics")
_FILLED: dict[str, str] = {
    name: entry.replace("\n", "") if isinstance(entry, str) else "|".join(entry) for name, entry in _SPEAKERS.items()
} | {name: "|".join(sorted(words("speakers", name))) for name in _OF_WORDS}


def _filled(pattern: str) -> str:
    """Return a pattern with the lists of `speakers.toml` in the places that name them."""
    pattern = re.sub(r"\{([a-z_]{4,}|own)\}", lambda name: _FILLED[name[1]], pattern)
    return pattern.replace("{people}", _FILLED["people"])


_SIGNS = {name: re.compile(_filled(sign), re.IGNORECASE) for name, sign in _DATA["spoken"].items()} | {
    name: re.compile(sign) for name, sign in _DATA["written"].items()
}
_CUT = re.compile(_filled(_DATA["cuts"]), re.IGNORECASE)
_ABBREVIATION = re.compile(_DATA["abbreviations"], re.IGNORECASE)
_ORDERS = words("speakers", "orders")
_NAMES = (*_SIGNS, "orders", "reported", "introduces", "names source", "short", "long")
_AT = {name: number for number, name in enumerate(_NAMES)}

FEWEST_WORDS, LONGEST_LEAD = 2, 25  # Words of a part, and of one that ends with a colon
SHORT, LONG = 3, 25  # Words
SIGNATURE = 2  # Parts of a letter from its closing on
MOST = 4.0  # Deviations by which a feature may differ from its mean
NEAR = 4.0  # Parts behind a colon until its effect falls to 1/e


class Part(NamedTuple):
    """Characters `start:end` of a turn, in a line of a paragraph. `opens`: it is the first of its line, or of its
    paragraph."""

    start: int
    end: int
    text: str
    paragraph: int
    opens_line: bool
    opens_paragraph: bool


def parts(text: str) -> list[Part]:
    """Return the parts of a turn that have words or signs, in order."""
    out: list[Part] = []
    at, paragraph, is_blank = 0, -1, True
    for line in text.split("\n"):
        if line.strip():
            paragraph += is_blank
            for number, (start, end) in enumerate(_cut(line)):
                opens = number == 0
                out.append(Part(at + start, at + end, line[start:end].strip(), paragraph, opens, opens and is_blank))
        is_blank = not line.strip()
        at += len(line) + 1
    return out


def _cut(line: str) -> Iterator[tuple[int, int]]:
    first, end = len(line) - len(line.lstrip()), len(line.rstrip())
    at = first
    for hit in _CUT.finditer(line, first, end):
        mark, before = hit[0][:1], line[at : hit.start() + 1]
        is_lead = mark == ":" and at == first
        if mark == "." and _ABBREVIATION.search(before):
            continue
        if mark == ":" and len(before.split()) > LONGEST_LEAD:
            continue
        if (is_lead or len(WORDS.findall(before)) >= FEWEST_WORDS) and WORDS.search(line, hit.end(), end):
            yield at, hit.end()
            at = hit.end()
    yield at, end


def features(turn: Sequence[Part], known: Sequence[bool], hints: Sequence[Sequence[bool]]) -> Array:
    """Return the features of each part (parts × names). `known`: whether marks of a format show that it is somebody
    else's; `hints`: what shapes of lines and blocks tell."""
    told = zip(turn, known, hints, strict=True)
    own = np.array([[*_signs(part.text), is_known, any(hint), *hint] for part, is_known, hint in told], np.float32)
    before, after = np.zeros_like(own), np.zeros_like(own)
    before[1:], after[:-1] = own[:-1], own[1:]
    opening = own[_paragraph_starts(turn)]
    turns = np.broadcast_to(own.mean(axis=0), own.shape)
    return np.hstack([own, before, after, opening, turns, _places(turn, own)])


def _signs(text: str) -> list[bool]:
    spoken = WORDS.findall(text)
    is_lead = text.endswith(":")
    return [
        *(sign.search(text) is not None for sign in _SIGNS.values()),
        bool(spoken) and spoken[0].lower() in _ORDERS,
        is_reported(text),
        is_lead and introduces(text.strip("#*_->•: \t")),
        is_lead and names_source(text),
        len(spoken) <= SHORT,
        len(spoken) >= LONG,
    ]


def _paragraph_starts(turn: Sequence[Part]) -> list[int]:
    starts = list[int]()
    for number, part in enumerate(turn):
        starts.append(number if part.opens_paragraph or not number else starts[-1])
    return starts


def _places(turn: Sequence[Part], own: Array) -> Array:
    """Return where each part stands, and how its form differs from the parts before it."""
    count, last = len(turn), turn[-1].paragraph
    small, large, colon, closing = (_flags(own, name) for name in ("small", "large", "colon", "closing"))
    cues = _flags(own, "return", "request", "question", "view")
    closings = [at for at in range(count) if closing[at]]
    rows: list[tuple[float, ...]] = []
    since = paragraph = -1
    for at, (part, start) in enumerate(zip(turn, _paragraph_starts(turn), strict=True)):
        line, block = part.opens_line and at > 0, part.opens_paragraph and at > 0
        is_last = part.paragraph == last > 0
        signed = next((number for number in closings if number >= at), -1)
        rows.append(
            (
                at == 0,
                at == count - 1,
                part.paragraph == 0,
                is_last,
                last == 0,
                line,
                block,
                not part.opens_line,
                at + 1 < count and turn[at + 1].opens_paragraph,
                math.log(count),
                math.log1p(at),
                math.log1p(count - 1 - at),
                math.log1p(at - start),
                math.log1p(len(part.text)),
                math.exp((since - at) / NEAR) if since >= 0 else 0.0,
                since >= 0 and paragraph == part.paragraph,
                since >= 0 and paragraph == part.paragraph - 1,
                line and small[0] and large[at],
                line and small[0] and small[at],
                line and small[at - 1] and large[at],
                line and large[at - 1] and small[at],
                block and small[at],
                block and large[at],
                block and cues[at],
                line and cues[at],
                is_last and cues[at],
                0 <= signed < count - SIGNATURE,
                signed >= max(0, count - SIGNATURE),
                bool(closings) and closings[0] + 1 < at,
            )
        )
        if colon[at]:
            since, paragraph = at, part.paragraph
    return np.array(rows, np.float32)


def _flags(own: Array, *names: str) -> list[bool]:
    """Return for each part whether it has one of these signs."""
    columns = [_AT[name] for name in names]
    return [any(row[column] > 0 for column in columns) for row in own]


class Authorship(msgspec.Struct, frozen=True):
    """The chain: for each feature its mean, deviation and three weights: of a part that is somebody else's, of the
    first such part, and of the first part that is the user's again; `biases` of the three."""

    weights: tuple[tuple[float, float, float], ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    biases: tuple[float, float, float]

    def scores(self, inputs: Array) -> NDArray[np.float64]:
        """Return the three scores of each part."""
        weights, means, deviations = (np.array(each) for each in (self.weights, self.means, self.deviations))
        return np.clip((inputs - means) / deviations, -MOST, MOST) @ weights + np.array(self.biases)


def foreign(turn: Sequence[Part], known: Sequence[bool], hints: Sequence[Sequence[bool]]) -> list[bool]:
    """Return for each part whether it is somebody else's. Known parts are no links of the chain: their marks show where
    they end."""
    out, unknown = list(known), [at for at, is_known in enumerate(known) if not is_known]
    if unknown:
        found = states(model().scores(features(turn, known, hints)[unknown]))
        for at, is_others in zip(unknown, found, strict=True):
            out[at] = is_others
    return out


def states(scores: NDArray[np.float64]) -> list[bool]:
    """Return the likeliest states of a chain (Viterbi 1967). It begins behind the user's."""
    user, other = 0.0, -np.inf
    steps: list[tuple[bool, bool]] = []
    for stays, starts, ends in scores.tolist():
        from_user = user + starts >= other
        from_other = other + ends > user
        steps.append((from_other, not from_user))
        user, other = max(user, other + ends), max(user + starts, other) + stays
    out = [other > user]
    for to_user, to_other in reversed(steps[1:]):
        out.append(to_other if out[-1] else to_user)
    return out[::-1]


@cache
def model() -> Authorship:
    return msgspec.json.decode(path("authorship").read_bytes(), type=Authorship)
