"""What recall and profile gave to each session, as names of records and spans, never as words (W9).

Invariants: it contains only names, so only forgetting the name of a session changes it; it is bounded; it survives a
restart except for its last seconds; if it is lost, an echo is judged like any other statement.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ....protocol.event import Captured
from ....protocol.instant import micros
from ....protocol.recall import Recalled
from ....protocol.record import Span
from ....stages.batch import Given
from ...projections.records import Records
from ...storage.archive import Archive
from ...storage.durable_files import replace

FILE = "given.json"
SESSIONS, NAMES = 200, 300
"""Most sessions, and most names of each; the newest stay."""

ANYONE = ""
"""The session of requests that name none."""

HOLD = 6 * 3_600_000_000
"""Microseconds in which text given without a session may come back in any session."""


class _GivenNames(msgspec.Struct):
    """Names with the time when each was given last, in microseconds; the newest last."""

    records: dict[str, int] = {}
    spans: dict[Span, int] = {}


class _LedgerFile(msgspec.Struct):
    """The file: records and spans of each session, with times."""

    records: dict[str, dict[str, int]] = {}
    spans: dict[str, list[tuple[Span, int]]] = {}


class EchoLedger:
    """The ledger of one home. Recall and profile write it, the distiller reads it, the index commits save it."""

    def __init__(
        self,
        folder: Path,
        records: Records,
        archive: Archive,
        now: Callable[[], int],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`now`: microseconds. `changed` is called when there is something to save."""
        self._changed = changed
        self._path, self._records, self._archive, self._now = folder / FILE, records, archive, now
        self._lock = threading.Lock()
        self._dirty = False
        self._sessions: dict[str, _GivenNames] = {}
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):  # missing or damaged
            file = msgspec.json.decode(self._path.read_bytes(), type=_LedgerFile)
            for document in file.records.keys() | file.spans.keys():
                spans = dict(file.spans.get(document, ()))
                self._sessions[document] = _GivenNames(file.records.get(document, {}), spans)

    def note(self, document: str, ids: Iterable[str], spans: Iterable[Span] = ()) -> None:
        """Record that a session received these records and spans ("": a request without a session)."""
        now = self._now()
        with self._lock:
            session = self._sessions.pop(document, None) or _GivenNames()
            self._sessions[document] = session
            noted = [_note(session.records, ids, now), _note(session.spans, spans, now)]
            self._dirty = self._dirty or any(noted)
            while len(self._sessions) > SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        if any(noted):
            self._changed()

    def note_answer(self, document: str, answer: Recalled) -> None:
        """Record that a session received an answer, given as it was before the outgoing screen."""
        records = [row.record.id for row in (*answer.hits, *answer.principles, *answer.linked)]
        lines = (line for result in (*answer.hits, *answer.turns) for line in result.lines)
        spans = [Span(turn.document, turn.turn, turn.start, turn.end) for turn in answer.turns]
        spans += [Span(line.document, line.turn, line.start, line.start + len(line.text)) for line in lines]
        self.note(document, records, spans)

    def to(self, captures: Iterable[Captured]) -> dict[str, Given]:
        """Return what the sessions of these captures received, by document; empty ones are left out."""
        times: dict[str, list[int]] = {}
        for captured in captures:
            times.setdefault(captured.document, []).append(micros(captured.event.at))
        given: dict[str, Given] = {}
        for document, said in times.items():
            ids, spans, own = self._names(document, min(said), max(said))
            if ids or spans:
                given[document] = Given(texts=tuple(self._texts(ids, spans)), ids=own)
        return given

    def _names(self, document: str, first: int, last: int) -> tuple[Sequence[str], Sequence[Span], tuple[str, ...]]:
        with self._lock:
            session = self._sessions.get(document) or _GivenNames()
            anyone = self._sessions.get(ANYONE) or _GivenNames()
            ids = [*session.records, *_recent(anyone.records, first, last)]
            spans = [*session.spans, *_recent(anyone.spans, first, last)]
            return ids, spans, tuple(session.records)

    def _texts(self, ids: Sequence[str], spans: Sequence[Span]) -> Iterable[str]:
        texts: dict[str, None] = {}
        for record in self._records.many(dict.fromkeys(ids)).values():
            texts.update(dict.fromkeys((record.content, record.description, record.provenance.quote)))
        for span in spans:
            if said := self._archive.span(span):
                texts.update(dict.fromkeys(line for line in said.splitlines() if line.strip()))
        return texts

    def forget(self, is_forgotten: Callable[[str], bool]) -> None:
        """Drop the sessions with such a document, and write the file."""
        with self._lock:
            for document in [document for document in self._sessions if document and is_forgotten(document)]:
                del self._sessions[document]
                self._dirty = True
        self.save()

    def save(self) -> None:
        """Write the file if something changed; a full disk is ignored. Not for two threads at once."""
        with self._lock:
            if not self._dirty:
                return
            self._dirty = False
            records = {document: dict(names.records) for document, names in self._sessions.items()}
            spans = {document: list(names.spans.items()) for document, names in self._sessions.items()}
        with contextlib.suppress(OSError):
            replace(self._path, msgspec.json.encode(_LedgerFile(records, spans)))


T = TypeVar("T")


def _note(names: dict[T, int], fresh: Iterable[T], now: int) -> bool:
    """Put these names last; return whether there were any."""
    noted = False
    for name in fresh:
        noted = True
        names.pop(name, None)
        names[name] = now
    while len(names) > NAMES:
        del names[next(iter(names))]
    return noted


def _recent(names: Mapping[T, int], first: int, last: int) -> list[T]:
    return [name for name, at in names.items() if at - HOLD < last and first < at + HOLD]
