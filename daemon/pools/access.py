"""Which pools a question may read: decided before any ranking (P2, P8, Q2).

Comes in: the asker's folder, or pools it names. Goes out: pools in order of precedence. Invariants: own facts stand
before the project's; outside a repository only the personal pool is read, and what was said in that very folder; a
project that the user left is read by its name alone; a pool that does not exist is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.errors import NotFound
from ...protocol.event import Repository
from ...stages.batch import PERSONAL
from ..stores import Stores
from .identity import READ_S, Identity
from .pointer import is_left


class Access:
    """Resolves the scope of a read."""

    def __init__(self, identity: Identity, stores: Stores) -> None:
        self._identity, self._stores = identity, stores
        self._sources = stores.sources

    def scope(self, cwd: str, pools: Sequence[str], repository: Repository | None = None) -> tuple[str, ...]:
        """The pools to read, the user's own first. Raises NotFound for a pool that memd does not have."""
        if pools:
            return tuple(dict.fromkeys(self.named(pool) for pool in pools))
        if not cwd and repository is None:
            return (PERSONAL,)
        pool = self._identity.place(cwd, repository, wait_s=READ_S).pool
        if pool == PERSONAL or self._sources.pool(pool) is None or self.is_left(pool):
            return (PERSONAL,)
        return (PERSONAL, pool)

    def heard_in(self, scope: Sequence[str]) -> tuple[str, ...]:
        """The pools whose sessions are heard in a scope: its own and those that the user joined to them."""
        return tuple(dict.fromkeys(each for pool in scope for each in self._stores.aliases.joined(pool)))

    def is_left(self, pool: str) -> bool:
        """Whether the user left this project: it is read where it is named, and nowhere else (P4)."""
        return is_left(self._stores.records, pool)

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
