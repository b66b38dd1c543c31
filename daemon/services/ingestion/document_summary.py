"""The record that summarises a document: lines of its words, each with the number of its passage (W12).

Invariants: line `n` is the text of span `n`, on one line; the record rests on its spans, so forgetting one of them, or
the document, removes it; a summary that the user edited or rejected is not written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from msgspec.structs import astuple, replace

from ....protocol.event import Captured, Origin, Reflected, Said, Wrote, text
from ....protocol.ingestion import SUMMARY, summary_id
from ....protocol.instant import micros
from ....protocol.operation import Added, AnyOperation, Decision, Invalidated, Step, Updated
from ....protocol.record import LIVE, QUOTE_LIMIT, Provenance, Record, Span
from ....stages.batch import PERSONAL, Point
from ....stages.extractive_summary import numbered
from ...projections.stores import Stores
from ..outgoing_screen import flags_in, without_secrets
from ..statements import is_edited, line
from ..token_estimate import most_tokens_of
from ..withdrawal import is_withdrawn

VERSION = 1
"""Version of the way in which summaries are made."""

TITLE_LIMIT = 80


class DocumentReading(NamedTuple):
    """A document as the archive has it: its captures in the order of the text, and its pool. `is_whole`: no text of it
    has expired; `pointed`: words that another reader than memd's own model pointed at (W4)."""

    origin: Origin
    pool: str
    captures: tuple[Captured, ...]
    is_whole: bool = True
    pointed: tuple[Span, ...] = ()

    @property
    def digest(self) -> str:
        """The name of this state of the document; it reveals no words, because turns have names that reveal none."""
        hashed = blake2b(digest_size=10)
        for captured in self.captures:
            hashed.update(f"{captured.event.turn}\0{len(text(captured.event))}\0".encode())
        for span in self.pointed:
            hashed.update(f"{span.turn}\0{span.start}\0{span.end}\0".encode())
        return hashed.hexdigest()

    @property
    def maker(self) -> str:
        """The value of `distiller` in a summary of this state of the document."""
        return f"summary-{VERSION}#{self.digest}"


def read_document(stores: Stores, document: str, turns: Sequence[str]) -> DocumentReading | None:
    """Return what the archive has of these turns, of all turns without any; None for a document that memd does not know
    or that is undone."""
    session = stores.sources.session(document)
    if session is None or stores.forgotten.hiding(document):
        return None
    project = stores.aliases.home(session.opened.project) if session.opened.project else ""
    archived = stores.archive.turns(document)
    held = {captured.event.turn: captured for captured in archived if isinstance(captured.event, Said | Wrote)}
    named = (held.get(turn) for turn in dict.fromkeys(turns or held))
    captures = tuple(captured for captured in named if captured and text(captured.event).strip())
    texts = {captured.event.turn: text(captured.event) for captured in captures}
    readings = (captured.event for captured in archived if isinstance(captured.event, Reflected))
    without = [(document, turn) for turn in dict.fromkeys(turns) if turn not in held]
    forgotten = stores.forgotten.among(without)
    expired = any(stores.archive.seq_of(*turn) for turn in without if turn not in forgotten)
    pointed = sorted(_pointed(document, readings, texts), key=astuple)
    return DocumentReading(session.opened.origin, project or PERSONAL, captures, not expired, tuple(pointed))


def _pointed(document: str, readings: Iterable[Reflected], texts: Mapping[str, str]) -> set[Span]:
    """Return the words that readers pointed at, of which the document still has the passage."""
    quotes = (quote for reading in readings for statement in reading.statements for quote in statement.quotes)
    return {
        Span(document, quote.turn, quote.start, quote.end)
        for quote in quotes
        if quote.end <= len(texts.get(quote.turn, "")) and quote.end - quote.start <= QUOTE_LIMIT
    }


def summary_record(reading: DocumentReading, points: Sequence[Point]) -> Record:
    """Return the first revision of a summary."""
    document = reading.origin.document
    content = without_secrets("\n".join(numbered(points)))
    first = points[0]
    said = {captured.event.turn: captured for captured in reading.captures}
    latest = max((said[point.span.turn].event.at for point in points), key=micros)
    span, words = first.span, text(said[first.span.turn].event)
    return Record(
        id=summary_id(document),
        pool=reading.pool,
        kind="note",
        content=content,
        description=line(f"Summary of {_title(reading)}: {' '.join(point.words for point in points)}"),
        status="quarantined",
        tags=("note", SUMMARY),
        valid_from=latest,
        provenance=Provenance(
            author="document",
            source=document,
            trust="document",
            spans=tuple(point.span for point in points),
            quote=words[span.start : span.end][:QUOTE_LIMIT],
            said_at=latest,
            visibility=reading.origin.visibility,
            distiller=reading.maker,
        ),
    )


def operations(stores: Stores, reading: DocumentReading, record: Record | None) -> list[AnyOperation]:
    """Return what makes the summary of the document `record`, or ends it for None; [] if nothing changes. Call it on
    the write thread."""
    before = stores.records.get(summary_id(reading.origin.document))
    if record is not None and not _stands(stores, record):
        return []
    if before is None:
        steps = (Step("summary", "lines of the document, chosen by worth, each once"),)
        decision = Decision(action="add", reason="the user had a document taken in", steps=steps)
        return [Added(record=record, decision=decision)] if record else []
    if record is None:
        is_live = before.status in LIVE and not is_edited(before)
        at = max((captured.event.at for captured in reading.captures), key=micros, default=before.provenance.said_at)
        return [Invalidated(id=before.id, valid_to=at, reason="its document says it no longer")] if is_live else []
    if not is_open(stores, before) or (before.status in LIVE and before.content == record.content):
        return []
    fresh = replace(record, rev=before.rev + 1, pool=before.pool, placed=before.placed, pinned=before.pinned)
    return [Updated(record=fresh, decision=Decision(action="update", reason="the document changed"))]


def is_open(stores: Stores, before: Record) -> bool:
    """Whether memd may write a summary again: the user neither edited nor rejected nor hid it."""
    return not is_edited(before) and (before.status in {*LIVE, "archived"} or is_withdrawn(stores, before))


def _stands(stores: Stores, record: Record) -> bool:
    """Whether every passage is still in the archive as it was read, and none was forgotten meanwhile."""
    turns = ((span.document, span.turn) for span in record.provenance.spans)
    if stores.forgotten.among(turns) or stores.forgotten.hiding(record.provenance.source):
        return False
    quoted = (stores.archive.span(span) for span in record.provenance.spans)
    lines = (shown.rpartition(" [§")[0] for shown in record.content.split("\n"))
    return all(
        words is not None and without_secrets(" ".join(words.split())) == shown
        for words, shown in zip(quoted, lines, strict=True)
    )


def _title(reading: DocumentReading) -> str:
    """Return the name of a document in quotation marks; none that reads like an order to an agent."""
    title = " ".join(reading.origin.title.split())[:TITLE_LIMIT]
    return f"“{without_secrets(title)}”" if title and not flags_in(title) else "a document"


def price(point: Point) -> int:
    """Return the tokens of a line with its pointer."""
    return most_tokens_of(f"{point.words} [§999]\n")
