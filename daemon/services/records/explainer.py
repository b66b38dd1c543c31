"""Why memd believes a record, from the captured line to the last decision on it (R4).

Comes in: a record. Goes out: the turns around its spans, every operation that touched it, what it replaced. Invariants:
read in the slow lane; `quote_holds` is checked against the archive, not assumed; an expired source is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable

from ....protocol.event import text
from ....protocol.fading import Reviewed
from ....protocol.operation import Added, Invalidated, Merged, Updated
from ....protocol.record import Record, Span
from ....protocol.reply import Change, Explained, Line, Logged
from ...projections.ports import RecordReader
from ...projections.sources import SourceTable
from ...storage.ports import CaptureStore, EventLog
from ..statements import speaker

BEFORE, AFTER = 2, 1


class Explainer:
    """Reads the archive and the journal for one record."""

    def __init__(self, records: RecordReader, sources: SourceTable, archive: CaptureStore, journal: EventLog) -> None:
        self._records, self._sources = records, sources
        self._archive, self._journal = archive, journal

    def why(self, record: Record, permits: Callable[[Record], bool] | None = None) -> Explained:
        """The whole way of a record, as far as its asker may see it (A1)."""
        span = record.provenance.spans[0]
        session = self._sources.session(span.document)
        replaced = [found for id in record.supersedes if (found := self._seen(id, permits)) is not None]
        by = self._seen(record.superseded_by, permits) if record.superseded_by else None
        last = self._records.successor(record)
        held_by = self._seen(last, permits) if last and last != record.superseded_by else None
        return Explained(
            record=record,
            lines=tuple(self._lines(span)),
            quote_holds=self._quote_holds(record, span),
            session=span.document,
            project=session.opened.project if session else "",
            changes=self.changes(record.id),
            replaced=tuple(replaced),
            replaced_by=by,
            held_by=held_by if held_by and held_by.status != "retired" else None,
        )

    def _seen(self, id: str, permits: Callable[[Record], bool] | None) -> Record | None:
        found = self._records.get(id)
        if found is None or found.status == "hidden" or (permits is not None and not permits(found)):
            return None
        return found

    def changes(self, id: str) -> tuple[Change, ...]:
        """Every operation that touched a record, in order."""
        entries = (self._journal.get(seq) for seq in self._sources.history(id))
        return tuple(_change(id, entry) for entry in entries if entry is not None)

    def _lines(self, span: Span) -> list[Line]:
        lines: list[Line] = []
        for _, captured in self._archive.around(span.document, span.turn, BEFORE, AFTER):
            words = text(captured.event)
            if words:
                cited = captured.event.turn == span.turn
                lines.append(
                    Line(turn=captured.event.turn, at=captured.event.at, who=speaker(captured), text=words, cited=cited)
                )
        return lines

    def _quote_holds(self, record: Record, span: Span) -> bool | None:
        said = self._archive.span(span)
        return None if said is None else said.startswith(record.provenance.quote)


def _change(id: str, entry: Logged) -> Change:
    kind = str(entry.operation.__struct_config__.tag)
    match entry.operation:
        case Added() | Updated() as operation if operation.record.id == id:
            return Change(seq=entry.seq, at=entry.at, kind=kind, rev=operation.record.rev, decision=operation.decision)
        case Added() | Updated() as operation:
            reason = next((retired.reason for retired in operation.retires if retired.id == id), "")
            return Change(seq=entry.seq, at=entry.at, kind="retired", by=operation.record.id, reason=reason)
        case Merged() as operation:
            return Change(seq=entry.seq, at=entry.at, kind=kind, decision=operation.decision)
        case Invalidated() as operation:
            return Change(seq=entry.seq, at=entry.at, kind=kind, by=operation.by, reason=operation.reason)
        case Reviewed() as operation:
            return Change(seq=entry.seq, at=entry.at, kind=kind, reason=operation.why)
        case _:
            return Change(seq=entry.seq, at=entry.at, kind=kind)
