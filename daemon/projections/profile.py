"""What the profile is rendered from: the live records that may stand in it, by pool, in memory.

Comes in: the operations that change records. Goes out: cards by pool, and a revision that changes with them.
Invariants: identity and preference come from the user's own words alone (P-19); a retired record leaves at once; the
number of cards a pool is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from ...protocol.operation import Added, Invalidated, Updated
from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from .records import Records

STATIC = frozenset({"identity", "preference", "fact"})
DYNAMIC = frozenset({"decision", "convention", "lesson", "commitment"})
CARDS = 400
"""Cards kept a pool and part; the least important fall out first."""


def part(record: Record) -> str:
    """`static`, `dynamic`, or "" for a record that never stands in a profile."""
    if record.status not in LIVE or record.needs_review or record.flags:
        return ""
    mine = record.provenance.trust == "user"
    if mine and (record.type in STATIC or record.kind in ("fact", "persona") or record.layer != "L3"):
        return "static"
    if record.type in DYNAMIC or (mine and record.kind == "note"):
        return "dynamic"
    return ""


class ProfileCards:
    """The projection behind HOT: records by pool and part."""

    name = "profile"

    def __init__(self, records: Records, applied_seq: int) -> None:
        self._records = records
        self._cards: dict[str, dict[str, dict[str, Record]]] = {}
        self._lock = threading.Lock()
        self._applied = applied_seq
        self.version = 0
        self._show(records.everything())

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in."""
        return self._applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Move the records these operations touched in or out of the cards."""
        touched: set[str] = set()
        for entry in entries:
            match entry.operation:
                case Added() | Updated():
                    touched.add(entry.operation.record.id)
                    touched.update(retirement.id for retirement in entry.operation.retires)
                case Invalidated():
                    touched.add(entry.operation.id)
                case _:
                    pass
        if touched:
            self._show(self._records.many(touched).values())
            self.version += 1
        if entries:
            self._applied = entries[-1].seq

    def _show(self, records: Iterable[Record]) -> None:
        for record in records:
            with self._lock:
                for parts in self._cards.values():
                    for cards in parts.values():
                        cards.pop(record.id, None)
                name = part(record)
                if not name:
                    continue
                cards = self._cards.setdefault(record.pool, {}).setdefault(name, {})
                cards[record.id] = record
                if len(cards) > CARDS:
                    del cards[min(cards.values(), key=_rank).id]

    def cards(self, pool: str, name: str) -> list[Record]:
        """The records of a pool's part, in no order."""
        with self._lock:
            return list(self._cards.get(pool, {}).get(name, {}).values())


def _rank(record: Record) -> tuple[float, int, str]:
    return record.signal.importance, record.learned_at, record.id
