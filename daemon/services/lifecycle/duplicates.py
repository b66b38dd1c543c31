"""Duplicates: two live records of a pool that say the same become one, with the sources of both (T12).

Invariants: what the user pinned, edited or put into a layer is only proposed; the same two are proposed once; the
survivor has the text of one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ....protocol.ingestion import SUMMARY
from ....protocol.operation import AnyOperation, ChangeProposed, Decision, Step
from ....protocol.record import CONSOLIDATED, LIVE, OPEN_QUESTION, Record
from ...forgetting_rules import Rules
from ...projections.inbox import proposal_id
from ...projections.records import digest
from ...projections.stores import Stores
from ..merging import SAYS_THE_SAME, merged
from ..statements import is_edited
from ..write_thread import Writer

NEWEST = 200
"""Newest records of a pool that one sleep compares."""

LIKE = 0.5
"""Cosine from which two records are compared by their words."""

MOST = 50
"""Most pairs that one sleep merges or proposes."""

ONCE = frozenset({"event", "commitment", OPEN_QUESTION})
"""Types of what happens or is asked at a time: told twice, it may have been twice."""

Pair = tuple[Record, Record]


class Duplicates:
    """Looks for duplicates in a pool; not on the write thread."""

    def __init__(self, stores: Stores, writer: Writer, rules: Callable[[], Rules]) -> None:
        self._stores, self._writer, self._rules = stores, writer, rules

    def run(self, pool: str) -> int:
        """Merge or propose the duplicates among a pool's newest records; return their number."""
        if self._rules().is_off(pool):
            return 0
        found = [*self._pairs(pool)][:MOST]
        return self._writer.run(lambda: self._commit(found)).result() if found else 0

    def _pairs(self, pool: str) -> Iterator[Pair]:
        """Yield each duplicate with the record that stays, no record twice."""
        newest = [record for record in self._stores.records.recent(pool, None, NEWEST) if _takes_part(record)]
        places, vectors = self._stores.vector_store.get([digest(record.description) for record in newest])
        records, rows = [newest[place] for place in places], vectors.astype(np.float32)
        taken: set[str] = set()
        near = np.argwhere(np.triu(rows @ rows.T >= LIKE, 1)) if records else ()
        for first, second in near:
            pair = records[int(first)], records[int(second)]
            if taken.isdisjoint(record.id for record in pair):
                cosine = float(rows[int(first)] @ rows[int(second)])
                if duplicate := _duplicate(pair, cosine):
                    taken.update(record.id for record in pair)
                    yield duplicate

    def _commit(self, pairs: Sequence[Pair]) -> int:
        """Merge and propose the pairs that have not changed. On the write thread."""
        operations: list[AnyOperation] = []
        for pair in pairs:
            now = self._stores.records.many(record.id for record in pair)
            if any(now.get(record.id) != record for record in pair):
                continue
            gone, kept = pair
            if not any(record.held or is_edited(record) for record in pair):
                decision = Decision(action="update", reason=f"{gone.id} says the same", steps=(_STEP,))
                operations.append(merged(gone, kept, decision))
            elif self._stores.inbox.get(id := proposal_id(gone.id, kept.id)) is None:
                operations.append(
                    ChangeProposed(
                        id=id,
                        what="duplicate",
                        record=gone.id,
                        against=kept.id,
                        label="duplicate",
                        reason=SAYS_THE_SAME,
                    )
                )
        if operations:
            self._stores.commit(operations)
        return len(operations)


_STEP = Step("sleep", "merged with a duplicate")


def _takes_part(record: Record) -> bool:
    return (
        record.status in LIVE
        and record.status != "provisional"
        and not record.is_team
        and record.type not in ONCE
        and not {CONSOLIDATED, SUMMARY} & set(record.tags)
        and not (record.key or record.flags or record.needs_review or record.valid_to)
        and record.kind not in ("edge", "procedure", "persona")
        and bool(record.provenance.spans)
    )


def _duplicate(pair: Pair, cosine: float) -> Pair | None:
    """Return the pair as duplicate and survivor, None where they say different things."""
    from ....stages.contradictions import compare  # its rules load slowly, and a start needs none
    from ....stages.restatement import in_full

    first, second = pair
    is_linked = first.id in second.supersedes or second.id in first.supersedes
    are_parts = first.provenance.trust == "document" and first.provenance.source == second.provenance.source
    differ = (first.kind, first.type) != (second.kind, second.type)
    differ = (
        differ or first.provenance.visibility != second.provenance.visibility
    )  # a private source stays private (P7)
    if differ or is_linked or are_parts:
        return None
    if in_full(second, first, cosine):
        return (first, second) if _weight(second) >= _weight(first) else None
    if in_full(first, second, cosine):
        return (second, first) if _weight(first) >= _weight(second) else None
    if compare(first.content, second.content, cosine).label != "same":
        return None
    kept = max(pair, key=lambda record: (*_weight(record), -record.learned_at, record.id))
    return (second, first) if kept is first else (first, second)


def _weight(record: Record) -> tuple[bool, bool, bool]:
    """Return what makes one of two equal statements the survivor: the user's hold, the user's words, belief."""
    return record.held or is_edited(record), record.provenance.trust == "user", record.status == "active"
