"""What the profile is rendered from: the live records that may stand in it, by pool, the best of them in memory.

Comes in: the operations that change records. Goes out: cards by pool, and a revision that changes with them.
Invariants: identity and preference come from the user's own words alone (P-19); a retired record leaves at once; the
number of cards a pool is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from struct import pack

from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from .belief import touched
from .projection import check_order
from .records import Records, digest

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


def card_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """The row of a record that may stand in a profile, in order of its weight."""
    if name := part(record):
        yield _place(record.pool, name) + _weight(record), b""


def _place(pool: str, name: str) -> bytes:
    return digest(f"{name}\0{pool}")


def _weight(record: Record) -> bytes:
    """Sorts as importance, then time of learning, then id (an IEEE double that is not negative sorts as its bytes)."""
    return pack(">dQ", max(0.0, record.signal.importance), record.learned_at) + record.id.encode()


class ProfileCards:
    """The projection behind HOT: records by pool and part, read when they are first asked for, then kept in step."""

    name = "profile"

    def __init__(self, records: Records, applied_seq: int) -> None:
        self._records = records
        self._cards: dict[tuple[str, str], dict[str, Record]] = {}
        self._place: dict[str, tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._applied = applied_seq
        self.version = 0

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in."""
        return self._applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Move the records these operations touched in or out of the cards."""
        check_order(self.name, self._applied, entries)
        ids = dict.fromkeys(id for entry in entries for id in touched(entry.operation))
        if ids:
            found = self._records.many(ids)
            with self._lock:
                for id in ids:
                    self._show(id, found.get(id))
            self.version += 1
        if entries:
            self._applied = entries[-1].seq

    def _show(self, id: str, record: Record | None) -> None:
        left = self._place.pop(id, None)
        if left is not None:
            cards = self._cards[left]
            was_full = len(cards) == CARDS
            del cards[id]
            if was_full:  # the next best may move up: read them again
                self._forget(left)
        name = part(record) if record is not None else ""
        if record is None or not name or (record.pool, name) not in self._cards:
            return
        place = (record.pool, name)
        cards = self._cards[place]
        cards[id], self._place[id] = record, place
        if len(cards) > CARDS:
            last = min(cards.values(), key=_weight).id
            del cards[last], self._place[last]

    def _forget(self, place: tuple[str, str]) -> None:
        for id in self._cards.pop(place):
            del self._place[id]

    def cards(self, pool: str, name: str) -> list[Record]:
        """The records of a pool's part, in no order."""
        place = (pool, name)
        with self._lock:
            if place not in self._cards:
                self._cards[place] = self._records.many(self._best(pool, name))
                self._place.update(dict.fromkeys(self._cards[place], place))
            return list(self._cards[place].values())

    def _best(self, pool: str, name: str) -> list[str]:
        mark = _place(pool, name)
        ids: list[str] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("cards"))
            found = cursor.prev() if cursor.set_range(mark + b"\xff" * 8) else cursor.last()
            while found and len(ids) < CARDS and cursor.key().startswith(mark):
                ids.append(cursor.key()[32:].decode())
                found = cursor.prev()
        return ids

    def reset(self, applied_seq: int) -> None:
        """Read everything anew from the tables, which are at `applied_seq`."""
        with self._lock:
            self._cards.clear()
            self._place.clear()
            self._applied = applied_seq
        self.version += 1
