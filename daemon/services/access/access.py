"""Which pools a question may read, and what of them: decided before any ranking (P2, P8, Q2, A1, A3).

Comes in: the asker's folder, or pools it names, and the pass it asks under. Goes out: pools in order of precedence, and
whether a record or a turn may be seen. Invariants: own facts stand before the project's; outside a repository only the
personal pool is read, and what was said in that very folder; a project that the user left is read by its name alone; a
pool that does not exist is an error; a pass only ever takes away; nothing of a revoked source is seen by anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ....protocol.errors import Denied, InvalidRequest, NotFound
from ....protocol.event import Repository
from ....protocol.record import Record
from ....stages.batch import PERSONAL
from ...projections.placement import agent_pool
from ...projections.project_pointer import is_left
from ...projections.stores import Stores
from ..pools.identity import READ_S, Identity
from ..pools.repo_probe import RepoEvidence
from ..service import OWNER, Permits, Reader
from .passes import Verifier, covers

FOLDERS = 256
"""Folders whose pools are remembered."""

T = TypeVar("T")


class ReadScope:
    """Resolves the scope of a read."""

    def __init__(self, identity: Identity, stores: Stores, passes: Verifier) -> None:
        self._identity, self._stores, self._passes = identity, stores, passes
        self._sources = stores.sources
        self._around_of: dict[str, tuple[RepoEvidence, int, tuple[str, ...]]] = {}
        self._standing: tuple[int, dict[object, Any]] = (-1, {})

    def reader(self, token: str) -> Reader:
        """Who asks: the bearer of a pass, or the user without one. Raises Denied."""
        if not token:
            return OWNER
        reader = self._passes.verify(token)
        grant = self._stores.grants.get(reader.grant)
        if grant is not None and grant.revoked_at:
            raise Denied(f"the pass of {reader.subject} is revoked", hint="`memd grants` lists what is granted")
        return reader

    def scope(
        self,
        cwd: str,
        pools: Sequence[str],
        repository: Repository | None = None,
        *,
        reader: Reader = OWNER,
        agent: str = "",
    ) -> tuple[str, ...]:
        """The pools to read, the user's own first, an agent's last.

        Raises NotFound for a pool that memd does not have, Denied where the pass reaches none of them.
        """
        wanted = tuple(dict.fromkeys(self.named(pool) for pool in pools)) or self._around(cwd, repository)
        if agent and not pools and self._sources.pool(own := agent_pool(agent)) is not None:
            wanted = (*wanted, own)
        allowed = tuple(pool for pool in wanted if not reader.pools or pool in reader.pools)
        if not allowed:
            raise Denied(
                f"the pass of {reader.subject} does not reach {', '.join(wanted)}",
                hint=f"it reaches {', '.join(reader.pools)}",
            )
        return allowed

    def _around(self, cwd: str, repository: Repository | None) -> tuple[str, ...]:
        """The pools of a folder; remembered for as long as it shows the same and the journal stands still."""
        if not cwd and repository is None:
            return (PERSONAL,)
        if repository is not None:
            return self._read_from(cwd, repository)
        sight, seq = self._identity.sight(cwd), self._stores.tables.applied_seq
        known = self._around_of.get(cwd)
        if known is None or known[:2] != (sight, seq):
            if len(self._around_of) >= FOLDERS:
                self._around_of.clear()
            known = self._around_of[cwd] = (sight, seq, self._read_from(cwd, None))
        return known[2]

    def _read_from(self, cwd: str, repository: Repository | None) -> tuple[str, ...]:
        pool = self._identity.place(cwd, repository, wait_s=READ_S).pool
        if pool == PERSONAL or self._sources.pool(pool) is None or self.is_left(pool):
            return (PERSONAL,)
        return (PERSONAL, pool)

    def permits(self, reader: Reader = OWNER) -> Permits | None:
        """Whether a reader may see a record; None where there is nothing to check: no pass and no revoked source."""
        hears = self.hears(reader)
        if hears is None and not reader.pools:
            return None
        pools = reader.pools

        def permitted(record: Record) -> bool:
            if pools and record.pool not in pools:
                return False
            spans = record.provenance.spans
            return hears is None or (bool(spans) and all(hears(span.document) for span in spans))

        return permitted

    def hears(self, reader: Reader = OWNER) -> Callable[[str], bool] | None:
        """Whether a reader may see what a document says; None where there is nothing to check."""
        grants = self._stores.grants
        revoked = self._still("revoked", lambda: tuple(each.source for each in grants.sources()))
        sources = reader.sources
        if not revoked and not sources:
            return None

        def heard(document: str) -> bool:
            if any(covers(source, document) for source in revoked):
                return False
            return not sources or any(covers(source, document) for source in sources)

        return heard

    def heard_in(self, scope: Sequence[str]) -> tuple[str, ...]:
        """The pools whose sessions are heard in a scope: its own and those that the user joined to them."""
        joined = self._stores.aliases.joined
        scope = tuple(scope)
        return self._still(scope, lambda: tuple(dict.fromkeys(each for pool in scope for each in joined(pool))))

    def _still(self, what: object, find: Callable[[], T]) -> T:
        """What was found, for as long as the journal stands still."""
        seq, found = self._standing
        if seq != self._stores.tables.applied_seq or len(found) > FOLDERS:
            found = {}
            self._standing = (self._stores.tables.applied_seq, found)
        if what not in found:
            found[what] = find()
        return found[what]

    def title(self, pool: str) -> str:
        """What people call a pool; "" where it has no name."""
        opened = self._sources.pool(pool)
        return opened.title if opened else ""

    def is_left(self, pool: str) -> bool:
        """Whether the user left this project: it is read where it is named, and nowhere else (P4)."""
        return is_left(self._stores.records, pool)

    def named(self, pool: str) -> str:
        """The full name of a pool, from its name, its title, or an unambiguous beginning. Raises NotFound, and
        InvalidRequest for "", with which all of them begin."""
        if not pool:
            raise InvalidRequest("a pool without a name", hint="`memd pools` lists them")
        known = self._sources.pools()
        if pool == PERSONAL or any(pool == each.pool for each in known):
            return pool
        found = [
            each.pool
            for each in known
            if pool == each.title or any(name.startswith(pool) for name in (each.pool, each.pool.partition("/")[2]))
        ]
        if len(found) == 1:
            return found[0]
        names = ", ".join([PERSONAL, *(f"{each.pool} ({each.title})" for each in known)][:10])
        raise NotFound(f"{'several pools match' if found else 'no pool'} {pool!r}", hint=f"there are: {names}")
