"""The merge of a record with its duplicate (T12)."""

from __future__ import annotations

import msgspec

from ...protocol.operation import Decision, Retirement, Updated
from ...protocol.record import Evidence, Record

SAYS_THE_SAME = "says the same"


def merged(gone: Record, kept: Record, decision: Decision) -> Updated:
    """Return `kept` with the sources of its duplicate, which is retired."""
    have = {(span.document, span.turn) for span in kept.provenance.spans}
    have |= {(item.span.document, item.span.turn) for item in kept.provenance.evidence}
    said = gone.provenance
    told = (Evidence(kind="restated", span=span, trust=said.trust, at=said.said_at) for span in said.spans)
    evidence = (item for item in (*told, *said.evidence) if (item.span.document, item.span.turn) not in have)
    record = msgspec.structs.replace(
        kept,
        rev=kept.rev + 1,
        status="active" if kept.status == "provisional" or gone.status == "active" else kept.status,
        tags=tuple(dict.fromkeys((*kept.tags, *gone.tags))),
        supersedes=tuple(dict.fromkeys((*kept.supersedes, gone.id))),
        provenance=msgspec.structs.replace(kept.provenance, evidence=(*kept.provenance.evidence, *evidence)),
    )
    until = kept.valid_from or kept.provenance.said_at
    return Updated(
        record=record, retires=(Retirement(gone.id, until, f"{SAYS_THE_SAME}: {kept.id}"),), decision=decision
    )
