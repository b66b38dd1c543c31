"""The records of the profile: the best live records by pool and part, in memory.

Invariants: identity and preference come only from the user's words or promotion (P-19); a quarantined, flagged or
`needs_review` record is never in the static part; a retired record leaves at once; the number of cards is bounded.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from struct import pack
from typing import Literal

from ...protocol.operation import Distilled, Granted, Revoked
from ...protocol.record import LIVE, Record, explicit_id
from ...protocol.reply import Logged
from .projection import check_order
from .record_reducer import touched
from .records import Records, digest

Part = Literal["static", "recent", "threads"]
PARTS: tuple[Part, ...] = ("static", "recent", "threads")
"""Who the user is and what holds; what was decided and learnt lately; what somebody said they would do."""

RECENT = frozenset({"decision", "convention", "lesson", "event"})
WEIGHTY, NOTABLE = 0.75, 0.36
"""From this importance any other statement of the user is recent, and any fact but for one that an agent asked to keep:
they fill what the others leave."""

CARDS = 400
"""Cards kept a pool and part; the least important fall out first."""


def part(record: Record) -> Part | None:
    """The part of a profile that a record may stand in; None where it never does."""
    if record.status not in LIVE or record.flags:
        return None
    if record.layer != "L3" or record.pinned:
        return "static"
    if record.needs_review:
        return None
    mine = record.provenance.trust == "user"
    lasting = mine and (_is_lasting(record) or is_explicit(record))
    if lasting and record.status != "quarantined":
        return "static"
    if record.type == "commitment":
        return "threads"
    weighty = mine and record.kind != "edge" and record.signal.importance >= WEIGHTY
    notable = record.type == "fact" and record.signal.importance >= NOTABLE and (mine or not is_explicit(record))
    return "recent" if record.type in RECENT or lasting or weighty or notable else None


def _is_lasting(record: Record) -> bool:
    """Whether the user's words say something that lasts: a fact, a preference, who they are."""
    prefers = record.kind == "edge" and record.key.split(" ")[1:2] == ["prefers"]
    return prefers or record.kind in ("fact", "persona") or record.type in ("identity", "preference")


def is_explicit(record: Record) -> bool:
    """Whether the record is what somebody asked memd to remember, in so many words."""
    return any(record.id == explicit_id(span.document, span.turn) for span in record.provenance.spans[-1:])


def card_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """The row of a record that may stand in a profile, in order of its weight."""
    if name := part(record):
        yield _place(record.pool, name) + _weight(record), b""


def _place(pool: str, name: str) -> bytes:
    return digest(f"{name}\0{pool}")


def _weight(record: Record) -> bytes:
    """Sorts as layer, importance, time of learning, id (an IEEE double that is not negative sorts as its bytes)."""
    layer = {"L1": 2, "L2": 1}.get(record.layer, 0)
    return pack(">BdQ", layer, max(0.0, record.signal.importance), record.learned_at) + record.id.encode()


HEAD = 16 + 17
"""Bytes of a row's key before the id: the place, then layer, importance and time."""


class ProfileCards:
    """The projection behind HOT: records by pool and part, read when they are first asked for, then kept in step."""

    name = "profile"

    def __init__(self, records: Records, applied_seq: int) -> None:
        self._records = records
        self._cards: dict[tuple[str, Part], dict[str, Record]] = {}
        self._place: dict[str, tuple[str, Part]] = {}
        self._lock = threading.Lock()
        self._applied = applied_seq
        self._versions: Counter[str] = Counter()
        self._epoch = 0
        self.changed = threading.Event()
        """Set whenever a version changed: whoever renders ahead waits for it."""

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in."""
        return self._applied

    def version(self, pools: Sequence[str]) -> tuple[int, ...]:
        """Changes whenever a card of these pools does, or who may see what."""
        return (self._epoch, *(self._versions[pool] for pool in pools))

    def apply(self, entries: Sequence[Logged]) -> None:
        """Move the records these operations touched in or out of the cards."""
        check_order(self.name, self._applied, entries)
        ids = dict.fromkeys(id for entry in entries for id in touched(entry.operation))
        found = self._records.many(ids) if ids else {}
        stirred: set[str] = set()
        with self._lock:
            for id in ids:
                stirred |= self._show(id, found.get(id))
            if any(isinstance(entry.operation, Distilled) for entry in entries):  # what was said may close a thread
                stirred |= {pool for (pool, name), cards in self._cards.items() if name == "threads" and cards}
        self._versions.update(stirred)
        if any(isinstance(entry.operation, Granted | Revoked) for entry in entries):
            self._epoch += 1
            stirred.add("")
        if stirred:
            self.changed.set()
        if entries:
            self._applied = entries[-1].seq

    def _show(self, id: str, record: Record | None) -> set[str]:
        """Put a record where it stands now; the pools whose cards that changes."""
        stirred: set[str] = set()
        left = self._place.pop(id, None)
        if left is not None:
            stirred.add(left[0])
            cards = self._cards[left]
            was_full = len(cards) == CARDS
            del cards[id]
            if was_full:  # the next best may move up: read them again
                self._forget(left)
        name = part(record) if record is not None else None
        if record is None or name is None:
            return stirred
        stirred.add(record.pool)
        place = (record.pool, name)
        if place not in self._cards:
            return stirred
        cards = self._cards[place]
        cards[id], self._place[id] = record, place
        if len(cards) > CARDS:
            last = min(cards.values(), key=_weight).id
            del cards[last], self._place[last]
        return stirred

    def _forget(self, place: tuple[str, Part]) -> None:
        for id in self._cards.pop(place):
            del self._place[id]

    def cards(self, pool: str, name: Part) -> list[Record]:
        """The records of a pool's part, in no order."""
        place: tuple[str, Part] = (pool, name)
        with self._lock:
            if place not in self._cards:
                self._cards[place] = self._records.many(self._best(pool, name))
                self._place.update(dict.fromkeys(self._cards[place], place))
            return list(self._cards[place].values())

    def _best(self, pool: str, name: Part) -> list[str]:
        mark = _place(pool, name)
        ids: list[str] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("cards"))
            found = cursor.prev() if cursor.set_range(mark + b"\xff" * 8) else cursor.last()
            while found and len(ids) < CARDS and cursor.key().startswith(mark):
                ids.append(cursor.key()[HEAD:].decode())
                found = cursor.prev()
        return ids

    def reset(self, applied_seq: int) -> None:
        """Read everything anew from the tables, which are at `applied_seq`."""
        with self._lock:
            self._cards.clear()
            self._place.clear()
            self._applied = applied_seq
        self._epoch += 1
        self.changed.set()
