"""Pools as callers name them: titles, abbreviations, projects that the user left, pools that were joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ...protocol.errors import Denied, InvalidRequest, NotFound
from ...stages.batch import PERSONAL
from .project_pointer import is_left
from .stores import Stores

VALUES = 256
"""Most values that are kept between two operations."""

T = TypeVar("T")


class OperationCache:
    """Values that hold until the next operation is applied."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._state: tuple[int, dict[object, Any]] = (-1, {})

    def get(self, key: object, find: Callable[[], T]) -> T:
        """Return the value of a key, found again after each operation."""
        seq, values = self._state
        if seq != self._stores.tables.applied_seq or len(values) > VALUES:
            values = {}
            self._state = (self._stores.tables.applied_seq, values)
        if key not in values:
            values[key] = find()
        return values[key]


def out_of_reach(covered: Sequence[str]) -> Denied:
    """Return the error of a request under a pass that covers none of the pools of the request.

    `covered`: the pools that the pass names. The error is the same for a pool that does not exist.
    """
    hint = f"it allows reading {', '.join(covered)}" if covered else "it allows reading only some hosts or sessions"
    return Denied("the pass does not cover the pools of this request", hint=hint)


class PoolDirectory:
    """Looks pools up in the projections. Any thread may call it."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._joined = OperationCache(stores)

    def title(self, pool: str) -> str:
        """Return the title of a pool; "" where it has none."""
        opened = self._stores.sources.pool(pool)
        return opened.title if opened else ""

    def is_left(self, pool: str) -> bool:
        """Whether the user left this project: it is read only where it is named (P4)."""
        return is_left(self._stores.records, pool)

    def joined(self, scope: Sequence[str]) -> tuple[str, ...]:
        """Return the pools whose sessions count in a scope: its own, and those that the user joined to them."""
        joined = self._stores.aliases.joined
        scope = tuple(scope)
        return self._joined.get(scope, lambda: tuple(dict.fromkeys(name for pool in scope for name in joined(pool))))

    def named(self, pool: str) -> str:
        """Return the full name of a pool, from its name, its title, or an unambiguous prefix.

        Raises NotFound, and InvalidRequest for "", which is a prefix of every name.
        """
        matches = self._matches(pool)
        if len(matches) == 1:
            return matches[0]
        known = self._stores.sources.pools()
        names = ", ".join([PERSONAL, *(f"{opened.pool} ({opened.title})" for opened in known)][:10])
        raise NotFound(f"{'several pools match' if matches else 'no pool'} {pool!r}", hint=f"there are: {names}")

    def writable(self, pool: str) -> str:
        """Return the full name of a pool to which the user assigns records. Raises NotFound, and InvalidRequest for a
        folder without a project."""
        name = self.named(pool)
        if name.startswith("unbound/"):
            raise InvalidRequest(
                f"the folder {self.title(name)} has no project yet",
                hint="`memd scope bind` makes the folder a project",
            )
        return name

    def _matches(self, pool: str) -> list[str]:
        if not pool:
            raise InvalidRequest("the name of the pool is empty", hint="`memd pools` lists them")
        known = self._stores.sources.pools()
        if pool == PERSONAL or any(pool == opened.pool for opened in known):
            return [pool]
        return [
            opened.pool
            for opened in known
            if pool == opened.title
            or any(name.startswith(pool) for name in (opened.pool, opened.pool.partition("/")[2]))
        ]

    def listed(
        self,
        names: Iterable[str],
        knows: Callable[[str], bool] | None,
        covered: Sequence[str] = (),
        *,
        past: bool = False,
    ) -> tuple[str, ...]:
        """Return the pools of a list: the named ones, or else all that the caller may know, in order, except those of
        projects that the user left (P4). `past`: also pools that have no record now. Raises as `resolved`."""
        if pools := self.resolved(names, knows, covered):
            return pools
        known = set(self._stores.records.tally())
        if past:
            known |= {PERSONAL, *(opened.pool for opened in self._stores.sources.pools())}
        return tuple(pool for pool in sorted(known) if (knows is None or knows(pool)) and not self.is_left(pool))

    def resolved(
        self, names: Iterable[str], knows: Callable[[str], bool] | None, covered: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Return the full names of the pools that a request names, each once.

        `knows`: tells whether the holder of a pass may know a pool. It gets the same answer for another pool as for one
        that does not exist: the name is left out. `covered`: the pools that the pass names. Raises NotFound, Denied if
        no name is left, InvalidRequest for "".
        """
        if knows is None:
            return tuple(dict.fromkeys(map(self.named, names)))
        candidates = [[pool for pool in self._matches(name) if knows(pool)] for name in names]
        pools = tuple(dict.fromkeys(matches[0] for matches in candidates if len(matches) == 1))
        if candidates and not pools:
            raise out_of_reach(covered)
        return pools
