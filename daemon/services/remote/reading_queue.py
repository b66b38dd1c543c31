"""Which part of which session a remote model reads next (W4): ended ones, newest first, each turn once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import NamedTuple

from ....protocol.event import Captured, Said, text
from ....protocol.instant import micros
from ....protocol.record import Record
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from ..statements import covered, stated_spans
from .consent import ConsentCheck
from .outgoing import SessionPart, parts_of, unread
from .provider import RemoteChoice
from .pseudonyms import Surroundings, surroundings_of

TRIES = 3
"""How often a part is sent whose answer never came."""

SCANNED = 200
"""Most sessions that one look reads."""

PEOPLE_RECORDS = 2_000
"""Newest records of a pool that are searched for names of people."""

_UNANSWERED = frozenset({"failed", "timed out", "unknown"})
_TOO_LONG = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Statuses with which a server refuses this part, such as one that is longer than its model reads: the next one may
pass."""


class NextPart(NamedTuple):
    """A part of a session to be sent."""

    session: SessionEntry
    part: SessionPart

    @property
    def document(self) -> str:
        return self.session.opened.document


class ReadingQueue:
    """Finds parts. Any thread may call it."""

    def __init__(self, stores: Stores, consents: ConsentCheck) -> None:
        self._stores, self._consents = stores, consents
        self._reader = ""
        self._done: set[str] = set()

    def note(self, documents: Sequence[str]) -> None:
        """Look at these sessions again: they have new turns."""
        self._done -= set(documents)

    def next(self, choice: RemoteChoice) -> NextPart | None:
        """Return the next part that the chosen model may read, or None."""
        if choice.reader != self._reader:
            self._reader, self._done = choice.reader, set()
        scanned = 0
        for session in self.ended():
            document = session.opened.document
            if document in self._done or not self._consents.check(choice, session):
                continue
            if (scanned := scanned + 1) > SCANNED:
                return None
            part = next(self.parts(choice, session), None)
            if part is not None and not self._is_given_up(choice, document, part.upto):
                return NextPart(session, part)
            self._done.add(document)
        return None

    def ended(self) -> list[SessionEntry]:
        """Return the ended sessions and the ingested documents, newest first."""
        return sorted(filter(self._consents.is_ended, self._stores.sources.all_sessions()), key=self._at, reverse=True)

    def _at(self, session: SessionEntry) -> int:
        if session.closed_at:
            return micros(session.closed_at)
        return self._stores.archive.newest_at(session.opened.document)

    def is_unread(self, choice: RemoteChoice, session: SessionEntry) -> bool:
        """Return whether a session has turns that the chosen model was not sent. Reads only the captures after those
        that it was sent."""
        document = session.opened.document
        upto = self._stores.remote.read_upto(choice.reader, document)
        return not upto or bool(unread(self._stores.archive.turns_since(document, upto), choice.reader, upto))

    def parts(self, choice: RemoteChoice, session: SessionEntry) -> Iterator[SessionPart]:
        """Yield the parts of a session that the chosen model has not read, as they would be sent."""
        document = session.opened.document
        upto = self._stores.remote.read_upto(choice.reader, document)
        turns = unread(self._stores.archive.numbered(document), choice.reader, upto)
        if turns:
            said = [text(captured.event) for _, captured in turns]
            around = None if choice.trusted else self._surroundings(session, said)
            yield from parts_of(turns, self.shown, around, self._copied(session))

    def shown(self, captured: Captured) -> str:
        """Return the words of a turn without those of records that the user hid."""
        words = text(captured.event)
        for record, spans in stated_spans(self._stores.records, captured.document, captured.event.turn):
            if record.status == "hidden":
                for span in spans:
                    words = covered(words, span.start, min(span.end, len(words)))
        return words

    def _surroundings(self, session: SessionEntry, said: Sequence[str]) -> Surroundings:
        origin = session.opened.origin
        roots = [origin.cwd, origin.repository.root if origin.repository else ""]
        records: list[Record] = []
        for pool in dict.fromkeys((*self._consents.pools(session), "personal")):
            opened = self._stores.sources.pool(pool)
            roots += opened.roots if opened else ()
            records += self._stores.records.recent(pool, None, PEOPLE_RECORDS)
        return surroundings_of(roots, records, said)

    def _copied(self, session: SessionEntry) -> Callable[[Captured], bool]:
        """Return the test whether a turn is a copy of one of another session of the family (W13)."""
        if not session.opened.family:
            return lambda captured: False
        said = {
            (captured.event.at, captured.event.text)
            for other in self._stores.sources.relatives(session.opened.document)
            for captured in self._stores.archive.turns(other)
            if isinstance(captured.event, Said)
        }
        return lambda captured: (captured.event.at, text(captured.event)) in said

    def _is_given_up(self, choice: RemoteChoice, document: str, upto: int) -> bool:
        """Return whether the answer to a part never came, or the server refused the part, `TRIES` times."""
        calls = [call for call in self._stores.remote.calls() if call.reserved.document == document]
        tries = [call for call in calls if (call.reserved.reader, call.reserved.upto) == (choice.reader, upto)]
        in_vain = (call.outcome in _UNANSWERED or (call.settled and call.settled.status in _TOO_LONG) for call in tries)
        return sum(map(bool, in_vain)) >= TRIES
