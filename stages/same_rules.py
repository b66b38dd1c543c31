"""Statements of different conversations that state one lasting rule (G3).

Invariants: no pair is of one conversation; a pair is of one pool, or has a statement of the user's own memory in it, so
that no statement of one project meets one of another; what an agent said, or a document, is a pair only where the
words are alike: the model learnt from what users say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from .batch import PERSONAL

NEAREST = 15
"""Neighbours of a statement with which it is compared: 176 of 197 pairs that state one rule are among them."""

MOST_PAIRS = 4_000
"""Pairs that are judged in a run, the nearest first: about a minute on one thread."""

ALIKE, ALIKE_SAME = 0.75, 11 / 12
"""Cosine from which the words of two statements are alike, and the share of such pairs that say the same: 11 of 12 read
ones from different days (3 of 22 between .65 and .75)."""

SLICE = 512

Rows = NDArray[np.float32]
Codes = NDArray[np.int64]


class ToldStatement(msgspec.Struct, frozen=True, array_like=True):
    """A statement: its words, the turn that it is from, and what was said before it. `family`: its conversation;
    `is_user`: whether the user said it."""

    words: str
    turn: str
    before: str
    family: str
    is_user: bool
    pool: str


class SamePair(msgspec.Struct, frozen=True, array_like=True):
    """The places of two statements, and the probability that they state one rule."""

    first: int
    second: int
    likely: float


ToldPair = tuple[ToldStatement, ToldStatement]


class RuleReader(Protocol):
    """The models that read rules."""

    def compare(self, pairs: Sequence[ToldPair]) -> Sequence[float]:
        """Return the probability that each pair states one rule."""
        ...

    def lasting(self, texts: Sequence[str]) -> Sequence[float]:
        """Return the probability that each statement holds from now on."""
        ...


def same_rules(told: Sequence[ToldStatement], rows: Rows, reader: RuleReader) -> list[SamePair]:
    """Return the pairs that were compared. `rows`: statements x width, their vectors, zeros for one that has none."""
    if len(told) < 2:
        return []
    near = near_pairs(told, rows)
    read = [places for places in near if all(told[place].is_user for place in places)]
    likely = reader.compare([(told[first], told[second]) for first, second in read])
    judged = dict(zip(read, likely, strict=True))
    return [SamePair(*places, judged.get(places, ALIKE_SAME)) for places in near]


def near_pairs(told: Sequence[ToldStatement], rows: Rows) -> list[tuple[int, int]]:
    """Return the pairs that are compared, the nearest `MOST_PAIRS` in the order of their places."""
    found: dict[tuple[int, int], float] = {}
    for place, others, cosines in _neighbours(told, rows):
        for other, cosine in zip(others.tolist(), cosines.tolist(), strict=True):
            found[min(place, other), max(place, other)] = cosine
    return sorted(sorted(found, key=lambda pair: (-found[pair], pair))[:MOST_PAIRS])


def _neighbours(told: Sequence[ToldStatement], rows: Rows) -> Iterator[tuple[int, Codes, Rows]]:
    """Yield each place with the places and cosines of the nearest statements that may state its rule."""
    families, pools = (_codes([getattr(each, name) for each in told]) for name in ("family", "pool"))
    is_user = np.asarray([each.is_user for each in told])
    is_own = np.asarray([each.pool == PERSONAL for each in told])
    for start in range(0, len(told), SLICE):
        part = slice(start, start + SLICE)
        may = pools[part, None] == pools
        may |= is_own[part, None] | is_own
        may &= families[part, None] != families
        cosines = rows[part] @ rows.T
        may &= (is_user[part, None] & is_user) | (cosines >= ALIKE)
        cosines[~may] = -1.0
        for place, row in enumerate(cosines, start):
            others = np.argsort(-row, kind="stable")[:NEAREST]
            others = others[row[others] > 0.0]
            yield place, others, row[others]


def _codes(names: Sequence[str]) -> Codes:
    """Return a number for each name."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.asarray([numbers[name] for name in names], np.int64)
