"""The current state of projects and agents: read and changed by the user (C1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.event import HANDOVER, Captured, HandedOver, Origin, Stated, text
from ....protocol.operation import AnyOperation, SessionClosed, SessionOpened
from ....protocol.session import HandOver, HandoverTaken
from ....protocol.state import ChangeState, CurrentState, GetState, StateItem
from ....stages.batch import PERSONAL
from ..admission import admit
from ..core import Core
from ..events import CapturesCommitted
from ..service import Caller, Handler, Handlers, Service, owner
from .current_state import INTERNAL, StateReader, document_of, pool_of
from .handover import SessionTokens

CHANGEABLE = frozenset({"open", "watch"})


class StateService(Service):
    """Reads states on the slow lane, changes them on the write lane."""

    name = "state"

    def __init__(self, core: Core, open_project: Callable[[Origin, str], str]) -> None:
        """`open_project`: returns the project pool of an origin at a time, opened if it is new, "" for none."""
        self._open_project = open_project
        self._stores, self._gate, self._token = core.stores, core.gate, core.world.token
        self._captures = core.captures
        self.reader = StateReader(core.stores, core.directory.title, core.world.now)

    @property
    def handlers(self) -> Handlers:
        return {
            GetState: Handler("slow", self.state, scoped=True),
            ChangeState: Handler("write", self.change, scoped=True),
            HandOver: owner("write", self.hand_over),
        }

    def state(self, request: GetState, caller: Caller) -> CurrentState:
        """Return a state. Raises NotFound."""
        return self.reader.state(self._pool(request, caller), caller)

    def change(self, request: ChangeState, caller: Caller) -> CurrentState:
        """Change a state and return it. Raises NotFound for an unknown item, InvalidRequest for a state that changed
        since the user saw it."""
        pool = self._pool(request, caller)
        if pool == PERSONAL and not request.pools:  # nothing was captured in this folder yet
            here = Origin(host="memd", session="state", cwd=request.cwd, repository=request.repository)
            pool = self._open_project(here, request.at) or PERSONAL
        before = self.reader.state(pool, caller)
        if request.if_rev and request.if_rev != before.rev:
            raise InvalidRequest("the state has changed since you read it", hint="read it again and repeat the change")
        origin = Origin(host="memd", session=document_of(pool).partition(":")[2], live=False)
        captures = [admit(self._gate, origin, event) for event in self._events(request, before.items)]
        if any(isinstance(c.event, Stated) and not (c.event.closes or text(c.event).strip()) for c in captures):
            raise InvalidRequest("an item needs words", hint='for example: memd state add "migrate the billing tables"')
        self._write(origin, pool, request.at, captures)
        return self.reader.state(pool, caller)

    def hand_over(self, request: HandOver) -> HandoverTaken:
        """Keep an agent's hand-over with its session. Raises NotFound, InvalidRequest."""
        session = self._stores.sources.session(request.document)
        if session is None or request.document.startswith(INTERNAL):
            raise NotFound(f"no session {request.document!r}", hint="`memd session list` shows the sessions")
        parts = {name: getattr(request, name) for name in HANDOVER}
        if not any(parts.values()):
            raise InvalidRequest("the hand-over is empty", hint="name what is done, decided, open or closed")
        event = HandedOver(turn=f"handover-{self._token(4).hex()}", at=request.at, **parts)
        captured = admit(self._gate, session.opened.origin, event)
        lines = tuple(SessionTokens(self._stores.archive.turns(request.document)).checked(request))
        self._stores.take([captured])
        self._captures.publish(CapturesCommitted({request.document: not session.closed_at}, urgent=False))
        return HandoverTaken(lines=lines)

    def _pool(self, request: GetState | ChangeState, caller: Caller) -> str:
        if request.agent and not any(pool == f"agent/{request.agent}" for pool in caller.scope):
            raise NotFound(f"agent {request.agent!r} has no memory of its own", hint="`memd agents` lists the agents")
        return pool_of(caller.scope, request.agent)

    def _events(self, request: ChangeState, items: Sequence[StateItem]) -> Iterator[Stated]:
        at = request.at
        for id in request.close:
            item = _named(items, id)
            yield Stated(turn=self._id(), at=at, closes=item.id)
        for change in request.reword:
            item = _named(items, change.id)
            section = "watch" if item.section == "watch" else "open"
            yield Stated(turn=self._id(), at=at, closes=item.id, text=change.text, section=section)
        for words in request.add:
            yield Stated(turn=self._id(), at=at, text=words)
        for words in request.watch:
            yield Stated(turn=self._id(), at=at, text=words, section="watch")

    def _id(self) -> str:
        return f"u{self._token(4).hex()}"

    def _write(self, origin: Origin, pool: str, at: str, captures: Sequence[Captured]) -> None:
        if not captures:
            return
        self._stores.take(captures)
        if self._stores.sources.session(origin.document) is None:
            project = "" if pool == PERSONAL else pool
            opening: list[AnyOperation] = [
                SessionOpened(document=origin.document, origin=origin, project=project, at=at),
                SessionClosed(document=origin.document, at=at),
            ]
            self._stores.commit(opening)
        self._captures.publish(CapturesCommitted({origin.document: False}, urgent=False))


def _named(items: Sequence[StateItem], id: str) -> StateItem:
    """Return the changeable item of an id or an unambiguous prefix. Raises NotFound."""
    found = [item for item in items if item.section in CHANGEABLE and id and item.id.startswith(id)]
    if len(found) != 1:
        problem = f"{len(found)} items start with {id!r}" if found else f"no open or watched item {id!r}"
        raise NotFound(problem, hint="`memd state` shows the items with their ids")
    return found[0]
