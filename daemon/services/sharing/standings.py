"""What the user's trust in an author means for records: the author's own, and those that the author invalidates (H2).

Invariants: nothing is forgotten, and taking a judgement back gives the state that the lines alone give; a record that
the user confirmed, pinned, edited or undid stays as the user left it; what the user rejected to retire stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from ....protocol.operation import AnyOperation, AuthorJudged, ChangeProposed, Shift
from ....protocol.record import LIVE, Record
from ....protocol.share import Standing
from ...projections.sharing import PartnerEntry
from ...projections.stores import Stores
from ..shared_belief import SharedBelief, document_of, first_until, is_invalidated, name_of
from ..statements import is_edited
from .line_groups import INVALIDATED, may_retire, proposed, reviews
from .shared_records import status_of


def judged(
    stores: Stores, partner: PartnerEntry, standing: Standing, now: int, *, is_withheld: bool | None = None
) -> list[AnyOperation]:
    """Return the operation by which the user judges an author, or a lease hides or shows one (`is_withheld`), and the
    proposals that follow. `now` in microseconds. On the write thread."""
    pool, partition = partner.pool, partner.partition
    withheld = partner.withheld if is_withheld is None else is_withheld
    effective = msgspec.structs.replace(partner, standing=standing, withheld=withheld).effective
    belief = SharedBelief(stores, pool, standings={partition: effective})
    document = document_of(partition)
    own = stores.records.many(stores.records.citing(document)).values()
    shifts: dict[str, Shift] = {}
    for record in own:
        shift = _own(stores, belief, record, partner.effective, effective)
        if shift is not None and record.provenance.source == document:
            shifts[record.id] = shift
    targets = belief.invalidated_by(partition)
    rejected = _rejected(stores)
    for ref, id in targets.items():
        record = stores.records.get(id)
        if record is not None and id not in shifts and (shift := _target(stores, belief, record, ref, now, rejected)):
            shifts[id] = shift
    records = stores.records.many(shifts)
    changed = {id: msgspec.structs.replace(record, status=shifts[id].status) for id, record in records.items()}
    operation = AuthorJudged(
        pool=pool,
        partition=partition,
        standing=standing,
        withheld=withheld,
        after=tuple(shifts[id] for id in sorted(shifts)),
        review=reviews(stores, belief, changed),
    )
    return [operation, *_proposals(stores, belief, targets, changed)]


def _rejected(stores: Stores) -> frozenset[str]:
    """Return the records that the user did not retire although another author proposed it."""
    decided = (asked for asked in stores.inbox.list(decided=True) if asked.state == "rejected")
    return frozenset(asked.what.record for asked in decided if asked.what.label == INVALIDATED)


def _proposals(
    stores: Stores, belief: SharedBelief, targets: Mapping[str, str], changed: Mapping[str, Record]
) -> Iterator[ChangeProposed]:
    """Yield the proposals to retire records of this home that stay, or are live again. `targets`: their ids, by the
    name of the line that the author invalidates."""
    for ref, id in targets.items():
        record = changed.get(id) or stores.records.get(id)
        if record is not None and not record.is_team and (proposal := proposed(stores, belief, record, ref)):
            yield proposal


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


def _target(
    stores: Stores, belief: SharedBelief, record: Record, ref: str, now: int, rejected: Collection[str]
) -> Shift | None:
    """Return the new state of a record that the author invalidates, None if it stays."""
    line, was_invalidated = belief.invalidation(ref), is_invalidated(stores, record)
    if line is None:
        return revived(stores, record, belief) if was_invalidated else None
    if was_invalidated and record.valid_to != line.until:
        return Shift(record.id, "retired", line.until, record.retired_at)
    if record.is_team:
        retires = record.status in (*LIVE, "archived")
    else:
        retires = record.id not in rejected and may_retire(stores, belief, record, ref)
    return Shift(record.id, "retired", line.until, now) if retires else None


def revived(stores: Stores, record: Record, belief: SharedBelief) -> Shift:
    """Return the state of a record that no line invalidates any more."""
    partner = belief.partners.get(record.provenance.source.partition(":")[2])
    status = status_of(record, partner.effective) if record.is_team and partner else "active"
    return Shift(record.id, status, first_until(stores, record))
