"""What is written when a session is seen for the first time: its pool, new names of it, the pointer (P1, P2, P3).

Comes in: an origin. Goes out: the project its session feeds, decided for good. Invariants: write thread only; a
pool is opened before the session that feeds it; the pointer of a project is opened with its pool.
"""

from __future__ import annotations

from ....protocol.event import Origin
from ....protocol.operation import AliasAdded, AnyOperation, PoolOpened, SessionOpened
from ....stages.batch import PERSONAL
from ...projections import project_pointer
from ...projections.stores import Stores
from .identity import Identity, PoolIdentity, is_project


class PoolOpening:
    """Opens pools on the write thread."""

    def __init__(self, stores: Stores, identity: Identity) -> None:
        self._stores, self._identity = stores, identity

    def pool(self, origin: Origin, at: str) -> str:
        """The project pool of an origin, opened if it is new; "" for the user's own."""
        if not origin.cwd and origin.repository is None:
            return ""
        place = self._identity.place(origin.cwd, origin.repository, host=origin.host)
        self.open(place, at)
        return "" if place.pool == PERSONAL else place.pool

    def open(self, place: PoolIdentity, at: str) -> None:
        """Write down a pool that is new, and the names that lead to it from now on."""
        operations: list[AnyOperation] = []
        new = place.pool != PERSONAL and self._stores.sources.pool(place.pool) is None
        if new:
            roots = (place.root,) if place.root else ()
            operations.append(PoolOpened(pool=place.pool, title=place.title, roots=roots, evidence=place.evidence))
        if place.names:
            operations.append(AliasAdded(pool=place.pool, names=place.names, evidence=place.evidence))
        if operations:
            self._stores.commit(operations)
        if new and is_project(place.pool):
            self.point(place.pool, place.title, place.sight.remote, at)

    def point(self, pool: str, title: str, remote: str, at: str) -> None:
        """Open the pointer of a project, unless it was opened once."""
        if self._stores.records.get(project_pointer.pointer_id(pool)) is not None:
            return
        self._stores.take([project_pointer.seen(pool, title, at)])
        operations: list[AnyOperation] = []
        if self._stores.sources.session(project_pointer.DOCUMENT) is None:
            host, session = project_pointer.DOCUMENT.split(":")
            origin = Origin(host=host, session=session, live=False)
            operations.append(SessionOpened(document=project_pointer.DOCUMENT, origin=origin, project="", at=at))
        self._stores.commit([*operations, project_pointer.opened(pool, title, remote, at)])
