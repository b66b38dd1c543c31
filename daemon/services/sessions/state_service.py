"""The current state of projects and agents: read and changed by the user (C1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.event import Captured, Origin, Stated, text
from ....protocol.operation import AnyOperation, SessionClosed, SessionOpened
from ....protocol.state import ChangeState, CurrentState, GetState, StateItem
from ....stages.batch import PERSONAL
from ..admission import admit
from ..core import Core
from ..events import CapturesCommitted
from ..service import Caller, Handler, Handlers, Service
from .current_state import StateReader, document_of, pool_of

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
