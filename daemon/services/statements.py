"""Records in the user's own words: from `remember` before any model refines it, and after an edit.

A description is one line, so no text can forge a heading in a profile; an edit keeps the sources and adds its own.
"""

from __future__ import annotations

from unicodedata import normalize

import msgspec

from ...protocol.event import Captured, Noted, Said, text, trust
from ...protocol.ingestion import SUMMARY
from ...protocol.record import (
    CONSOLIDATED,
    OPEN_QUESTION,
    PRINCIPLE,
    QUOTE_LIMIT,
    Evidence,
    Provenance,
    Record,
    Span,
    explicit_id,
)
from ...stages.thing_names import names_of
from ..projections.placement import AGENT
from ..projections.records import Records
from .outgoing_screen import flags_in

LINE = 300
"""Characters of a description that no stage wrote."""

COVER = "█"
"""Stands for each character that the user hid."""

MARKS = frozenset({PRINCIPLE, CONSOLIDATED, SUMMARY})
"""Tags that are not keywords of a turn."""


def line(words: str) -> str:
    """Put a text on one line of at most `LINE` characters."""
    return " ".join(words.split())[:LINE]


def provisional(document: str, event: Noted, pool: str, rev: int = 1) -> Record:
    """Return the whole text as a record, until the worker refines it (W1, A2)."""
    span = Span(document, event.turn, 0, len(event.text))
    flags = flags_in(event.text, event.role != "user")
    return Record(
        id=explicit_id(document, event.turn),
        pool=pool,
        placed=bool(event.pool),
        kind="note",
        rev=rev,
        content=event.text,
        description=line(event.text),
        status="provisional" if event.role == "user" and "injection" not in flags else "quarantined",
        tags=("note",),
        flags=flags,
        valid_from=event.at,
        provenance=Provenance(
            author=event.role,
            source=document,
            trust=event.role,
            spans=(span,),
            quote=event.text[:QUOTE_LIMIT],
            said_at=event.at,
        ),
    )


def reworded(before: Record, captured: Captured) -> Record:
    """Return a new revision of `before` with the words of an edit, trusted as the user's own."""
    words, at = text(captured.event), captured.event.at
    span = Span(captured.document, captured.event.turn, 0, len(words))
    provenance = msgspec.structs.replace(
        before.provenance,
        trust="user",
        quote=words[:QUOTE_LIMIT],
        said_at=at,
        spans=(span, *before.provenance.spans),
        evidence=(*before.provenance.evidence, Evidence(kind="corrected", span=span, trust="user", at=at)),
    )
    return msgspec.structs.replace(
        before,
        rev=before.rev + 1,
        content=words,
        description=line(words),
        tags=own_tags(before.tags, words),
        aliases=names_of(words),
        learnings={},  # they come from the earlier words
        relates_to=(),
        status="active",
        confidence=1.0,
        key="",
        value="",
        flags=flags_in(words, False),
        injection=None,
        provenance=provenance,
    )


def restated(before: Record, captured: Captured) -> Record:
    """Return the user's own statement in place of another author's: it rests on the user's words alone."""
    right = reworded(before, captured)
    span = right.provenance.spans[0]
    own = Provenance(
        author="user",
        source=span.document,
        trust="user",
        spans=(span,),
        quote=right.provenance.quote,
        said_at=right.provenance.said_at,
    )
    return msgspec.structs.replace(right, layer="L3", provenance=own)


def own_tags(tags: tuple[str, ...], words: str) -> tuple[str, ...]:
    """Return the type, the marks, and the keywords that occur in these words."""
    from ...stages.open_questions import is_undecided  # late: its expressions take long to compile

    said = folded(words)
    if tags[:1] == (OPEN_QUESTION,) and not is_undecided(words):
        tags = ("decision", *tags[1:])
    return tuple(tag for n, tag in enumerate(tags) if not n or tag in MARKS or folded(tag) in said)


def is_edited(record: Record) -> bool:
    """Whether the user edited a record; no stage may change its words then."""
    return any(evidence.kind == "corrected" for evidence in record.provenance.evidence)


def folded(words: str) -> str:
    """Normalise case, white space and Unicode form for comparison."""
    return normalize("NFC", normalize("NFD", " ".join(words.split())).casefold())


def is_on_probation(record: Record) -> bool:
    """Whether a record is unconfirmed only because it is new or old, so that one use confirms it (T8). In an agent's
    own memory that holds for what the agent said (P5), elsewhere only for the user's words. Use confirms nothing that
    looks like an injection."""
    is_own = record.pool.startswith(AGENT) and record.provenance.trust == "assistant"
    return record.status == "quarantined" and (is_own or record.provenance.trust == "user") and not record.flags


def stated_spans(records: Records, document: str, turn: str) -> list[tuple[Record, list[Span]]]:
    """Return the records that a turn states or states again, each with the spans of the turn that do. A summary only
    repeats the turn."""
    stating: list[tuple[Record, list[Span]]] = []
    for record in records.many(records.supported(document, turn)).values():
        if SUMMARY in record.tags:
            continue
        again = (item.span for item in record.provenance.evidence if item.kind == "restated")
        spans = [span for span in (*record.provenance.spans, *again) if (span.document, span.turn) == (document, turn)]
        if spans:
            stating.append((record, spans))
    return stating


def covered(words: str, start: int, end: int) -> str:
    """Return a text with these characters covered, which the user hid."""
    return f"{words[:start]}{COVER * (end - start)}{words[end:]}"


def speaker(captured: Captured) -> str:
    """Return the role that said a turn."""
    return captured.event.role if isinstance(captured.event, Said) else trust(captured.event)
