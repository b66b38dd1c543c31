"""Removes raw captures by age and by size of each pool, except those that records rest on (T10, U3).

Invariants: only payload and blind are removed, headers stay and the chain verifies; captures after the distiller's
cursor stay; whether a turn is cited is checked again on the write thread at its removal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from ..config import Keep
from .archive import Archive, decode

SLICE = 256
DAY = 86_400 * 1_000_000
MB = 1_000_000


class StoredCapture(msgspec.Struct, frozen=True):
    """A capture that is still in the archive; `at` is its time of storage in microseconds."""

    seq: int
    at: int
    pool: str
    document: str
    turn: str
    size_bytes: int


class Retention:
    """Finds captures over their limit and removes them. `by_pool` are limits of single pools, `pool_of` returns a
    document's pool, `is_cited` whether a record rests on a turn."""

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

    def over_limit(
        self, upto: int, now: int, progress: Callable[[int], None] = lambda seq: None
    ) -> Iterator[StoredCapture]:
        """Yield captures that are too old, or the oldest of a pool that is too large, in order, except cited ones.

        Reads in slices and stops at the first capture below every limit; `now` in microseconds.
        """
        excess = self._excess(upto)
        shortest = min((keep.days for keep in self._limits if keep.days), default=0.0) * DAY
        for capture in self._stored(upto):
            progress(capture.seq)
            young = not shortest or now - capture.at <= shortest
            if young and not any(bytes_over > 0 for bytes_over in excess.values()):
                return
            keep = self._limit(capture.pool)
            old = bool(keep.days) and now - capture.at > keep.days * DAY
            if (old or excess.get(capture.pool, 0) > 0) and not self._is_cited(capture.document, capture.turn):
                if capture.pool in excess:
                    excess[capture.pool] -= capture.size_bytes
                yield capture

    def _excess(self, upto: int) -> dict[str, float]:
        """Return the bytes of each pool over its limit; reads nothing while the archive is below the smallest limit."""
        smallest = min((keep.mb for keep in self._limits if keep.mb), default=0.0) * MB
        if not smallest or self._archive.log.environment.size_bytes() <= smallest:
            return {}
        size: dict[str, int] = {}
        for capture in self._stored(upto):
            size[capture.pool] = size.get(capture.pool, 0) + capture.size_bytes
        return {pool: total - mb * MB for pool, total in size.items() if (mb := self._limit(pool).mb)}

    def _stored(self, upto: int) -> Iterator[StoredCapture]:
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
                yield StoredCapture(entry.seq, entry.header.at, pools[document], document, captured.event.turn, size)

    def remove(self, doomed: Sequence[StoredCapture]) -> int:
        """Remove the payloads of those captures that no record cites, and return their bytes. On the write thread."""
        uncited = [capture for capture in doomed if not self._is_cited(capture.document, capture.turn)]
        self._archive.expire([capture.seq for capture in uncited])
        return sum(capture.size_bytes for capture in uncited)
