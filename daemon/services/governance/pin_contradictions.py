"""Records of a patch that contradict what the user pinned (T13)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from ....protocol.instant import from_micros
from ....protocol.record import Record
from ....stages.batch import PERSONAL
from ...projections.stores import Stores
from ..search_model import Encode

LATEST = from_micros(4_000_000_000_000_000)
"""A patch says now what it says: the day on which its author wrote it does not count."""


def contradicted(stores: Stores, fresh: Sequence[Record], encode: Encode | None) -> list[tuple[str, str, str]]:
    """Return each pinned record with the new one that contradicts it and the reason. Not on the write thread."""
    from ....stages.reconcile import find_conflicts  # late: its rules load slowly, and a start needs none

    pools = sorted({PERSONAL, *(record.pool for record in fresh)})
    held = stores.records.many(stores.inbox.held(pools)).values()
    pinned = [record for record in held if record.pinned and not record.is_from_patch]
    if not pinned or encode is None:
        return []
    rows, columns = (np.stack([encode(record.description) for record in each]) for each in (pinned, fresh))
    cosines = [tuple(map(float, row)) for row in rows @ columns.T]
    said = [
        msgspec.structs.replace(record, provenance=msgspec.structs.replace(record.provenance, said_at=LATEST))
        for record in fresh
    ]
    return [(found.held, found.fresh, found.reason) for found in find_conflicts(pinned, said, cosines)]
