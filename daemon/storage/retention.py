"""Removes raw captures by age and by size of each pool, except those that records rest on (T10, U3).

Invariants: only payload and blind are removed, headers stay and the chain verifies; captures after the distiller's
cursor stay; whether a turn is cited is checked again on the write thread at its removal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from ..config import Keep
from .archive import Archive, decode

SLICE = 256
DAY = 86_400 * 1_000_000
MB = 1_000_000


class Held(msgspec.Struct, frozen=True):
    """A capture that is still in the archive: where, when it was taken (microseconds), whose, how big."""

    seq: int
    at: int
    pool: str
    document: str
    turn: str
    size_bytes: int


class Retention:
    """Finds what is over its limit and removes it. `by_pool` are the limits of the pools that have their own,
    `pool_of` gives a document's pool, `is_cited` whether a record rests on a turn."""

    def __init__(
        self,
        archive: Archive,
        keep: Keep,
        by_pool: Mapping[str, Keep],
        pool_of: Callable[[str], str],
        is_cited: Callable[[str, str], bool],
    ) -> None:
        self._archive = archive
        self._keep, self._by_pool, self._limits = keep, by_pool, (keep, *by_pool.values())
        self._pool_of, self._is_cited = pool_of, is_cited

    def _limit(self, pool: str) -> Keep:
        return self._by_pool.get(pool, self._keep)

    def over_limit(self, upto: int, now: int, progress: Callable[[int], None] = lambda seq: None) -> Iterator[Held]:
        """What is too old, or the oldest of a pool that is too big, in order; cited turns count, but are spared.

        Reads in slices and stops at the first capture that no limit can reach; `now` in microseconds.
        """
        excess = self._excess(upto)
        shortest = min((keep.days for keep in self._limits if keep.days), default=0.0) * DAY
        for each in self._held(upto):
            progress(each.seq)
            young = not shortest or now - each.at <= shortest
            if young and not any(bytes_over > 0 for bytes_over in excess.values()):
                return
            keep = self._limit(each.pool)
            old = bool(keep.days) and now - each.at > keep.days * DAY
            if (old or excess.get(each.pool, 0) > 0) and not self._is_cited(each.document, each.turn):
                if each.pool in excess:
                    excess[each.pool] -= each.size_bytes
                yield each

    def _excess(self, upto: int) -> dict[str, float]:
        """Bytes that each pool is over its limit; nothing is read while the whole archive is below the smallest."""
        smallest = min((keep.mb for keep in self._limits if keep.mb), default=0.0) * MB
        if not smallest or self._archive.log.environment.size_bytes() <= smallest:
            return {}
        size: dict[str, int] = {}
        for each in self._held(upto):
            size[each.pool] = size.get(each.pool, 0) + each.size_bytes
        return {pool: total - mb * MB for pool, total in size.items() if (mb := self._limit(pool).mb)}

    def _held(self, upto: int) -> Iterator[Held]:
        pools: dict[str, str] = {}
        after = 0
        while after < upto and (group := self._archive.log.slice(after, SLICE)):
            after = group[-1].seq
            for entry in group:
                captured = decode(entry) if entry.seq <= upto else None
                if captured is None:
                    continue
                document = captured.document
                if document not in pools:
                    pools[document] = self._pool_of(document)
                size = len(entry.payload or b"")
                yield Held(entry.seq, entry.header.at, pools[document], document, captured.event.turn, size)

    def remove(self, doomed: Sequence[Held]) -> int:
        """Remove the words of these captures, but for those cited by now; bytes removed. On the write thread."""
        gone = [each for each in doomed if not self._is_cited(each.document, each.turn)]
        self._archive.expire([each.seq for each in gone])
        return sum(each.size_bytes for each in gone)
