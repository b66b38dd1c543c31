"""Which of the ranked records an answer holds: no two alike, within a number, a threshold and a budget (Q9, Q10).

Comes in: records by falling score. Goes out: those that are given, and how many were left out. Invariants: what comes
first stays first; one that is too long for what is left of the budget is passed over for a shorter one behind it; the
first is always given; the same dice give the same choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

from ....protocol.record import Record
from ..token_estimate import tokens

ALIKE = 0.8
"""Of two records that say the same, the shorter has this share of the longer's words, and no others."""

DENIALS = frozenset("no not never none without don doesn didn isn aren wasn won can cannot instead unless only".split())

WARMTH = 0.1
"""By chance, a record whose score is lower by so much is taken e times more rarely."""

PRINCIPLES, PRINCIPLE_SHARE = 20, 0.2
"""Principles a pool, and their share of the budget of tokens (Q8)."""

_WORD = re.compile(r"\w+")


class Ranked(Protocol):
    """A record with its score, and the ids of those behind it that say the same."""

    @property
    def score(self) -> float: ...
    @property
    def record(self) -> Record: ...
    @property
    def alike(self) -> list[str]: ...


R = TypeVar("R", bound=Ranked)


def cost(record: Record) -> int:
    """Estimated tokens of a record as a client shows it: its line, and its quote where that says it otherwise."""
    quote = record.provenance.quote
    return tokens(record.description) + (tokens(quote) if quote not in record.description else 0)


@lru_cache(4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def folded(ranked: Iterable[R]) -> list[R]:
    """Without those that say the same as one before them: that one takes their ids."""
    kept: list[R] = []
    said: list[frozenset[str]] = []
    for each in ranked:
        words = _words(each.record.description)
        for first, others in zip(kept, said, strict=True):
            within_one = words <= others or others <= words
            if within_one and first.record.status == each.record.status and _alike(words, others):
                first.alike.append(each.record.id)
                break
        else:
            kept.append(each)
            said.append(words)
    return kept


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether, of two where one holds the other's words, it says little more: no other number, no denial."""
    fewer, more = sorted((one, other), key=len)
    if len(fewer) < ALIKE * len(more):
        return False
    return not any(word in DENIALS or not word.isalpha() for word in more - fewer)


def by_chance(ranked: Sequence[R], count: int, dice: Callable[[int], bytes]) -> list[R]:
    """`count` of them, the better the likelier, in order of their scores (Gumbel's trick: no one twice)."""

    def noise() -> float:
        even = (int.from_bytes(dice(6)) + 1) / (2**48 + 1)
        return -math.log(-math.log(even))

    drawn = sorted(ranked, key=lambda each: -(each.score / WARMTH + noise()))[:count]
    return sorted(drawn, key=lambda each: (-each.score, each.record.id))


def within(records: Iterable[Record], limit: int, budget: int, *, at_least: int = 1) -> Iterator[tuple[Record, int]]:
    """At most `limit` of them with what each costs, while the budget holds; the first comes whatever it costs."""
    spent = count = 0
    for record in records:
        price = cost(record)
        if count == limit:
            return
        if count >= at_least and spent + price > budget:
            continue
        spent, count = spent + price, count + 1
        yield record, price
