"""Statements that state one rule: star clusters (G3).

Invariants: a member states one rule with the centre of its cluster, so no chain of neighbours joins what differs; no
record is in two clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from ....protocol.record import Record
from ....stages.same_rules import SamePair

SAME = 0.8
"""Probability from which a statement states the rule of a cluster's centre."""

AGREED = 0.9
"""Mean probability that a member states one rule with the other members."""


def stars(records: Sequence[Record], pairs: Iterable[SamePair]) -> Iterator[tuple[Record, ...]]:
    """Yield disjoint clusters, each with its centre first: the record with which the most others agree."""
    judged: list[dict[int, float]] = [{} for _ in records]
    for pair in (*pairs, *_equal(records)):
        judged[pair.first][pair.second] = judged[pair.second][pair.first] = pair.likely
    near = [{other: likely for other, likely in found.items() if likely >= SAME} for found in judged]
    order = sorted(range(len(records)), key=lambda place: (-sum(near[place].values()), records[place].id))
    taken: set[int] = set()
    for centre in order:
        if centre in taken:
            continue
        members = [centre]
        for other in sorted(near[centre].keys() - taken, key=lambda place: (-near[centre][place], records[place].id)):
            if fmean(judged[other][member] for member in members if member in judged[other]) >= AGREED:
                members.append(other)
        taken.update(members)
        yield tuple(records[member] for member in members)


def _equal(records: Sequence[Record]) -> Iterator[SamePair]:
    """Yield pairs of records of one pool that hold the same key and value, or the same words."""
    first_of: dict[tuple[str, str, str], int] = {}
    for place, record in enumerate(records):
        says = record.value if record.key else record.description.casefold()
        first = first_of.setdefault((record.pool, record.key, says), place)
        if first != place:
            yield SamePair(first, place, 1.0)
