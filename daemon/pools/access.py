"""Which pools a question may read: decided before any ranking (P2, P8, Q2).

Comes in: the asker's folder, or pools it names. Goes out: pools in order of precedence. Invariants: own facts stand
before the project's; outside a repository only the personal pool is read; a pool that does not exist is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.errors import NotFound
from ...protocol.event import Origin
from ...stages.batch import PERSONAL
from ..projections.sources import Sources
from .identity import Identity


class Access:
    """Resolves the scope of a read."""

    def __init__(self, identity: Identity, sources: Sources) -> None:
        self._identity = identity
        self._sources = sources

    def scope(self, cwd: str, pools: Sequence[str]) -> tuple[str, ...]:
        """The pools to read, the user's own first. Raises NotFound for a pool that memd does not have."""
        if pools:
            return tuple(dict.fromkeys(self.named(pool) for pool in pools))
        project = self._identity.project(Origin(host="local", session="", cwd=cwd)) if cwd else None
        if project is None:
            return (PERSONAL,)
        return (PERSONAL, *(pool.pool for pool in self._sources.pools() if pool.pool == project.pool))

    def named(self, pool: str) -> str:
        """The full name of a pool, from its name, its title, or an unambiguous beginning. Raises NotFound."""
        known = self._sources.pools()
        if pool == PERSONAL or any(pool == each.pool for each in known):
            return pool
        found = [each.pool for each in known if pool == each.title or each.pool.split("/", 1)[-1].startswith(pool)]
        if len(found) == 1:
            return found[0]
        names = ", ".join([PERSONAL, *(f"{each.pool} ({each.title})" for each in known)][:10])
        raise NotFound(f"{'several pools match' if found else 'no pool'} {pool!r}", hint=f"there are: {names}")
