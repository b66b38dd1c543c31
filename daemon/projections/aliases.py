"""By which names a folder leads to a pool: a repository, an id file, a checkout, a folder, another pool (P3).

Comes in: `alias_added`. Goes out: the pool that a name leads to, the names of a pool. Invariants: a name leads to one
pool, the one it was given last; a pool's identity is never written anew, only names are added; names are places and
marks of repositories, no word of any record.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...protocol.operation import AliasAdded
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from .projection import OperationBatch
from .records import Records, digest

LONGEST_WAY = 8
"""Pools that lead on to pools, at most: the user joins them one by one."""


class Alias(msgspec.Struct, frozen=True, array_like=True):
    """One name, where it leads, on whose word (`memd` or `user`) and why; `at` in microseconds."""

    name: str
    pool: str
    by: str
    evidence: str
    at: int


def of_repository(root_commit: str, remote: str) -> str:
    """The name of a repository; one of both may be unknown ("")."""
    return f"repository:{root_commit}@{remote}"


def parts_of(name: str) -> tuple[str, str]:
    """Root commit and remote in the name of a repository; two empty texts for any other name."""
    kind, _, rest = name.partition(":")
    root, _, remote = rest.partition("@")
    return (root, remote) if kind == "repository" else ("", "")


def of_file(id: str) -> str:
    """The name of whatever carries an id file."""
    return f"id:{id}"


def of_checkout(folder: str) -> str:
    """The name of a checkout, by the folder git keeps its history in: all worktrees share it."""
    return f"checkout:{folder}"


def of_folder(folder: str) -> str:
    """The name of a folder of this machine."""
    return f"folder:{folder}"


def of_pool(pool: str) -> str:
    """The name of a pool that the user joined to another."""
    return f"pool:{pool}"


def _facets(alias: Alias) -> Iterable[str]:
    """What an alias is found by, besides its name."""
    root, remote = parts_of(alias.name)
    yield f"pool {alias.pool}"
    if root:
        yield f"root {root}"
    if remote:
        yield f"remote {remote}"


_decoder = msgspec.msgpack.Decoder(Alias)
_encode = msgspec.msgpack.Encoder().encode


class Aliases:
    """The fold of names."""

    databases = ("aliases", "facets")
    reads = (AliasAdded,)

    def __init__(self, records: Records) -> None:
        self._records = records

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        operation = entry.operation
        if not isinstance(operation, AliasAdded):
            return
        names, facets = (self._records.environment.db(name) for name in self.databases)
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
        """Where a name leads, or None."""
        key = digest(name)
        with self._records.environment.read() as transaction:
            stored = transaction.get(key, db=self._records.environment.db("aliases"))
        return _decoder.decode(unseal(key, stored, "a name")) if stored else None

    def of_pool(self, pool: str) -> list[Alias]:
        """The names that lead to a pool, in order of the alphabet."""
        return self._found(f"pool {pool}")

    def of_root(self, root_commit: str) -> list[Alias]:
        """The names of repositories with this root commit."""
        return self._found(f"root {root_commit}") if root_commit else []

    def of_remote(self, remote: str) -> list[Alias]:
        """The names of repositories with this remote."""
        return self._found(f"remote {remote}") if remote else []

    def _found(self, facet: str) -> list[Alias]:
        mark = digest(facet)
        names, facets = (self._records.environment.db(name) for name in self.databases)
        aliases: list[Alias] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(facets)
            found = cursor.set_range(mark)
            while found and cursor.key().startswith(mark):
                key = cursor.key()[len(mark) :]
                if stored := transaction.get(key, db=names):
                    aliases.append(_decoder.decode(unseal(key, stored, "a name")))
                found = cursor.next()
        return sorted(aliases, key=lambda alias: alias.name)

    def home(self, pool: str) -> str:
        """The pool that a pool leads to: itself, unless the user joined it to another."""
        for _ in range(LONGEST_WAY):
            alias = self.get(of_pool(pool))
            if alias is None or alias.pool == pool:
                break
            pool = alias.pool
        return pool

    def joined(self, pool: str) -> tuple[str, ...]:
        """A pool and those that the user joined to it, however far away: what their sessions say belongs to it."""
        found = [pool]
        for each in found:
            for alias in self.of_pool(each):
                kind, _, other = alias.name.partition(":")
                if kind == "pool" and other not in found:
                    found.append(other)
        return tuple(found)
