"""The sessions memd has heard: when each began and ended, and what came of it (W2).

Comes in: `sessions` and `session`. Goes out: their replies. Invariant: nothing here writes, nor quotes what was said.
"""

from __future__ import annotations

from collections import Counter

from ....protocol.errors import MemdError, NotFound
from ....protocol.event import Ran, ToolCalled
from ....protocol.instant import from_micros, micros
from ....protocol.session import GetSession, ListSessions, SessionOutcome, SessionPage, SessionState
from ....stages.batch import PERSONAL
from ...projections.placement import documents_of
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from ..service import Handlers, Service, owner

SLICE = 500
INTERNAL = "memd:"
"""Documents of memd's own, such as the one that pointers to projects come from."""


class SessionsService(Service):
    """What is known of sessions, from projections and the archive."""

    name = "sessions"

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @property
    def handlers(self) -> Handlers:
        """Both on the slow lane."""
        return {ListSessions: owner("slow", self.list), GetSession: owner("slow", self.show)}

    def _all(self) -> list[SessionEntry]:
        return [each for each in self._stores.sources.all_sessions() if not each.opened.document.startswith(INTERNAL)]

    def list(self, request: ListSessions) -> SessionPage:
        """List sessions, newest first."""
        of_host = [each for each in self._all() if request.host in ("", each.opened.origin.host)]
        going_on = [each for each in of_host if _goes_on(each)]
        found = sorted(going_on if request.is_open else of_host, key=_began, reverse=True)
        shown = tuple(self._state(each) for each in found[: request.limit])
        return SessionPage(sessions=shown, total=len(found), going_on=len(going_on))

    def _state(self, session: SessionEntry) -> SessionState:
        opened = session.opened
        heard = self._stores.archive.newest_at(opened.document)
        return SessionState(
            document=opened.document,
            pool=opened.project,
            title=opened.origin.title,
            agent=opened.origin.agent,
            cwd=opened.origin.cwd,
            live=opened.origin.live,
            began_at=opened.at,
            heard_at=from_micros(heard) if heard else "",
            ended_at=session.closed_at,
            reason=session.reason,
        )

    def show(self, request: GetSession) -> SessionOutcome:
        """Return one session with its outcome. Raises NotFound."""
        session = self._find(request.id.strip())
        turns, troubles = Counter[str](), 0
        for captured in self._stores.archive.turns(session.opened.document):
            event = captured.event
            turns[str(event.__struct_config__.tag)] += 1
            failed_call = isinstance(event, ToolCalled) and event.outcome == "error"
            troubles += failed_call or (isinstance(event, Ran) and event.exit_status != 0)
        failed = sum(each.document == session.opened.document for each in self._stores.dead_letters.newest())
        return SessionOutcome(
            session=self._state(session), turns=turns, troubles=troubles, records=self._records(session), failed=failed
        )

    def _find(self, id: str) -> SessionEntry:
        sessions = self._all()
        found = [each for each in sessions if id in (each.opened.document, each.opened.origin.session)]
        if not found and id:
            found = [each for each in sessions if each.opened.document.startswith(id)]
            found += [each for each in sessions if each.opened.origin.session.startswith(id) and each not in found]
        if len(found) == 1:
            return found[0]
        what = f"{len(found)} sessions start with {id!r}" if found else f"no session {id!r}"
        raise NotFound(what, hint="give more of the id" if found else "`memd session list` shows them")

    def _records(self, session: SessionEntry) -> dict[str, int]:
        """How many records rest on a session, by status: they lie in its pool or in the user's own."""
        counts = Counter[str]()
        for pool in dict.fromkeys((session.opened.project or PERSONAL, PERSONAL)):
            before: tuple[int, str] | None = None
            while group := self._stores.records.recent(pool, before, SLICE):
                for record in group:
                    before = (record.learned_at, record.id)
                    if session.opened.document in documents_of(record) and record.status != "hidden":
                        counts[record.status] += 1
        return dict(counts)


def _goes_on(session: SessionEntry) -> bool:
    return session.opened.origin.live and not session.closed_at


def _began(session: SessionEntry) -> int:
    try:
        return micros(session.opened.at)
    except MemdError:
        return 0
