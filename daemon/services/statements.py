"""Records in the user's own words: from `remember` before any model refines it, and after an edit.

A description is one line, so no text can forge a heading in a profile; an edit keeps the sources and adds its own.
"""

from __future__ import annotations

from unicodedata import normalize

import msgspec

from ...protocol.event import Captured, Noted, Said, text, trust
from ...protocol.record import CONSOLIDATED, PRINCIPLE, QUOTE_LIMIT, Evidence, Provenance, Record, Span, explicit_id
from ...stages.batch import PERSONAL
from .outgoing_screen import flags_in

LINE = 300
"""Characters of a description that no stage has written."""


MARKS = frozenset({PRINCIPLE, CONSOLIDATED})
"""Tags that are no keywords: no words of a turn."""


def line(words: str) -> str:
    """The words on one line, cut to `LINE` characters."""
    return " ".join(words.split())[:LINE]


def provisional(document: str, event: Noted, rev: int = 1) -> Record:
    """The whole text as a statement, in the user's own pool until route knows better (W1, A2)."""
    span = Span(document, event.turn, 0, len(event.text))
    flags = flags_in(event.text, event.role != "user")
    return Record(
        id=explicit_id(document, event.turn),
        pool=PERSONAL,
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
    """`before` in the words of an edit: a new revision, believed as the user's own."""
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
        learnings={},  # they were drawn from the words before
        status="active",
        confidence=1.0,
        key="",
        value="",
        flags=flags_in(words, False),
        injection=None,
        provenance=provenance,
    )


def own_tags(tags: tuple[str, ...], words: str) -> tuple[str, ...]:
    """The type, the marks, and of the keywords those that these words hold."""
    said = folded(words)
    return tuple(tag for n, tag in enumerate(tags) if not n or tag in MARKS or folded(tag) in said)


def is_edited(record: Record) -> bool:
    """Whether the user put a record into other words: no stage may touch them any more."""
    return any(evidence.kind == "corrected" for evidence in record.provenance.evidence)


def folded(words: str) -> str:
    """Words as they are compared: in any case, however they are spaced, and in one normal form of Unicode."""
    return normalize("NFC", normalize("NFD", " ".join(words.split())).casefold())


def is_on_probation(record: Record) -> bool:
    """Whether a record is quarantined only because it is new or old (T8): one use proves it. What the user did not say,
    or what looks like an injection, is not proven by being used."""
    return record.status == "quarantined" and record.provenance.trust == "user" and not record.flags


def speaker(captured: Captured) -> str:
    """Who said a turn, in a word."""
    return captured.event.role if isinstance(captured.event, Said) else trust(captured.event)
