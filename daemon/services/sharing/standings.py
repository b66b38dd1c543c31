"""What the user's trust in an author means for records: the author's own, and those that the author invalidates (H2).

Invariants: nothing is forgotten, and taking a judgement back gives the state that the lines alone give; a record that
the user confirmed, pinned, edited or undid stays as the user left it.
"""

from __future__ import annotations

import msgspec

from ....protocol.operation import AuthorJudged, Shift
from ....protocol.record import LIVE, Record
from ....protocol.share import Standing
from ...projections.sharing import PartnerEntry
from ...projections.stores import Stores
from ..shared_belief import SharedBelief, document_of, first_until, is_invalidated, name_of
from ..statements import is_edited
from .line_groups import reviews
from .shared_records import status_of


def judged(stores: Stores, partner: PartnerEntry, standing: Standing, now: int) -> AuthorJudged:
    """Return the operation by which the user judges an author. `now` in microseconds. On the write thread."""
    pool, partition = partner.pool, partner.partition
    muted = standing == "muted"
    belief = SharedBelief(stores, pool, without=[partition] if muted else (), heard=() if muted else [partition])
    document = document_of(partition)
    own = stores.records.many(stores.records.citing(document)).values()
    shifts: dict[str, Shift] = {}
    for record in own:
        if record.provenance.source == document and (shift := _own(stores, belief, record, partner.standing, standing)):
            shifts[record.id] = shift
    for ref, id in belief.invalidated_by(partition).items():
        record = stores.records.get(id)
        if record is not None and id not in shifts and (shift := _target(stores, belief, record, ref, now)):
            shifts[id] = shift
    records = stores.records.many(shifts)
    changed = {id: msgspec.structs.replace(record, status=shifts[id].status) for id, record in records.items()}
    return AuthorJudged(
        pool=pool,
        partition=partition,
        standing=standing,
        after=tuple(shifts[id] for id in sorted(shifts)),
        review=reviews(stores, belief, changed),
    )


def _own(stores: Stores, belief: SharedBelief, record: Record, before: Standing, standing: Standing) -> Shift | None:
    """Return the new state of a record of the author, None if it stays."""
    if record.status == "hidden":
        if before != "muted" or stores.forgotten.hiding(record.provenance.source):
            return None
        line = belief.invalidation(name_of(record))
        if line is not None:
            return Shift(record.id, "retired", line.until, record.learned_at)
        return Shift(record.id, status_of(record, standing), first_until(stores, record))
    if standing == "muted":
        hides = record.status in (*LIVE, "archived") or is_invalidated(stores, record)
        return Shift(record.id, "hidden", first_until(stores, record)) if hides else None
    if record.status not in LIVE or record.held or record.is_confirmed or is_edited(record):
        return None
    status = status_of(record, standing)
    return Shift(record.id, status, record.valid_to) if status != record.status else None


def _target(stores: Stores, belief: SharedBelief, record: Record, ref: str, now: int) -> Shift | None:
    """Return the new state of a record that the author invalidates, None if it stays."""
    line, was_invalidated = belief.invalidation(ref), is_invalidated(stores, record)
    if line is None:
        return revived(stores, record, belief) if was_invalidated else None
    if was_invalidated and record.valid_to != line.until:
        return Shift(record.id, "retired", line.until, record.retired_at)
    return Shift(record.id, "retired", line.until, now) if record.is_team and record.status in LIVE else None


def revived(stores: Stores, record: Record, belief: SharedBelief) -> Shift:
    """Return the state of a record that no line invalidates any more."""
    partner = belief.partners.get(record.provenance.source.partition(":")[2])
    status = status_of(record, partner.standing) if record.is_team and partner else "active"
    return Shift(record.id, status, first_until(stores, record))
