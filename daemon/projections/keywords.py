"""The keyword index of records (R2, P-22).

Invariants: every record is found from the moment it is applied; a retired one only by a search of the past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ...protocol.errors import JournalCorrupt
from ...protocol.event import Captured, Said, text
from ...protocol.record import LIVE, Record, Span
from ...protocol.reply import Logged
from ...stages.batch import PERSONAL
from ...stages.categories import categories, digest
from ..storage.archive import Archive
from .aliases import Aliases
from .ports import RecordReader
from .projection import check_order
from .record_reducer import touched
from .records import Records
from .sources import SourceTable
from .terms import TermDocument, TermIndex

REACH = 200
"""Characters before and after a quote, and of the end of a question, that are indexed."""

REPLACED = 8
"""Records that a record replaced, itself or through others, whose words find it: the last ones."""

LAYOUT = "2"
"""Version of what the index holds beside the category words; another one makes another index."""

NEAR = 6
"""Captures of all sessions among which the previous turn is searched."""


PAST = frozenset(("retired", "archived"))
"""Statuses of records whose words find those that replaced them: what the user hid is not searched."""


def words(record: Record) -> str:
    """Return the searched text of a record: description, content, tags, key."""
    return "\n".join((record.description, record.content, " ".join(record.tags), record.key))


Beside = Callable[[Record], str]
"""Returns the text around a record's quote."""


def nothing(record: Record) -> str:
    """Return no surrounding text."""
    return ""


def beside(archive: Archive, sources: SourceTable, aliases: Aliases) -> Beside:
    """Return a function for the text around a live record's quote: its line, and the question right before its turn.

    Retention keeps only turns of live records, so others have none; nor has a record outside of its session's pool:
    text of a project never finds a personal record (P1).
    """

    def surroundings(record: Record) -> str:
        spans = record.provenance.spans
        if record.status not in LIVE or not spans or record.is_team:  # the archive has no line of another author
            return ""
        session = sources.session(spans[0].document)
        project = session.opened.project if session else ""
        if record.pool != (aliases.home(project) if project else PERSONAL):
            return ""
        try:
            seq, captured = archive.find(spans[0].document, spans[0].turn)
            return f"{_around(text(captured.event), spans[0])} {_asked(archive, seq, captured)}" if captured else ""
        except JournalCorrupt:  # the archive reports it; the record's own text finds it
            return ""

    return surroundings


def _asked(archive: Archive, seq: int, captured: Captured) -> str:
    """Return the end of the document's previous turn if it is a question; other documents may be between."""
    for number in range(seq - 1, max(0, seq - 1 - NEAR), -1):
        for _, before in archive.after(number - 1, 1):
            if before.document == captured.document and isinstance(before.event, Said):
                words = before.event.text.rstrip()
                return _end(words) if words.endswith("?") else ""
    return ""


def _around(turn: str, span: Span) -> str:
    """Return the text before and after a span, in its line."""
    before = turn[: span.start].rpartition("\n")[2]
    after = turn[span.end :].partition("\n")[0]
    if len(after) > REACH:
        after = after[:REACH].rpartition(" ")[0]
    return f"{_end(before)} {after}".strip()


def _end(words: str) -> str:
    """Return the last whole words: half a word may be half a secret, which no rule detects."""
    return words if len(words) <= REACH else words[-REACH:].partition(" ")[2]


def predecessors(records: RecordReader, record: Record) -> list[Record]:
    """Return the retired records that a live one replaced, itself or through others, the last ones first.

    Only those of its pool (P1) and visibility: a reader of the record might see them too.
    """
    found: list[Record] = []
    if record.status not in LIVE:
        return found
    seen, ahead = {record.id}, record.supersedes
    while ahead and len(found) < REPLACED:
        before = records.many(id for id in ahead if id not in seen).values()
        seen.update(ahead)
        found += [earlier for earlier in before if earlier.status in PAST and _is_open_to_same(earlier, record)]
        ahead = tuple(id for earlier in before for id in earlier.supersedes if id not in seen)
    return found[:REPLACED]


def _is_open_to_same(record: Record, other: Record) -> bool:
    same = record.pool == other.pool
    return same and record.provenance.visibility == other.provenance.visibility


def text_of(record: Record, records: RecordReader, around: Beside = nothing) -> TermDocument:
    """Return the document of a record in the index."""
    same = record.description == record.content
    named = " ".join(categories(record.content if same else f"{record.description}\n{record.content}"))
    replaced = "\n".join(map(words, predecessors(records, record))) if record.supersedes else ""
    return TermDocument(record.id, record.pool, record.status in LIVE, words(record), around(record), named, replaced)


class Keywords(TermIndex):
    """The index over the records, in groups by pool."""

    name = "keywords"

    def __init__(self, folder: Path, records: Records, around: Beside = nothing) -> None:
        """`around`: as from `beside`."""
        self._records, self.around = records, around
        super().__init__(folder, scoped=True, categories=f"{digest()}_{LAYOUT}")

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation applied, tail included."""
        return self.applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Put the records that these operations touched into the index."""
        check_order(self.name, self.applied, entries)
        if not entries:
            return
        seqs = {id: entry.seq for entry in entries for id in touched(entry.operation)}
        records = self._records.many(seqs)
        texts = [(self._text(record), seqs[id]) for id, record in records.items()]
        later = dict.fromkeys(self._records.successor(record) for record in records.values() if record.superseded_by)
        others = self._records.many(id for id in later if id and id not in records)
        texts += [(self._text(record), entries[-1].seq) for record in others.values()]
        self.put(texts, [id for id in seqs if id not in records], entries[-1].seq)

    def refresh(self, ids: Iterable[str]) -> None:
        """Index these records again, after the text around them changed, or what they replaced is gone."""
        records = self._records.many(ids).values()
        self.put([(self._text(record), self.applied) for record in records], (), self.applied)

    def fill(self, records: Iterable[Record], upto: int) -> None:
        """Index all these records, as of the operation `upto`."""
        self.put(((self._text(record), upto) for record in records), (), upto)

    def _text(self, record: Record) -> TermDocument:
        return text_of(record, self._records, self.around)
