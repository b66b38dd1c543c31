"""Selects the records of an answer: no near duplicates, within a number and a token budget (Q9, Q10).

Invariants: the order is kept; a record that exceeds the rest of the budget is skipped for a shorter one behind it; the
first record is always given; the same random bytes give the same choice.
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
"""Share of the longer record's words that a near duplicate has; it has no other words."""

DENIALS = frozenset("no not never none without don doesn didn isn aren wasn won can cannot instead unless only".split())

TEMPERATURE = 0.1
"""When chosen by chance, a record whose score is lower by this is chosen e times more rarely."""

PRINCIPLES, PRINCIPLE_SHARE = 20, 0.2
"""Most principles of a pool, and their share of the token budget (Q8)."""

_WORD = re.compile(r"\w+")


class Ranked(Protocol):
    """A record with its score and the ids of its near duplicates."""

    @property
    def score(self) -> float: ...
    @property
    def record(self) -> Record: ...
    @property
    def alike(self) -> list[str]: ...


R = TypeVar("R", bound=Ranked)


def cost(record: Record) -> int:
    """Estimate the tokens of a record as a client shows it: its description, and its quote if that differs."""
    quote = record.provenance.quote
    return tokens(record.description) + (tokens(quote) if quote not in record.description else 0)


@lru_cache(4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def deduplicated(ranked: Iterable[R]) -> list[R]:
    """Drop near duplicates of an earlier record, which takes their ids."""
    distinct: list[tuple[R, frozenset[str]]] = []
    for candidate in ranked:
        words = _words(candidate.record.description)
        for first, others in distinct:
            nested = words <= others or others <= words
            if nested and first.record.status == candidate.record.status and _alike(words, others):
                first.alike.append(candidate.record.id)
                break
        else:
            distinct.append((candidate, words))
    return [candidate for candidate, _ in distinct]


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether the larger of two nested sets adds little: no number and no denial."""
    fewer, more = sorted((words, others), key=len)
    if len(fewer) < ALIKE * len(more):
        return False
    return not any(word in DENIALS or not word.isalpha() for word in more - fewer)


def by_chance(ranked: Sequence[R], count: int, token: Callable[[int], bytes]) -> list[R]:
    """Draw `count` records by the Gumbel trick, better ones more often, without repetition; they keep their order."""

    def noise() -> float:
        uniform = (int.from_bytes(token(6)) + 1) / (2**48 + 1)
        return -math.log(-math.log(uniform))

    luck = [candidate.score / TEMPERATURE + noise() for candidate in ranked]
    drawn = sorted(range(len(ranked)), key=lambda place: -luck[place])[:count]
    return [ranked[place] for place in sorted(drawn)]


def within(records: Iterable[Record], limit: int, budget: int, *, at_least: int = 1) -> Iterator[tuple[Record, int]]:
    """Yield at most `limit` records within the token budget, each with its cost; the first `at_least` in any case."""
    spent = count = 0
    for record in records:
        price = cost(record)
        if count == limit:
            return
        if count >= at_least and spent + price > budget:
            continue
        spent, count = spent + price, count + 1
        yield record, price
