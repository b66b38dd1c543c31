"""The records that an agent hid until the user decides, and how they come back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....protocol.operation import Hidden, Shift, Unhidden
from ....protocol.record import LIVE, Record
from ...projections.stores import Stores
from ..record_history import entries


def may_hide(record: Record) -> bool:
    """Return whether an agent may hide a record."""
    return not record.held and record.status != "hidden"


def hide(records: Sequence[Record]) -> Hidden:
    """Return the operation that hides these records from all reads."""
    before = tuple(
        Shift(record.id, record.status, record.valid_to, record.retired_at, record.superseded_by) for record in records
    )
    return Hidden(documents=(), before=before, after=tuple(_hidden(shift) for shift in before))


def _hidden(was: Shift) -> Shift:
    return Shift(was.id, "hidden", was.valid_to, was.retired_at, was.superseded_by)


def bring_back(stores: Stores, id: str) -> Unhidden | None:
    """Return the operation that shows a record again that an agent hid; None if no agent hid it."""
    record = stores.records.get(id)
    if record is None or record.status != "hidden":
        return None
    for entry in entries(stores, id, newest_first=True):
        if not isinstance(entry.operation, Hidden):
            continue
        if entry.operation.documents:
            return None
        was = next(shift for shift in entry.operation.before if shift.id == id)
        return Unhidden(hidden=entry.seq, documents=(), after=(fitting(stores, record, was),))
    return None


def fitting(stores: Stores, record: Record, was: Shift) -> Shift:
    """Return a record's earlier state; retired if another record took its key meanwhile."""
    holder = stores.records.holding_key(record.pool, record.key) if record.key and was.status in LIVE else ""
    if not holder or holder == record.id:
        return was
    other = stores.records.get(holder)
    until = other.valid_from if other else ""
    return msgspec.structs.replace(was, status="retired", valid_to=until, superseded_by=holder)
