"""Statements that say the same: star clusters of descriptions by cosine (G3).

Invariants: each record is compared with all others once, exactly; a member is near the centre of its cluster, so no
chain of neighbours joins what differs; no record is in two clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ....protocol.record import Record
from ...projections.records import digest
from ...projections.vector_store import StoredVectors

ALIKE = 0.75
"""Cosine from which two statements are one belief. Of read pairs from different days 11 of 12 from .75 on said the
same, 3 of 22 between .65 and .75."""

DUPLICATE = 0.85
"""Cosine from which a record of the playbook has a statement already."""

LIKE = 0.5
"""Cosine from which two statements are compared by their words."""

SLICE = 512

Rows = NDArray[np.float32]
Contradict = Callable[[Record, Record, float], bool]


def stars(records: Sequence[Record], stored: StoredVectors, contradict: Contradict) -> Iterator[tuple[Record, ...]]:
    """Yield disjoint clusters, each with its centre first; a record without a near one, or without a vector, alone."""
    places, rows = vectors_of(records, stored)
    with_rows = [records[place] for place in places]
    near = _neighbours(with_rows, rows)
    order = sorted(range(len(with_rows)), key=lambda place: (-len(near[place]), with_rows[place].id))
    taken: set[int] = set()
    for centre in order:
        if centre in taken:
            continue
        inside = [other for other in near[centre] if other not in taken and other != centre]
        members = [other for other in inside if not _differ(with_rows, rows, centre, other, contradict)]
        taken.update((centre, *members))
        yield (with_rows[centre], *(with_rows[other] for other in members))
    having = set(places)
    yield from ((record,) for place, record in enumerate(records) if place not in having)


def vectors_of(records: Sequence[Record], stored: StoredVectors) -> tuple[list[int], Rows]:
    """Return the places of the records that have a vector, and the vectors."""
    places, rows = stored([digest(record.description) for record in records])
    return list(places), rows.astype(np.float32)


def _neighbours(records: Sequence[Record], rows: Rows) -> list[list[int]]:
    """Return the near records of each, with those that hold the same key and value."""
    near: list[list[int]] = []
    for start in range(0, len(records), SLICE):
        alike = rows[start : start + SLICE] @ rows.T >= ALIKE
        near += [np.flatnonzero(row).tolist() for row in alike]
    of_key: dict[tuple[str, str], list[int]] = {}
    for place, record in enumerate(records):
        if record.key:
            of_key.setdefault((record.key, record.value), []).append(place)
    for together in of_key.values():
        for place in together:
            near[place] = sorted({*near[place], *together})
    return near


def _differ(records: Sequence[Record], rows: Rows, centre: int, other: int, contradict: Contradict) -> bool:
    first, second = sorted((records[centre], records[other]), key=lambda record: record.provenance.said_at)
    return contradict(first, second, float(rows[centre] @ rows[other]))
