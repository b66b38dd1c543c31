"""How many records were learnt and retired when, on one of the two timelines (R3, Q12).

Invariant: a hidden record is counted nowhere; of the others each is learnt once, and retired at most once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ....protocol.errors import InvalidRequest
from ....protocol.instant import from_micros, micros
from ....protocol.map import Clock, GetRhythm, Rhythm, RhythmBucket
from ....protocol.record import Record


class Changes(NamedTuple):
    """Times in microseconds, in order."""

    learnt: Sequence[int]
    retired: Sequence[int]


def changes(records: Iterable[Record], clock: Clock) -> Changes:
    """Return when these records were learnt and retired."""
    learnt: list[int] = []
    retired: list[int] = []
    for record in records:
        if record.status == "hidden":
            continue
        begun, ended = _period(record) if clock == "world" else (record.learned_at, record.retired_at)
        learnt.append(begun)
        if ended:
            retired.append(ended)
    return Changes(sorted(learnt), sorted(retired))


def _period(record: Record) -> tuple[int, int]:
    """Return when a record began and ceased to be true, 0 for a statement that still is."""
    begun = micros(record.valid_from or record.provenance.said_at)
    return begun, micros(record.valid_to) if record.valid_to else 0


def rhythm(changed: Changes, request: GetRhythm) -> Rhythm:
    """Count changes by period. Raises NaiveTime, InvalidRequest."""
    instants = sorted({*changed.learnt, *changed.retired})
    asked = [micros(text) if text else None for text in (request.since, request.until, request.beside)]
    if not instants:
        return Rhythm(buckets=())
    since, until, beside = asked
    begin = instants[0] if since is None else since
    end = max(begin, instants[-1]) + 1 if until is None else until
    if begin >= end:
        raise InvalidRequest("the period ends before it begins", hint="name an earlier `since` or a later `until`")
    number = min(request.buckets, end - begin)
    edges = [begin + (end - begin) * at // number for at in range(number + 1)]
    learnt, retired = _counts(changed.learnt, edges), _counts(changed.retired, edges)
    before = bisect_left(instants, beside) if beside is not None else len(instants)
    after = bisect_right(instants, beside) if beside is not None else len(instants)
    return Rhythm(
        buckets=tuple(map(RhythmBucket, map(from_micros, edges), learnt, retired)),
        until=from_micros(end),
        before=from_micros(instants[before - 1]) if before else "",
        after=from_micros(instants[after]) if after < len(instants) else "",
    )


def _counts(instants: Sequence[int], edges: Sequence[int]) -> list[int]:
    """Return how many instants lie in each period between two edges."""
    places = [bisect_left(instants, edge) for edge in edges]
    return [following - place for place, following in pairwise(places)]
