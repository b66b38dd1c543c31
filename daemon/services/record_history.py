"""The history of a record: the journal entries that changed it, and its states after each of them."""

from __future__ import annotations

from collections.abc import Iterator

from ...protocol.record import Record
from ...protocol.reply import Logged
from ..projections.record_reducer import apply
from ..projections.stores import Stores


def entries(stores: Stores, id: str, *, newest_first: bool = False) -> Iterator[Logged]:
    """Yield the entries that changed a record and that the journal can still read."""
    seqs = stores.sources.history(id)
    for seq in reversed(seqs) if newest_first else seqs:
        if (entry := stores.journal.get(seq)) is not None:
            yield entry


def versions(stores: Stores, id: str, before: int = 0) -> Iterator[tuple[Logged, Record | None]]:
    """Yield each entry with the record after it, up to the operation `before` if one is given."""
    record: Record | None = None
    for entry in entries(stores, id):
        if not before or entry.seq < before:
            record = apply(record, id, entry)
            yield entry, record
