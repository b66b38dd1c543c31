"""The turns that a record rests on, and the record without forgotten turns.

The remaining record contains nothing that only the forgotten turns said.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import dropwhile

import msgspec

from ...protocol.ingestion import SUMMARY
from ...protocol.record import CONSOLIDATED, QUOTE_LIMIT, Record
from ..projections.stores import Stores
from .statements import folded, is_edited, line, own_tags

Turn = tuple[str, str]
CORRECTIONS = "memd:corrections/"
"""Beginning of the documents that hold the user's corrections."""


def cited(record: Record) -> set[Turn]:
    """Return the turns that a record cites, as spans or as evidence."""
    provenance = record.provenance
    spans = (*provenance.spans, *(evidence.span for evidence in provenance.evidence))
    return {(span.document, span.turn) for span in spans}


def stands_on(record: Record) -> set[Turn]:
    """Return the turns that support a record: all that it cites, without the corrected turns that a correction cites as
    history."""
    spans, evidence = record.provenance.spans, record.provenance.evidence
    at = next((n for n, span in enumerate(spans) if span.document.startswith(CORRECTIONS)), None)
    if at is None:
        return cited(record)
    since = dropwhile(lambda item: item.span != spans[at], evidence)
    return {(span.document, span.turn) for span in (*spans[: at + 1], *(item.span for item in since))}


def rebased(stores: Stores, record: Record, turns: Mapping[Turn, object]) -> Record | None:
    """Return a record without these turns, in the words of a remaining turn; None if the archive has no such words."""
    provenance = record.provenance
    if _ends_with_any(record) and any((span.document, span.turn) in turns for span in provenance.spans):
        return None
    if provenance.spans and (provenance.spans[0].document, provenance.spans[0].turn) not in turns:
        return msgspec.structs.replace(in_own_words(without(record, turns)), rev=record.rev + 1)
    remaining = stands_on(record) - turns.keys()
    spans = tuple(span for span in provenance.spans if (span.document, span.turn) in remaining)
    evidence = tuple(e for e in provenance.evidence if (e.span.document, e.span.turn) in remaining)
    changed = msgspec.structs.replace(provenance, spans=spans, evidence=evidence)
    sources = [(span, provenance.trust, provenance.said_at) for span in spans]
    for span, trust, at in (*sources, *((item.span, item.trust, item.at) for item in evidence)):
        words = stores.archive.span(span)
        if not words or not words.strip():
            continue
        same = folded(words) == folded(record.content)
        changed = msgspec.structs.replace(
            changed,
            author=trust,
            source=span.document,
            trust=trust,
            said_at=at,
            quote=words[:QUOTE_LIMIT],
            spans=(span, *(other for other in spans if other != span)),
            evidence=tuple(item for item in evidence if item.span != span),
        )
        return msgspec.structs.replace(
            record,
            content=words,
            description=record.description if same else line(words),
            key=record.key if same else "",
            value=record.value if same else "",
            tags=record.tags if same else record.tags[:1],
            aliases=record.aliases if same else (),
            learnings=record.learnings if same else {},
            provenance=changed,
            rev=record.rev + 1,
        )
    return None


def _ends_with_any(record: Record) -> bool:
    """Whether a record holds the words of a question and of its answer, or of many passages of a document, so that it
    ends with any of them."""
    spans = record.provenance.spans
    if SUMMARY in record.tags and not is_edited(record):
        return True
    if len(spans) < 2 or is_edited(record) or CONSOLIDATED in record.tags:
        return False
    return spans[-1].document == spans[0].document and spans[-1].turn != spans[0].turn


def without(record: Record, turns: Mapping[Turn, object]) -> Record:
    """Return a record with the same words that cites none of these turns, and has a cited session as its source."""
    provenance = record.provenance
    spans = tuple(span for span in provenance.spans if (span.document, span.turn) not in turns)
    evidence = tuple(e for e in provenance.evidence if (e.span.document, e.span.turn) not in turns)
    documents = {span.document for span in (*spans, *(item.span for item in evidence))}
    gone = len(spans) < len(provenance.spans) and spans and provenance.source not in documents
    source = spans[0].document if gone else provenance.source
    changed = msgspec.structs.replace(provenance, source=source, spans=spans, evidence=evidence)
    return msgspec.structs.replace(record, provenance=changed)


def in_own_words(record: Record) -> Record:
    """Return an edited record without the keywords and lessons of its earlier words."""
    if not is_edited(record):
        return record
    return msgspec.structs.replace(record, tags=own_tags(record.tags, record.content), learnings={})
