"""Removes from records and their histories what the holder of a pass may not read (A1).

Invariant: without a pass, or with one that covers all pools and sources, everything is returned unchanged.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...protocol.record import Record
from ..projections.ports import RecordReader
from .service import Caller


def limited(record: Record, caller: Caller, records: RecordReader) -> Record:
    """Return a permitted record without the ids of records and without the evidence that the pass does not cover."""
    if caller.knows is None:
        return record
    provenance = record.provenance
    linked = permitted_ids((*record.supersedes, record.superseded_by, *record.relates_to), caller, records)
    supersedes = tuple(id for id in record.supersedes if id in linked)
    evidence = tuple(item for item in provenance.evidence if may_read(caller, item.span.document, item.span.turn))
    return replace(
        record,
        supersedes=supersedes,
        relates_to=tuple(id for id in record.relates_to if id in linked),
        superseded_by=record.superseded_by if record.superseded_by in linked else "",
        provenance=replace(provenance, evidence=evidence),
    )


def permitted_ids(ids: tuple[str, ...], caller: Caller, records: RecordReader) -> frozenset[str]:
    """Return those of these ids that belong to records which the caller may see."""
    named = tuple(filter(None, ids))
    present = records.many(named).values() if named else ()
    return frozenset(record.id for record in present if caller.permits is None or caller.permits(record))


def may_read(caller: Caller, document: str, turn: str) -> bool:
    """Whether the caller may see the text of a turn."""
    return caller.reads is None or caller.reads(document, turn)
