"""States of a thing: whether a question asks for earlier ones, and the order of those that an answer has (Q12).

Invariants: pure; an earlier state never stands above a later one of the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from ....protocol.record import LIVE, Record
from .time_expression import PAST_TENSE

OLDER = 0.98
"""Factor on the score of a state for each later one above it."""

_EARLIER = re.compile(
    r"\b(?:previous(?:ly)?|formerly|former|used to|originally|histor(?:y|ical(?:ly)?) of|in the past|back then"
    r"|early on|at first|(?:changed|evolved) over time|no longer|any ?more"
    r"|früher\w*|vorher\w*|ehemals|ehemalige\w*|zuvor|ursprünglich\w*|bisher\w*|damals|vorige\w*"
    r"|auparavant|avant cela|autrefois|anciennement|précédent\w*|précédemment|à l.origine"
    r"|anteriormente|anterior(?:es)?|antes|previamente|originalmente|en el pasado"
    r"|precedente\w*|precedentemente|prima d\w+|in passato|originariamente"
    r"|vroeger|voorheen|eerder\w*|vorige|oorspronkelijk"
    r"|раньше|прежде|ранее|прежн\w+|предыдущ\w+)\b"
    r"|以前|之前|从前|原来|過去|过去|かつて|もともと|예전|이전|과거|전에는|سابق|قبل ذلك|في الماضي",
    re.IGNORECASE,
)
"""Words that ask for what was so before."""

_BEFORE = re.compile(r"\b(?:before|earlier|until|prior to|old|first)\b", re.IGNORECASE)
"""Words that ask for it where the question speaks of the past: "what must run before a release" does not."""


def asks_for_history(question: str) -> bool:
    """Whether a question asks for what was so before."""
    if _EARLIER.search(question):
        return True
    return _BEFORE.search(question) is not None and PAST_TENSE.search(question) is not None


class State(Protocol):
    """A ranked record."""

    @property
    def score(self) -> float: ...
    @property
    def record(self) -> Record: ...


S = TypeVar("S", bound=State)


def newest_first(
    ranked: Iterable[S], successor: Callable[[Record], str], with_score: Callable[[S, float], S]
) -> list[S]:
    """Order the states of each thing from the newest to the oldest, in the place of the best of them; the order of
    different things stays."""
    ranked = list(ranked)
    things: dict[str, list[S]] = {}
    for state in ranked:
        record = state.record
        last = record.id if record.status in LIVE else successor(record) or record.id
        things.setdefault(last, []).append(state)
    if len(things) == len(ranked):
        return ranked
    ordered: list[S] = []
    for states in things.values():
        states.sort(key=lambda state: (state.record.status not in LIVE, -_age_order(state.record)))
        best = max(state.score for state in states)
        ordered.append(with_score(states[0], best))
        for state in states[1:]:
            best = min(OLDER * best, state.score)
            ordered.append(with_score(state, best))
    return sorted(ordered, key=lambda state: -round(state.score, 4))


def _age_order(record: Record) -> int:
    """Return a number that is higher for a later state."""
    return record.retired_at or record.learned_at
