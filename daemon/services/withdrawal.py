"""Retires records whose source no longer contains them: a host or a document rewrote the turn.

Invariants: a record stays if the new text contains its quote, if another turn supports it, or if the user edited it;
an empty turn supports nothing; the same captures give the same operations until these are committed, so a kill loses
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...protocol.event import Captured, Said, Wrote, text
from ...protocol.operation import Invalidated
from ...protocol.record import LIVE, Record
from ..projections.stores import Stores
from ..storage.archive import Fate
from .statements import is_edited

REASON = "its source says it no longer"


def withdrawals(stores: Stores, captures: Iterable[tuple[Captured, Fate]]) -> Iterator[Invalidated]:
    """Yield the retirements that captures cause. Call it on the write thread."""
    for captured, fate in captures:
        event = captured.event
        if fate == "accepted" or not isinstance(event, Said | Wrote):
            continue
        turn = (captured.document, event.turn)
        for record in stores.records.many(stores.records.citing(*turn)).values():
            if record.status in LIVE and not is_edited(record) and not _is_supported(stores, record, captured, fate):
                yield Invalidated(id=record.id, valid_to=event.at, reason=REASON)


def _is_supported(stores: Stores, record: Record, captured: Captured, fate: Fate) -> bool:
    turn = (captured.document, captured.event.turn)
    provenance = record.provenance
    quoted = provenance.spans[0]
    if (quoted.document, quoted.turn) != turn or provenance.quote in text(captured.event):
        return True
    if fate == "duplicate" and stores.archive.turn(*turn) is None:
        return True  # its words have expired, so they cannot be compared
    spans = (*provenance.spans, *(evidence.span for evidence in provenance.evidence))
    others = (stores.archive.turn(*other) for other in {(span.document, span.turn) for span in spans} - {turn})
    return any(captured is None or text(captured.event).strip() for captured in others)


def is_withdrawn(stores: Stores, record: Record) -> bool:
    """Whether a record is retired only because its source no longer said it."""
    if record.status != "retired" or record.superseded_by:
        return False
    history = stores.sources.history(record.id)
    last = stores.journal.get(history[-1]) if history else None
    return last is not None and isinstance(last.operation, Invalidated) and last.operation.reason == REASON
