"""Authorises each request: verifies the pass, resolves the pools that the request reads, and limits what it may see.

Invariants: this happens before any ranking; a pool that does not exist is an error; a pass only restricts; nobody sees
anything from a revoked source (A1, A3, P2, P8); the holder of a pass gets the same answer for a pool, record or turn
that the pass does not cover as for one that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ....protocol.errors import Denied
from ....protocol.event import Repository
from ....protocol.record import Record
from ....protocol.request_fields import Request
from ....stages.batch import PERSONAL
from ...projections.placement import agent_pool
from ...projections.pool_directory import OperationCache, PoolDirectory, out_of_reach
from ...projections.stores import Stores
from ..service import OWNER, Caller, CaptureHandler, Handler, Permits, Reader, Reads
from .passes import Verifier, covers

USER = Caller()
"""The user of this home, for a request that reads nothing."""


class FolderScope(Protocol):
    """Resolves a folder, or a repository hint, to the pools that a question from there reads."""

    def __call__(self, cwd: str, repository: Repository | None) -> tuple[str, ...]: ...


class Authorisation:
    """Authorises a request once, before its handler is called. Any thread may call it."""

    def __init__(
        self,
        stores: Stores,
        passes: Verifier,
        directory: PoolDirectory,
        folder_scope: FolderScope,
        check_role: Callable[[Request], None] = lambda request: None,
        check_leases: Callable[[], None] = lambda: None,
    ) -> None:
        """`check_role`: raises Denied for a request that its surface may not send; `check_leases`: hides what may no
        longer be read."""
        self._stores, self._passes, self._directory, self._folder_scope = stores, passes, directory, folder_scope
        self._check_role, self._check_leases = check_role, check_leases
        self._cache = OperationCache(stores)

    def caller(self, request: Request, handler: Handler | CaptureHandler) -> Caller:
        """Return the caller with its limits and scope. Raises Denied, NotFound for a pool that does not exist."""
        self._check_role(request)
        if request.token and not handler.under_pass:
            raise Denied(
                f"this pass is read-only: `{request.__struct_config__.tag}` is not allowed",
                hint="run the command without MEMD_PASS",
            )
        if isinstance(handler, CaptureHandler):  # the hot path: a capture reads nothing
            return USER
        self._check_leases()
        reader = self.reader(request.token)
        hears = self.hears(reader)
        permits = self._permits(reader, hears)
        knows = self._knows(reader, hears, permits)
        scope = self._scope(request, reader, knows) if handler.scoped else ()
        return Caller(reader, scope, permits, hears, self._reads(reader, hears), knows)

    def reader(self, token: str) -> Reader:
        """Return the holder of a pass, or the user without one. Raises Denied."""
        if not token:
            return OWNER
        reader = self._passes.verify(token)
        grant = self._stores.grants.get(reader.grant)
        if grant is not None and grant.revoked_at:
            raise Denied(f"the pass of {reader.subject} is revoked", hint="`memd grants` lists the valid passes")
        return reader

    def _scope(self, request: Any, reader: Reader, knows: Callable[[str], bool] | None) -> tuple[str, ...]:
        """Return the pools to read: the personal pool first, an agent's pool last. Raises Denied, NotFound."""
        pools = self._directory.resolved(request.pools, knows, reader.pools)
        wanted = pools or self._folder_scope(request.cwd, request.repository)
        own = agent_pool(getattr(request, "agent", ""))
        if own and not pools and self._stores.sources.pool(own) is not None:
            wanted = (*wanted, own)
        allowed = tuple(pool for pool in wanted if knows is None or knows(pool))
        if not allowed:
            raise out_of_reach(reader.pools)
        return allowed

    def permits(self, reader: Reader = OWNER) -> Permits | None:
        """Return the test whether a reader may see a record; None if every record is permitted."""
        return self._permits(reader, self.hears(reader))

    def _permits(self, reader: Reader, hears: Callable[[str], bool] | None) -> Permits | None:
        if hears is None and reader == OWNER:
            return None

        def permitted(record: Record) -> bool:
            if not self._covers_pool(reader, record.pool) or (reader != OWNER and record.status == "hidden"):
                return False
            spans = record.provenance.spans
            return hears is None or (bool(spans) and all(hears(span.document) for span in spans))

        return permitted

    def _covers_pool(self, reader: Reader, pool: str) -> bool:
        """Whether a pass covers a pool, or the pool that the user joined it to."""
        return not reader.pools or self._home(pool) in reader.pools

    def _home(self, pool: str) -> str:
        return self._cache.get(("home", pool), lambda: self._stores.aliases.home(pool))

    def _reads(self, reader: Reader, hears: Callable[[str], bool] | None) -> Reads | None:
        """Return the test whether a reader may see the text of a turn; None if every turn is permitted.

        A turn is permitted if the pass covers the pool of its session and the pool of each record that rests on it: a
        record that the user moved takes its turns along.
        """
        if not reader.pools:
            return hears and (lambda document, turn: hears(document))
        records, sources = self._stores.records, self._stores.sources

        def permitted(document: str, turn: str) -> bool:
            session = sources.session(document)
            if session is None or not self._covers_pool(reader, session.opened.project or PERSONAL):
                return False
            resting = records.many(records.supported(document, turn)).values()
            return (hears is None or hears(document)) and all(self._covers_pool(reader, row.pool) for row in resting)

        return permitted

    def _knows(
        self, reader: Reader, hears: Callable[[str], bool] | None, permits: Permits | None
    ) -> Callable[[str], bool] | None:
        """Return the test whether a pool may be named to a reader; None if every pool may.

        A pass without pools covers a pool if one of its sources is a session of that pool or of one of its records.
        """
        if reader.pools:
            return lambda pool: pool in reader.pools
        if not reader.sources or hears is None or permits is None:
            return None

        def known(pool: str) -> bool:
            documents = self._stores.sources.documents(self._directory.joined([pool]))
            return (
                pool == PERSONAL or any(map(hears, documents)) or any(map(permits, self._stores.records.in_pool(pool)))
            )

        return lambda pool: self._cache.get((reader.sources, pool), lambda: known(pool))

    def hears(self, reader: Reader = OWNER) -> Callable[[str], bool] | None:
        """Return the test whether a reader may see the text of a document; None if every document is permitted."""
        grants = self._stores.grants
        revoked = self._cache.get("revoked", lambda: tuple(entry.source for entry in grants.sources()))
        sources = reader.sources
        if not revoked and not sources:
            return None

        def heard(document: str) -> bool:
            if any(covers(source, document) for source in revoked):
                return False
            return not sources or any(covers(source, document) for source in sources)

        return heard
