"""The turns that a record rests on, and the record without forgotten turns.

The remaining record contains nothing that only the forgotten turns said.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import dropwhile

import msgspec

from ...protocol.record import QUOTE_LIMIT, Record
from ..projections.stores import Stores
from .statements import folded, is_edited, own_tags

Turn = tuple[str, str]
CORRECTIONS = "memd:corrections/"
"""Beginning of the documents that hold the user's corrections."""


def cited(record: Record) -> set[Turn]:
    """The turns that a record rests on, by its spans or as evidence."""
    provenance = record.provenance
    spans = (*provenance.spans, *(each.span for each in provenance.evidence))
    return {(span.document, span.turn) for span in spans}


def stands_on(record: Record) -> set[Turn]:
    """The turns that a record stands on: all that it cites, but of a correction not those of what it put right, which
    it cites as its history."""
    spans, evidence = record.provenance.spans, record.provenance.evidence
    at = next((n for n, span in enumerate(spans) if span.document.startswith(CORRECTIONS)), None)
    if at is None:
        return cited(record)
    since = dropwhile(lambda each: each.span != spans[at], evidence)
    return {(span.document, span.turn) for span in (*spans[: at + 1], *(each.span for each in since))}


def rebased(stores: Stores, record: Record, turns: Mapping[Turn, object]) -> Record | None:
    """A record without these turns, in the words of a turn that is left; None where no such words are kept."""
    provenance = record.provenance
    if provenance.spans and (provenance.spans[0].document, provenance.spans[0].turn) not in turns:
        left = in_own_words(without(record, turns))
        return msgspec.structs.replace(left, rev=record.rev + 1)
    kept = stands_on(record) - turns.keys()
    spans = tuple(span for span in provenance.spans if (span.document, span.turn) in kept)
    evidence = tuple(e for e in provenance.evidence if (e.span.document, e.span.turn) in kept)
    changed = msgspec.structs.replace(provenance, spans=spans, evidence=evidence)
    said = [(span, provenance.trust, provenance.said_at) for span in spans]
    for span, trust, at in (*said, *((each.span, each.trust, each.at) for each in evidence)):
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
            spans=(span, *(each for each in spans if each != span)),
            evidence=tuple(each for each in evidence if each.span != span),
        )
        return msgspec.structs.replace(
            record,
            content=words,
            description=record.description if same else " ".join(words.split())[:300],
            key=record.key if same else "",
            value=record.value if same else "",
            tags=record.tags if same else record.tags[:1],
            learnings=record.learnings if same else {},
            provenance=changed,
            rev=record.rev + 1,
        )
    return None


def without(record: Record, turns: Mapping[Turn, object]) -> Record:
    """A record in the same words that names none of these turns, nor a session that it cites no more as its source."""
    provenance = record.provenance
    spans = tuple(span for span in provenance.spans if (span.document, span.turn) not in turns)
    evidence = tuple(e for e in provenance.evidence if (e.span.document, e.span.turn) not in turns)
    documents = {span.document for span in (*spans, *(each.span for each in evidence))}
    gone = len(spans) < len(provenance.spans) and spans and provenance.source not in documents
    source = spans[0].document if gone else provenance.source
    changed = msgspec.structs.replace(provenance, source=source, spans=spans, evidence=evidence)
    return msgspec.structs.replace(record, provenance=changed)


def in_own_words(record: Record) -> Record:
    """What the user put into other words, without the keywords and lessons of the words before."""
    if not is_edited(record):
        return record
    return msgspec.structs.replace(record, tags=own_tags(record.tags, record.content), learnings={})
