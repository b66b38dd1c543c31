"""The records of the profile: the best live records by pool and part, in memory.

Invariants: identity and preference come only from the user's words or promotion (P-19); a quarantined, flagged or
`needs_review` record is never in the static part; a retired record leaves at once; the number of cards is bounded.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from struct import pack
from typing import Literal

from ...protocol.operation import Distilled, Granted, Revoked
from ...protocol.record import LIVE, OPEN_QUESTION, Record, explicit_id
from ...protocol.reply import Logged
from ..storage.checksummed_rows import keys_before
from .projection import check_order
from .record_reducer import touched
from .records import Records, digest

Part = Literal["static", "recent", "threads"]
PARTS: tuple[Part, ...] = ("static", "recent", "threads")
"""Identity, preferences and conventions; recent decisions and lessons; open commitments and questions."""

RECENT = frozenset({"decision", "convention", "lesson", "event", "purpose"})
WEIGHTY, NOTABLE = 0.75, 0.36
"""From this importance any other statement of the user, or any fact that no agent asked to keep, is recent and fills
the space that the others leave."""

CARDS = 400
"""Cards of a pool's part, at most; the least important leave first."""


def part(record: Record) -> Part | None:
    """Return the part of a profile that a record may be in, or None."""
    if record.status not in LIVE or record.flags:
        return None
    if record.layer != "L3" or record.pinned:
        return "static"
    if record.needs_review:
        return None
    if record.type == OPEN_QUESTION:
        return "threads"
    mine = record.provenance.trust == "user"
    lasting = mine and (_is_lasting(record) or is_explicit(record))
    if lasting and record.status != "quarantined":
        return "static"
    if record.type == "commitment":
        return "threads"
    weighty = mine and record.kind != "edge" and record.signal.importance >= WEIGHTY
    notable = record.type == "fact" and record.signal.importance >= NOTABLE and (mine or not is_explicit(record))
    written = record.type == "procedure" and record.provenance.trust == "document"
    return "recent" if record.type in RECENT or lasting or weighty or notable or written else None


def _is_lasting(record: Record) -> bool:
    """Whether a record states something lasting: a fact, a preference, an identity."""
    prefers = record.kind == "edge" and record.key.split(" ")[1:2] == ["prefers"]
    return prefers or record.kind in ("fact", "persona") or record.type in ("identity", "preference")


def is_explicit(record: Record) -> bool:
    """Whether someone explicitly asked memd to remember the record."""
    return any(record.id == explicit_id(span.document, span.turn) for span in record.provenance.spans[-1:])


def card_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """Return the row of a record that may be in a profile, ordered by weight."""
    if name := part(record):
        yield _place(record.pool, name) + weight(record), b""


def _place(pool: str, name: str) -> bytes:
    return digest(f"{name}\0{pool}")


def weight(record: Record) -> bytes:
    """Return a key that sorts by layer, importance, `learned_at`, id (a nonnegative IEEE double sorts as its bytes)."""
    layer = {"L1": 2, "L2": 1}.get(record.layer, 0)
    return pack(">BdQ", layer, max(0.0, record.signal.importance), record.learned_at) + record.id.encode()


HEAD = 17
"""Bytes of layer, importance and time before the id in a row's key."""


class ProfileCards:
    """The projection of hot recall: records by pool and part, read on first use, then kept in step."""

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
        """Set when a version changed; the profile renderer waits for it."""

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation applied."""
        return self._applied

    def version(self, pools: Sequence[str]) -> tuple[int, ...]:
        """Return a version that changes with the cards of these pools and with grants."""
        return (self._epoch, *(self._versions[pool] for pool in pools))

    def apply(self, entries: Sequence[Logged]) -> None:
        """Move the records these operations touched in or out of the cards."""
        check_order(self.name, self._applied, entries)
        ids = dict.fromkeys(id for entry in entries for id in touched(entry.operation))
        records = self._records.many(ids) if ids else {}
        changed: set[str] = set()
        with self._lock:
            for id in ids:
                changed |= self._show(id, records.get(id))
            if any(isinstance(entry.operation, Distilled) for entry in entries):  # a new statement may close an item
                changed |= {pool for (pool, name), cards in self._cards.items() if name == "threads" and cards}
        self._versions.update(changed)
        if any(isinstance(entry.operation, Granted | Revoked) for entry in entries):
            self._epoch += 1
            changed.add("")
        if changed:
            self.changed.set()
        if entries:
            self._applied = entries[-1].seq

    def _show(self, id: str, record: Record | None) -> set[str]:
        """Move a record to its current part; return the pools whose cards change."""
        changed: set[str] = set()
        left = self._place.pop(id, None)
        if left is not None:
            changed.add(left[0])
            cards = self._cards[left]
            was_full = len(cards) == CARDS
            del cards[id]
            if was_full:  # read again, because another record may enter
                self._forget(left)
        name = part(record) if record is not None else None
        if record is None or name is None:
            return changed
        changed.add(record.pool)
        place = (record.pool, name)
        if place not in self._cards:
            return changed
        cards = self._cards[place]
        cards[id], self._place[id] = record, place
        if len(cards) > CARDS:
            last = min(cards.values(), key=weight).id
            del cards[last], self._place[last]
        return changed

    def _forget(self, place: tuple[str, Part]) -> None:
        for id in self._cards.pop(place):
            del self._place[id]

    def cards(self, pool: str, name: Part) -> list[Record]:
        """Return the records of a pool's part, in no order."""
        place: tuple[str, Part] = (pool, name)
        with self._lock:
            if place not in self._cards:
                self._cards[place] = self._records.many(self._best(pool, name))
                self._place.update(dict.fromkeys(self._cards[place], place))
            return list(self._cards[place].values())

    def _best(self, pool: str, name: Part) -> list[str]:
        environment = self._records.environment
        with environment.read() as transaction:
            keys = keys_before(transaction, environment.db("cards"), _place(pool, name))
            return [key[HEAD:].decode() for key in islice(keys, CARDS)]

    def reset(self, applied_seq: int) -> None:
        """Read everything again from the tables, which are at `applied_seq`."""
        with self._lock:
            self._cards.clear()
            self._place.clear()
            self._applied = applied_seq
        self._epoch += 1
        self.changed.set()
