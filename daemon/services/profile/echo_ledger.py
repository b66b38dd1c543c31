"""What each session was given by recall and profile: names of records and of places in turns, never their words (W9).

Comes in: answers, with the session that asked. Goes out: for each session the texts that may come back as echoes.
Invariants: it holds names alone, so forgetting has nothing to do here; it is small and bounded; a restart finds it
again but for its last seconds; losing it costs an echo that is judged like any statement.
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
SESSIONS, EACH = 200, 300
"""Sessions that are known, and names kept of each: the newest."""

ANYONE = ""
"""The session of who did not say which one they are."""

HOLD = 6 * 3_600_000_000
"""How long, in microseconds, what was given to nobody in particular may come back in any session."""


class _GivenNames(msgspec.Struct):
    """Names with the time, in microseconds, when each was given last; the newest last."""

    records: dict[str, int] = {}
    spans: dict[Span, int] = {}


class _LedgerFile(msgspec.Struct):
    """As it lies on the disk: of each session the records and the places in turns, with times."""

    records: dict[str, dict[str, int]] = {}
    spans: dict[str, list[tuple[Span, int]]] = {}


class EchoLedger:
    """The memory of one home. The door notes, the distiller asks, the upkeep saves."""

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
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):  # never there, or damaged
            found = msgspec.json.decode(self._path.read_bytes(), type=_LedgerFile)
            for document in found.records.keys() | found.spans.keys():
                spans = dict(found.spans.get(document, ()))
                self._sessions[document] = _GivenNames(found.records.get(document, {}), spans)

    def note(self, document: str, ids: Iterable[str], spans: Iterable[Span] = ()) -> None:
        """These records, and these words of turns, were given to a session ("": to nobody in particular)."""
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

    def told(self, document: str, answer: Recalled) -> None:
        """This answer was given to a session, before anything was put in the place of its words."""
        records = [each.record.id for each in (*answer.hits, *answer.principles, *answer.linked)]
        lines = (line for each in (*answer.hits, *answer.turns) for line in each.lines)
        spans = [Span(turn.document, turn.turn, turn.start, turn.end) for turn in answer.turns]
        spans += [Span(line.document, line.turn, line.start, line.start + len(line.text)) for line in lines]
        self.note(document, records, spans)

    def to(self, captures: Iterable[Captured]) -> dict[str, Given]:
        """What the sessions of these captures were given, by document; those that were given nothing are left out."""
        times: dict[str, list[int]] = {}
        for captured in captures:
            times.setdefault(captured.document, []).append(micros(captured.event.at))
        found: dict[str, Given] = {}
        for document, said in times.items():
            ids, spans, own = self._names(document, min(said), max(said))
            if ids or spans:
                found[document] = Given(texts=tuple(self._texts(ids, spans)), ids=own)
        return found

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

    def save(self) -> None:
        """Write what changed since the last time; a full disk is passed over. Not for two threads at once."""
        with self._lock:
            if not self._dirty:
                return
            self._dirty = False
            records = {document: dict(each.records) for document, each in self._sessions.items()}
            spans = {document: list(each.spans.items()) for document, each in self._sessions.items()}
        with contextlib.suppress(OSError):
            replace(self._path, msgspec.json.encode(_LedgerFile(records, spans)))


T = TypeVar("T")


def _note(names: dict[T, int], fresh: Iterable[T], now: int) -> bool:
    """Put these last; whether there were any."""
    found = False
    for name in fresh:
        found = True
        names.pop(name, None)
        names[name] = now
    while len(names) > EACH:
        del names[next(iter(names))]
    return found


def _recent(names: Mapping[T, int], first: int, last: int) -> list[T]:
    return [name for name, at in names.items() if at - HOLD < last and first < at + HOLD]
