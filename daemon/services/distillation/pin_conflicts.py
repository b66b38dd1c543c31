"""Conflicts between pinned records and the statements of a session that ended.

Invariants: no pinned record is retired without the user's decision; a conflict is proposed once, by an id that follows
from its two records; proposals are committed with the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from ....protocol.event import SessionEnded
from ....protocol.operation import ChangeProposed
from ....protocol.record import LIVE, Record
from ....stages.batch import PERSONAL, SAME_KEY, Conflict, Item, Proposal
from ...projections.inbox import proposal_id
from ...projections.records import digest
from ...projections.stores import Stores
from .worker_messages import ComparePinned


def question(stores: Stores, items: Sequence[Item], proposals: Sequence[Proposal]) -> ComparePinned | None:
    """Return new records of the sessions that end in these items with the pinned records of their pools, if any."""
    ended = {item.captured.document for item in items if isinstance(item.captured.event, SessionEnded)}
    if not ended:
        return None
    projects = {item.project for item in items if item.captured.document in ended and item.project}
    held = stores.inbox.held(sorted({PERSONAL, *projects}))
    if not held:
        return None
    coming = {p.record.id: p.record for p in proposals if p.decision.action != "noop"}
    known = stores.records.many({id for document in ended for id in stores.records.citing(document)} - coming.keys())
    said = (*known.values(), *(record for record in coming.values() if record.provenance.source in ended))
    fresh = tuple(record for record in said if record.status in LIVE and not record.held)
    if not fresh:
        return None
    vectors = {digest(p.record.description): np.frombuffer(p.vector, np.float32) for p in proposals if p.vector}
    records = tuple(stores.records.many(held).values())
    return ComparePinned(held=records, fresh=fresh, cosines=_cosines(stores, vectors, records, fresh))


def _cosines(
    stores: Stores, coming: dict[bytes, np.ndarray], held: Sequence[Record], fresh: Sequence[Record]
) -> tuple[tuple[float, ...], ...]:
    vectors = dict(coming)
    marks = list({digest(record.description) for record in (*held, *fresh)} - coming.keys())
    places, rows = stores.vector_store.get(marks)
    for place, row in zip(places, rows, strict=True):
        vectors[marks[place]] = np.asarray(row, np.float32)
    none = np.zeros(stores.vector_store.dimension, np.float32)

    def stacked(records: Sequence[Record]) -> np.ndarray:
        rows_of = (vectors.get(digest(record.description), none) for record in records)
        return np.stack([vector if vector.shape == none.shape else none for vector in rows_of])

    return tuple(tuple(map(float, row)) for row in stacked(held) @ stacked(fresh).T)


def proposed(stores: Stores, conflicts: Iterable[Conflict], coming: Iterable[str]) -> list[ChangeProposed]:
    """Return proposals for new conflicts, on the write thread. `coming`: ids of records in this commit."""
    made: dict[str, ChangeProposed] = {}
    arriving = set(coming)
    for conflict in conflicts:
        id = proposal_id(conflict.held, conflict.fresh)
        new = stores.records.get(conflict.fresh)
        stands = conflict.fresh in arriving or (new is not None and new.status in LIVE)
        if stands and id not in made and stores.inbox.get(id) is None:
            document = new.provenance.source if new else ""
            made[id] = ChangeProposed(
                id=id,
                what="conflict",
                record=conflict.held,
                against=conflict.fresh,
                document=document,
                label=conflict.label,
                reason=conflict.reason,
            )
    return list(made.values())


def spare(stores: Stores, proposal: Proposal) -> tuple[Proposal, list[Conflict]]:
    """Return `proposal` without the retirement of pinned records, marked for review, and the conflicts instead."""
    records = stores.records.many(retirement.id for retirement in proposal.retires)
    held = {id: record for id, record in records.items() if record.held and record.status in LIVE}
    if not held:
        return proposal, []
    record = proposal.record
    conflicts: list[Conflict] = []
    for retirement in (retirement for retirement in proposal.retires if retirement.id in held):
        keyed = bool(record.key) and held[retirement.id].key == record.key
        reason = SAME_KEY if keyed else retirement.reason.split(":")[0]
        conflicts.append(Conflict(retirement.id, record.id, "replaces", reason))
    taken = any(other.key and other.key == record.key for other in held.values())
    changed = msgspec.structs.replace(
        record,
        key="" if taken else record.key,
        needs_review=True,
        supersedes=tuple(id for id in record.supersedes if id not in held),
    )
    remaining = tuple(retirement for retirement in proposal.retires if retirement.id not in held)
    return msgspec.structs.replace(proposal, record=changed, retires=remaining), conflicts
