"""Edits that are taken back: a record in its words of before, and in those of the edit again (T10, P-9).

Comes in: an edited record, the sessions that are undone or brought back. Goes out: the operation that gives it the
other words, None where that does not fit. Invariants: its id, its place and what was said of it since stay; it takes no
key from another record; what was put into yet other words meanwhile is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ....protocol.operation import Decision, Updated
from ....protocol.record import LIVE, Record
from ...projections.record_reducer import apply
from ...projections.stores import Stores
from ..statements import is_edited


def taken_back(stores: Stores, now: Record, documents: Collection[str]) -> Updated | None:
    """`now` in the words that these documents' edits replaced; None if its words are none of theirs."""
    if not is_edited(now) or not _is_of(now, documents):
        return None
    then = next((row for row in reversed(_versions(stores, now.id)) if not _is_of(row, documents)), None)
    return _reworded(stores, now, then, documents, "the edit was undone") if then else None


def brought_back(stores: Stores, now: Record, documents: Collection[str], seq: int) -> Updated | None:
    """`now` in the words that were taken back by the operation at `seq`; None if it was not, or has new ones since."""
    then = next(reversed(_versions(stores, now.id, seq)), None)
    if then is None or not is_edited(then) or not _is_of(then, documents) or _is_of(now, documents):
        return None
    return _reworded(stores, now, then, documents, "the edit was redone")


def _is_of(record: Record, documents: Collection[str]) -> bool:
    """Whether a record's words are from one of these documents."""
    return record.provenance.spans[0].document in documents


def _versions(stores: Stores, id: str, before: int = 0) -> list[Record]:
    """What was believed of a record, in order; up to the operation `before`, if one is given."""
    rows: list[Record] = []
    row: Record | None = None
    for seq in stores.sources.history(id):
        entry = stores.journal.get(seq) if not before or seq < before else None
        row = apply(row, id, entry) if entry else row
        rows += [row] if entry and row else []
    return rows


def _reworded(stores: Stores, now: Record, then: Record, documents: Collection[str], reason: str) -> Updated | None:
    if now.status not in LIVE or then.status not in LIVE:
        return None
    provenance = then.provenance
    since = [e for e in now.provenance.evidence if e not in provenance.evidence and e.span.document not in documents]
    taken = stores.records.holding_key(now.pool, then.key) not in ("", now.id) if then.key else False
    record = msgspec.structs.replace(
        then,
        pool=now.pool,
        placed=now.placed,
        rev=now.rev + 2,  # it follows the operation that says of its session that it is undone, or no longer
        key="" if taken else then.key,
        needs_review=taken or then.needs_review,
        review=now.review,
        provenance=msgspec.structs.replace(provenance, evidence=(*provenance.evidence, *since)),
    )
    return Updated(record=record, decision=Decision(action="update", reason=reason))
