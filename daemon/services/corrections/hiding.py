"""Records that an agent took out of every read until the user decides: reversible, one by one (T10, G1).

Comes in: records. Goes out: the operation that hides them, and the one that brings a record back. Invariants: what the
user holds on to (pinned, L1, L2) is not hidden by anybody else's word; what comes back stands as it stood, but
retired where another record holds its key now; what the user decided once is not hidden again for the same record.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....protocol.operation import Hidden, Shift, Unhidden
from ....protocol.record import LIVE, Record
from ...projections.stores import Stores


def may_hide(record: Record) -> bool:
    """Whether an agent's word is enough to hide it."""
    return not record.held and record.status != "hidden"


def hide(records: Sequence[Record]) -> Hidden:
    """The operation that takes these out of every read."""
    before = tuple(Shift(each.id, each.status, each.valid_to, each.retired_at, each.superseded_by) for each in records)
    return Hidden(documents=(), before=before, after=tuple(_hidden(each) for each in before))


def _hidden(was: Shift) -> Shift:
    return Shift(was.id, "hidden", was.valid_to, was.retired_at, was.superseded_by)


def bring_back(stores: Stores, id: str) -> Unhidden | None:
    """The operation that shows a record again that an agent hid; None if it is not hidden, or not by an agent."""
    record = stores.records.get(id)
    if record is None or record.status != "hidden":
        return None
    for seq in reversed(stores.sources.history(id)):
        entry = stores.journal.get(seq)
        if entry is None or not isinstance(entry.operation, Hidden):
            continue
        if entry.operation.documents:
            return None
        was = next(shift for shift in entry.operation.before if shift.id == id)
        return Unhidden(hidden=seq, documents=(), after=(_fitting(stores, record, was),))
    return None


def _fitting(stores: Stores, record: Record, was: Shift) -> Shift:
    """How it stood; retired, where another record took its key meanwhile."""
    holder = stores.records.holding_key(record.pool, record.key) if record.key and was.status in LIVE else ""
    if not holder or holder == record.id:
        return was
    other = stores.records.get(holder)
    until = other.valid_from if other else ""
    return msgspec.structs.replace(was, status="retired", valid_to=until, superseded_by=holder)
