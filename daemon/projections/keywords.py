"""The keyword index of records (R2, P-22).

Comes in: the operations that change a record. Goes out: BM25 scores by id. Invariants: every record is found from the
moment it is applied; a retired one only by those who ask for the past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ...protocol.errors import JournalCorrupt
from ...protocol.event import Captured, Said, text
from ...protocol.record import LIVE, Record, Span
from ...protocol.reply import Logged
from ...stages.batch import PERSONAL
from ..storage.archive import Archive
from .aliases import Aliases
from .projection import check_order
from .record_reducer import touched
from .records import Records
from .sources import SourceTable
from .terms import TermDocument, TermIndex

REACH = 200
"""Characters before and after a quote, and of the end of a question, that are looked at."""

NEAR = 6
"""Captures, of whatever session, among which the one before a turn is looked for."""


def words(record: Record) -> str:
    """What of a record is searched: its description, its words, its tags, its key."""
    return "\n".join((record.description, record.content, " ".join(record.tags), record.key))


Beside = Callable[[Record], str]


def nothing(record: Record) -> str:
    """Where nothing is known of what stood around a record."""
    return ""


def beside(archive: Archive, sources: SourceTable, aliases: Aliases) -> Beside:
    """What stands around the quote of a live record in its line of its turn, and what that turn was asked right before:
    words by which one asks for it, too.

    Retention keeps the turns of live records alone, so no other record has any; nor has one that lies elsewhere than
    its session does: what was said in a project never finds what is personal (P1).
    """

    def said(record: Record) -> str:
        spans = record.provenance.spans
        if record.status not in LIVE or not spans:
            return ""
        session = sources.session(spans[0].document)
        project = session.opened.project if session else ""
        if record.pool != (aliases.home(project) if project else PERSONAL):
            return ""
        try:
            seq, captured = archive.find(spans[0].document, spans[0].turn)
            return f"{_around(text(captured.event), spans[0])} {_asked(archive, seq, captured)}" if captured else ""
        except JournalCorrupt:  # the archive says so by itself: a record is found by its own words meanwhile
            return ""

    return said


def _asked(archive: Archive, seq: int, captured: Captured) -> str:
    """The end of the turn before this one, where that asks. Between the two, others may have spoken elsewhere."""
    for number in range(seq - 1, max(0, seq - 1 - NEAR), -1):
        for _, before in archive.after(number - 1, 1):
            if before.document == captured.document and isinstance(before.event, Said):
                words = before.event.text.rstrip()
                return _end(words) if words.endswith("?") else ""
    return ""


def _around(said: str, span: Span) -> str:
    """What stands before and after a span, in its line."""
    before = said[: span.start].rpartition("\n")[2]
    after = said[span.end :].partition("\n")[0]
    if len(after) > REACH:
        after = after[:REACH].rpartition(" ")[0]
    return f"{_end(before)} {after}".strip()


def _end(words: str) -> str:
    """The last words, whole: half a word may be half a secret, which no rule would know."""
    return words if len(words) <= REACH else words[-REACH:].partition(" ")[2]


def text_of(record: Record, around: Beside = nothing) -> TermDocument:
    """A record as the index takes it."""
    return TermDocument(record.id, record.pool, record.status in LIVE, words(record), around(record))


class Keywords(TermIndex):
    """The index over the records, in groups by pool."""

    name = "keywords"

    def __init__(self, folder: Path, records: Records, around: Beside = nothing) -> None:
        """`around`: what is known of the words beside a record (`beside`)."""
        self._records, self.around = records, around
        super().__init__(folder, scoped=True)

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in, tail included."""
        return self.applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Put the records these operations touched into the tail and before the index's writer."""
        check_order(self.name, self.applied, entries)
        if not entries:
            return
        seqs = {id: entry.seq for entry in entries for id in touched(entry.operation)}
        found = self._records.many(seqs)
        texts = [(text_of(record, self.around), seqs[id]) for id, record in found.items()]
        self.put(texts, [id for id in seqs if id not in found], entries[-1].seq)

    def refresh(self, ids: Iterable[str]) -> None:
        """Take these records anew: what stood beside them has changed."""
        found = self._records.many(ids).values()
        self.put([(text_of(record, self.around), self.applied) for record in found], (), self.applied)
