"""The sessions that memd captured: when each began and ended, and its outcome (W2), and its
turns. Nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ....protocol.errors import InvalidRequest, MemdError, NotFound
from ....protocol.event import AnyEvent, Checked, Committed, Ran, Reflected, ReflectionAsked, ToolCalled
from ....protocol.instant import from_micros, micros
from ....protocol.record import Record
from ....protocol.reflection import ReflectionCost
from ....protocol.session import (
    FindSessions,
    FoundSession,
    GetSession,
    GetSummary,
    GetTranscript,
    ListSessions,
    SessionOutcome,
    SessionPage,
    SessionsFound,
    SessionState,
    SessionTurns,
    Summary,
)
from ....stages.batch import PERSONAL
from ...projections.placement import documents_of
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from ..service import Caller, Handler, Handlers, Service, owner
from .reading import SessionReading, reflected_title
from .session_search import FoundDocument, SessionSearch
from .summary import lines_of
from .transcript import transcript

INTERNAL = "memd:"
"""Prefix of memd's own documents, such as the source of project pointers."""


class SessionsService(Service):
    """Reads sessions from the projections and the archive."""

    name = "sessions"

    def __init__(self, stores: Stores) -> None:
        self._stores, self._search = stores, SessionSearch(stores)

    @property
    def handlers(self) -> Handlers:
        return {
            ListSessions: owner("slow", self.list),
            GetSession: Handler("slow", self.show),
            GetTranscript: Handler("slow", self.transcript),
            GetSummary: Handler("slow", self.summary),
            FindSessions: Handler("slow", self.find),
        }

    def _all(self) -> list[SessionEntry]:
        return [
            entry for entry in self._stores.sources.all_sessions() if not entry.opened.document.startswith(INTERNAL)
        ]

    def list(self, request: ListSessions) -> SessionPage:
        """List sessions, newest first."""
        of_host = [entry for entry in self._all() if request.host in ("", entry.opened.origin.host)]
        going_on = [entry for entry in of_host if entry.opened.origin.live and not entry.closed_at]
        sessions = sorted(going_on if request.is_open else of_host, key=_began, reverse=True)
        shown = tuple(self._state(session) for session in sessions[: request.limit])
        return SessionPage(sessions=shown, total=len(sessions), going_on=len(going_on))

    def _state(self, session: SessionEntry) -> SessionState:
        opened = session.opened
        heard = self._stores.archive.newest_at(opened.document)
        resting = self._stores.records.many(self._stores.records.citing(opened.document))
        return SessionState(
            document=opened.document,
            pool=opened.project,
            title=opened.origin.title or reflected_title(self._stores.archive, opened.document),
            agent=opened.origin.agent,
            cwd=opened.origin.cwd,
            live=opened.origin.live,
            began_at=opened.at,
            heard_at=from_micros(heard) if heard else "",
            ended_at=session.closed_at,
            reason=session.reason,
            records=sum(record.status != "hidden" for record in resting.values()),
            is_undone=bool(self._stores.forgotten.hiding(opened.document)),
        )

    def show(self, request: GetSession, caller: Caller) -> SessionOutcome:
        """Return one session with its outcome, without commits and checks if its source was revoked. Raises
        NotFound."""
        session = self._find(request.id.strip())
        turns, troubles = Counter[str](), 0
        commits, checks = list[Committed](), dict[str, Checked]()
        is_heard = _is_heard(session.opened.document, caller)
        events = [captured.event for captured in self._stores.archive.turns(session.opened.document)]
        for event in events:
            turns[str(event.__struct_config__.tag)] += 1
            if isinstance(event, Committed):
                commits.append(event)
            elif isinstance(event, Checked):
                checks[event.what] = event
            failed_call = isinstance(event, ToolCalled) and event.outcome == "error"
            troubles += failed_call or (isinstance(event, Ran) and event.exit_status != 0)
        failed = sum(row.document == session.opened.document for row in self._stores.dead_letters.newest())
        return SessionOutcome(
            session=self._state(session),
            turns=turns,
            troubles=troubles,
            records=self._records(session),
            failed=failed,
            family=tuple(sorted(self._stores.sources.relatives(session.opened.document))),
            commits=tuple(commits) if is_heard else (),
            checks=tuple(checks.values()) if is_heard else (),
            reflections=_reflections(events),
        )

    def summary(self, request: GetSummary, caller: Caller) -> Summary:
        """Return the summary of a session, unless its source was revoked. Raises NotFound."""
        session = self._find(request.id.strip())
        _check_heard(session.opened.document, caller)
        records, captures = self._stores.records, self._stores.archive.turns(session.opened.document)
        reading = SessionReading(captures, records)
        return Summary(
            session=self._state(session),
            title=reading.title(session.opened.origin.title),
            last_at=reading.last_at,
            requests=len(reading.requests),
            edits=reading.files.total(),
            files=len(reading.files),
            commits=len(reading.commits),
            lines=lines_of(captures, records, self._resting_on(session)),
        )

    def find(self, request: FindSessions, caller: Caller) -> SessionsFound:
        """Return the sessions that have some words. Raises InvalidRequest for no words."""
        if not request.words.strip():
            raise InvalidRequest("no words to search for", hint='for example: memd session find "pear table"')
        entries = {e.opened.document: e for e in self._all() if request.host in ("", e.opened.origin.host)}
        found = self._search.find(request.words, entries, caller.hears)[: request.limit]
        return SessionsFound(found=tuple(self._found(entries[row.document], row) for row in found))

    def _found(self, session: SessionEntry, row: FoundDocument) -> FoundSession:
        state = self._state(session)
        title = state.title
        if not title:
            title = SessionReading(self._stores.archive.turns(row.document), self._stores.records).title("")
        return FoundSession(session=state, title=title, score=round(row.score, 3), line=row.line, turn=row.turn)

    def transcript(self, request: GetTranscript, caller: Caller) -> SessionTurns:
        """Return turns of a session, unless its source was revoked. Raises NotFound."""
        document = self._find(request.id.strip()).opened.document
        _check_heard(document, caller)
        return transcript(request, document, self._stores.archive.turns(document), self._stores.records)

    def _find(self, id: str) -> SessionEntry:
        sessions = self._all()
        matches = [entry for entry in sessions if id in (entry.opened.document, entry.opened.origin.session)]
        if not matches and id:
            names = ((entry, entry.opened.document, entry.opened.origin.session) for entry in sessions)
            matches = [entry for entry, *ids in names if any(name.startswith(id) for name in ids)]
        if len(matches) == 1:
            return matches[0]
        problem = f"{len(matches)} sessions start with {id!r}" if matches else f"no session {id!r}"
        raise NotFound(problem, hint="give more of the id" if matches else "`memd session list` shows them")

    def _records(self, session: SessionEntry) -> dict[str, int]:
        """Count the records from a session by status."""
        return dict(Counter(record.status for record in self._resting_on(session)))

    def _resting_on(self, session: SessionEntry) -> Iterator[Record]:
        """Yield the records from a session that are not hidden; they are in its pool or in the personal one."""
        for record in self._stores.records.newest(dict.fromkeys((session.opened.project or PERSONAL, PERSONAL))):
            if session.opened.document in documents_of(record) and record.status != "hidden":
                yield record


def _reflections(events: Sequence[AnyEvent]) -> ReflectionCost | None:
    """Return what the reflections on a session gave and cost, None without one (W4)."""
    asked = [event for event in events if isinstance(event, ReflectionAsked)]
    answers = [event for event in events if isinstance(event, Reflected)]
    if not asked and not answers:
        return None
    return ReflectionCost(
        asked=len(asked),
        answered=len(answers),
        statements=sum(len(answer.statements) for answer in answers),
        question_tokens=sum(event.tokens for event in asked),
        answer_tokens=sum(answer.tokens for answer in answers),
    )


def _is_heard(document: str, caller: Caller) -> bool:
    return caller.hears is None or caller.hears(document)


def _check_heard(document: str, caller: Caller) -> None:
    """Raise NotFound for a document whose source was revoked (A3)."""
    if not _is_heard(document, caller):
        raise NotFound(f"the source of {document} is revoked", hint="`memd grant --back --source HOST` reverses it")


def _began(session: SessionEntry) -> int:
    try:
        return micros(session.opened.at)
    except MemdError:
        return 0
