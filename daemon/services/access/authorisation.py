"""Authorises each request: verifies the pass, resolves the pools that the request reads, and limits what it may see.

Invariants: this happens before any ranking; a pool that does not exist is an error; a pass only restricts; nobody sees
anything from a revoked source (A1, A3, P2, P8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ....protocol.errors import Denied
from ....protocol.event import Repository
from ....protocol.record import Record
from ....protocol.request_fields import Request
from ...projections.placement import agent_pool
from ...projections.pool_directory import OperationCache, PoolDirectory
from ...projections.stores import Stores
from ..service import OWNER, Caller, CaptureHandler, Handler, Permits, Reader
from .passes import Verifier, covers

USER = Caller()
"""The user of this home, for a request that reads nothing."""


class FolderScope(Protocol):
    """Resolves a folder, or a repository hint, to the pools that a question from there reads."""

    def __call__(self, cwd: str, repository: Repository | None) -> tuple[str, ...]: ...


class Authorisation:
    """Authorises a request once, before its handler is called. Any thread may call it."""

    def __init__(self, stores: Stores, passes: Verifier, directory: PoolDirectory, folder_scope: FolderScope) -> None:
        self._stores, self._passes, self._directory, self._folder_scope = stores, passes, directory, folder_scope
        self._revoked = OperationCache(stores)

    def caller(self, request: Request, handler: Handler | CaptureHandler) -> Caller:
        """Return the caller with its limits and scope. Raises Denied, NotFound for a pool that does not exist."""
        if request.token and not handler.under_pass:
            raise Denied(
                f"this pass is read-only: `{request.__struct_config__.tag}` is not allowed",
                hint="run the command without MEMD_PASS",
            )
        if isinstance(handler, CaptureHandler):  # the hot path: a capture reads nothing
            return USER
        reader = self.reader(request.token)
        scope = self._scope(request, reader) if handler.scoped else ()
        hears = self.hears(reader)
        return Caller(reader, scope, _permits(reader, hears), hears)

    def reader(self, token: str) -> Reader:
        """Return the holder of a pass, or the user without one. Raises Denied."""
        if not token:
            return OWNER
        reader = self._passes.verify(token)
        grant = self._stores.grants.get(reader.grant)
        if grant is not None and grant.revoked_at:
            raise Denied(f"the pass of {reader.subject} is revoked", hint="`memd grants` lists the valid passes")
        return reader

    def _scope(self, request: Any, reader: Reader) -> tuple[str, ...]:
        """Return the pools to read: the personal pool first, an agent's pool last."""
        pools = tuple(dict.fromkeys(self._directory.named(pool) for pool in request.pools))
        wanted = pools or self._folder_scope(request.cwd, request.repository)
        own = agent_pool(getattr(request, "agent", ""))
        if own and not pools and self._stores.sources.pool(own) is not None:
            wanted = (*wanted, own)
        allowed = tuple(pool for pool in wanted if not reader.pools or pool in reader.pools)
        if not allowed:
            raise Denied(
                f"the pass of {reader.subject} does not allow reading {', '.join(wanted)}",
                hint=f"it allows {', '.join(reader.pools)}",
            )
        return allowed

    def permits(self, reader: Reader = OWNER) -> Permits | None:
        """Return the test whether a reader may see a record; None if every record is permitted."""
        return _permits(reader, self.hears(reader))

    def hears(self, reader: Reader = OWNER) -> Callable[[str], bool] | None:
        """Return the test whether a reader may see the text of a document; None if every document is permitted."""
        grants = self._stores.grants
        revoked = self._revoked.get("revoked", lambda: tuple(entry.source for entry in grants.sources()))
        sources = reader.sources
        if not revoked and not sources:
            return None

        def heard(document: str) -> bool:
            if any(covers(source, document) for source in revoked):
                return False
            return not sources or any(covers(source, document) for source in sources)

        return heard


def _permits(reader: Reader, hears: Callable[[str], bool] | None) -> Permits | None:
    if hears is None and not reader.pools:
        return None
    pools = reader.pools

    def permitted(record: Record) -> bool:
        if pools and record.pool not in pools:
            return False
        spans = record.provenance.spans
        return hears is None or (bool(spans) and all(hears(span.document) for span in spans))

    return permitted
