"""Which of the ranked records an answer holds: no two alike, within a number, a threshold and a budget (Q9, Q10).

Comes in: records by falling score. Goes out: those that are given, and how many were left out. Invariants: what comes
first stays first; one that is too long for what is left of the budget is passed over for a shorter one behind it; the
first is always given; the same dice give the same choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ...protocol.record import Record
from .budget import tokens

ALIKE = 0.8
"""Of two records that say the same, the shorter has this share of the longer's words, and no others."""

DENIALS = frozenset("no not never none without don doesn didn isn aren wasn won can cannot instead unless only".split())

WARMTH = 0.1
"""By chance, a record whose score is lower by so much is taken e times more rarely."""

PRINCIPLES, PRINCIPLE_SHARE = 20, 0.2
"""Principles a pool, and their share of the budget of tokens (Q8)."""

_WORD = re.compile(r"\w+")

Ranked = tuple[float, Record]


def cost(record: Record) -> int:
    """Estimated tokens of a record as a client shows it: its line, and its quote where that says it otherwise."""
    quote = record.provenance.quote
    return tokens(record.description) + (tokens(quote) if quote not in record.description else 0)


def folded(ranked: Iterable[Ranked]) -> Iterator[tuple[float, Record, list[str]]]:
    """Each record with the ids of those behind it that say the same."""
    kept: list[tuple[float, Record, list[str], frozenset[str]]] = []
    for score, record in ranked:
        words = frozenset(_WORD.findall(record.description.lower()))
        twin = next((each for each in kept if _alike(each[1], each[3], record, words)), None)
        if twin is None:
            kept.append((score, record, [], words))
        else:
            twin[2].append(record.id)
    return ((score, record, twins) for score, record, twins, _ in kept)


def _alike(one: Record, words: frozenset[str], other: Record, others: frozenset[str]) -> bool:
    """Whether one says what the other says and little more: no other number, no denial, in the same standing."""
    fewer, more = sorted((words, others), key=len)
    if one.status != other.status or not fewer <= more or len(fewer) < ALIKE * len(more):
        return False
    return not any(word in DENIALS or not word.isalpha() for word in more - fewer)


def by_chance(ranked: Sequence[Ranked], count: int, dice: Callable[[int], bytes]) -> list[Ranked]:
    """`count` of them, the better the likelier, in order of their scores (Gumbel's trick: no one twice)."""

    def noise() -> float:
        even = (int.from_bytes(dice(6)) + 1) / (2**48 + 1)
        return -math.log(-math.log(even))

    drawn = sorted(ranked, key=lambda pair: -(pair[0] / WARMTH + noise()))[:count]
    return sorted(drawn, key=lambda pair: (-pair[0], pair[1].id))


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
