"""The names that lead to a pool: a repository, an id file, a checkout, a folder, another pool (P3).

Invariants: a name leads to one pool, the last one it was given; names are only added, a pool's id never changes; names
are places and marks of repositories and hold no text of a record.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...protocol.operation import AliasAdded
from ...protocol.reply import Logged
from ...protocol.shared_lines import parts_of
from ..storage.checksummed_rows import keys_with, unseal
from .projection import FoldTables, OperationBatch
from .records import digest

LONGEST_CHAIN = 8
"""Joined pools in a row, at most: the user joins them one by one."""


class Alias(msgspec.Struct, frozen=True, array_like=True):
    """One name and its pool; `by` is `memd` or `user`, `at` in microseconds."""

    name: str
    pool: str
    by: str
    evidence: str
    at: int


def of_file(id: str) -> str:
    """Return the name of a folder with an id file."""
    return f"id:{id}"


def of_checkout(folder: str) -> str:
    """Return the name of a checkout, from git's common folder, which all worktrees share."""
    return f"checkout:{folder}"


def of_folder(folder: str) -> str:
    """Return the name of a folder of this machine."""
    return f"folder:{folder}"


def of_pool(pool: str) -> str:
    """Return the name of a pool that the user joined to another."""
    return f"pool:{pool}"


def _facets(alias: Alias) -> Iterable[str]:
    root, remote = parts_of(alias.name)
    yield f"pool {alias.pool}"
    if root:
        yield f"root {root}"
    if remote:
        yield f"remote {remote}"


_decoder = msgspec.msgpack.Decoder(Alias)
_encode = msgspec.msgpack.Encoder().encode


class Aliases(FoldTables):
    """The fold of names."""

    databases = ("aliases", "facets")
    reads = (AliasAdded,)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        operation = entry.operation
        if not isinstance(operation, AliasAdded):
            return
        names, facets = map(self._table, self.databases)
        for name in operation.names:
            key = digest(name)
            if stored := batch.get(key, db=names):
                for facet in _facets(_decoder.decode(stored)):
                    batch.delete(digest(facet) + key, db=facets)
            alias = Alias(name, operation.pool, operation.by, operation.evidence, entry.at)
            batch.put(key, _encode(alias), db=names)
            for facet in _facets(alias):
                batch.put(digest(facet) + key, b"", db=facets)

    def get(self, name: str) -> Alias | None:
        """Return the alias of a name, or None."""
        stored = self._value("aliases", digest(name), "a name")
        return _decoder.decode(stored) if stored else None

    def of_pool(self, pool: str) -> list[Alias]:
        """Return the aliases of a pool, by name."""
        return self._with_facet(f"pool {pool}")

    def of_root(self, root_commit: str) -> list[Alias]:
        """Return the aliases of repositories with this root commit."""
        return self._with_facet(f"root {root_commit}") if root_commit else []

    def of_remote(self, remote: str) -> list[Alias]:
        """Return the aliases of repositories with this remote."""
        return self._with_facet(f"remote {remote}") if remote else []

    def _with_facet(self, facet: str) -> list[Alias]:
        names, facets = map(self._table, self.databases)
        aliases: list[Alias] = []
        with self.environment.read() as transaction:
            for key in keys_with(transaction, facets, digest(facet)):
                if stored := transaction.get(key, db=names):
                    aliases.append(_decoder.decode(unseal(key, stored, "a name")))
        return sorted(aliases, key=lambda alias: alias.name)

    def home(self, pool: str) -> str:
        """Return the pool that a pool was joined to, or itself."""
        for _ in range(LONGEST_CHAIN):
            alias = self.get(of_pool(pool))
            if alias is None or alias.pool == pool:
                break
            pool = alias.pool
        return pool

    def joined(self, pool: str) -> tuple[str, ...]:
        """Return a pool and all pools joined to it, directly or through others."""
        pools = [pool]
        for joined in pools:
            for alias in self.of_pool(joined):
                kind, _, other = alias.name.partition(":")
                if kind == "pool" and other not in pools:
                    pools.append(other)
        return tuple(pools)
