"""The counters of every record: candidates and uses apart, strength, level, and how each pool has slept (R6, T3-T7).

Comes in: what touches a record, `counted`, `slept`, `restored`, `folded`. Goes out: signals as they are now, and the
weakest records of a pool. Invariants: a record has one tally from its first operation to its redaction; sleep changes
one row of its pool; `fading` holds the records that may fade, by pool, kind and level in order of their strength, so
that whoever looks for faded ones reads those alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from math import exp
from struct import pack, unpack
from typing import NamedTuple, get_args

import lmdb
import msgspec

from ...protocol.fading import LEVELS, Counted, Folded, Rest, Restored, Slept, Tally
from ...protocol.operation import Rebased
from ...protocol.record import LIVE, Kind, Record, Signal
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from .projection import OperationBatch
from .records import Records, digest
from .strength import begun, counted, decayed, energy, remarked, restored, settled, signal_of, slept

KINDS: tuple[Kind, ...] = get_args(Kind)
_tally = msgspec.msgpack.Decoder(Tally)
_rest = msgspec.msgpack.Decoder(Rest)
_encode = msgspec.msgpack.Encoder().encode
_REST = Rest()


class Weak(NamedTuple):
    """A record that may fade: the logarithm of its greatest strength now; when it was last used, or learnt."""

    id: str
    strength: float
    last: int
    kind: Kind
    level: int


def fades(record: Record | None) -> bool:
    """Whether sleep may archive a record: it is live, and nobody holds on to it (T9, T13)."""
    return record is not None and record.status in LIVE and not record.held


class Counters:
    """The fold of tallies and of the pools' rests; reads open their own snapshot."""

    databases = ("tallies", "rests", "fading")
    reads = ()

    def __init__(self, records: Records) -> None:
        self._records = records

    def _db(self, name: str) -> lmdb.Database:
        return self._records.environment.db(name)

    # --- the fold ----------------------------------------------------------------------------------------------------
    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in; the records' own fold went before."""
        operation = entry.operation
        match operation:
            case Counted():
                rest = self._resting(batch, operation.pool)
                for id, count in operation.counts.items():
                    tally = self._found(batch, id)
                    if tally is not None:
                        own = rest if tally.pool == operation.pool else self._resting(batch, tally.pool)
                        self._put(batch, id, tally, counted(tally, count, operation, entry.at, own))
            case Slept():
                before = self._resting(batch, operation.pool)
                self._put_rest(batch, operation.pool, slept(before, operation, KINDS, entry.at))
            case Folded():
                for rest in operation.pools:
                    self._put_rest(batch, rest.pool, rest)
                for id, tally in operation.tallies.items():
                    if (before := self._found(batch, id)) != tally:
                        self._put(batch, id, before, tally)
            case _:
                for id in batch.touched(entry):
                    self._follow(batch, id, operation)

    def _follow(self, batch: OperationBatch, id: str, operation: object) -> None:
        record, before = self._records.standing(batch, id), self._found(batch, id)
        if record is None:
            if before is not None:
                self._put(batch, id, before, None)
            return
        if before is None or isinstance(operation, Rebased):
            after = self._started(batch, record)
        else:
            after = self._moved(batch, before, record)
            if isinstance(operation, Restored):
                after = restored(after, operation, self._resting(batch, after.pool))
        if after != before:
            self._put(batch, id, before, after)

    def _started(self, batch: OperationBatch, record: Record) -> Tally:
        tally = begun(record.pool, record.kind, record.learned_at, record.signal, fades=fades(record))
        return remarked(tally, self._resting(batch, record.pool))

    def _moved(self, batch: OperationBatch, before: Tally, record: Record) -> Tally:
        """The tally where its record is now."""
        if (before.pool, before.kind) == (record.pool, record.kind):
            return before if before.fades == fades(record) else msgspec.structs.replace(before, fades=not before.fades)
        now = settled(before, self._resting(batch, before.pool))
        changed = msgspec.structs.replace(now, pool=record.pool, kind=record.kind, fades=fades(record))
        return remarked(changed, self._resting(batch, record.pool))

    def _found(self, batch: OperationBatch, id: str) -> Tally | None:
        if id not in batch.tallies:
            stored = batch.get(id.encode(), db=self._db("tallies"))
            batch.tallies[id] = _tally.decode(stored) if stored else None
        return batch.tallies[id]

    def _put(self, batch: OperationBatch, id: str, before: Tally | None, after: Tally | None) -> None:
        batch.tallies[id] = after
        batch.rows(self._db("tallies"))[id.encode()] = _encode(after) if after else None
        rows = batch.rows(self._db("fading"))
        old, new = _place(id, before), _place(id, after)
        if old and old != new:
            rows[old] = None
        if new and after:
            rows[new] = (after.last or after.at).to_bytes(8)

    def _resting(self, batch: OperationBatch, pool: str) -> Rest:
        found = batch.rests.get(pool)
        if found is None:
            stored = batch.get(digest(pool), db=self._db("rests"))
            found = batch.rests[pool] = _rest.decode(stored) if stored else _REST
        return found

    def _put_rest(self, batch: OperationBatch, pool: str, rest: Rest) -> None:
        batch.rests[pool] = rest
        batch.put(digest(pool), _encode(rest), db=self._db("rests"))

    # --- reads -------------------------------------------------------------------------------------------------------
    def _tally_in(self, snapshot: lmdb.Transaction, id: str) -> Tally | None:
        key = id.encode()
        stored = snapshot.get(key, db=self._db("tallies"))
        return _tally.decode(unseal(key, stored, f"the counters of {id}")) if stored else None

    def _rest_in(self, snapshot: lmdb.Transaction, pool: str) -> Rest:
        key = digest(pool)
        stored = snapshot.get(key, db=self._db("rests"))
        return _rest.decode(unseal(key, stored, f"how {pool} slept")) if stored else _REST

    def rest(self, pool: str) -> Rest:
        """How a pool has slept so far."""
        with self._records.environment.read() as snapshot:
            return self._rest_in(snapshot, pool)

    def rests(self) -> tuple[Rest, ...]:
        """How every pool that ever slept has slept so far."""
        with self._records.environment.read() as snapshot:
            rows = snapshot.cursor(self._db("rests")).iternext()
            return tuple(_rest.decode(unseal(key, stored, "how a pool slept")) for key, stored in rows)

    def signals(self, records: Iterable[Record]) -> dict[str, Signal]:
        """By id, the signal of each of these records as it is now, all from one snapshot (R6)."""
        found: dict[str, Signal] = {}
        rests: dict[str, Rest] = {}
        with self._records.environment.read() as snapshot:
            for record in records:
                tally = self._tally_in(snapshot, record.id)
                if tally is None:
                    found[record.id] = record.signal
                    continue
                if tally.pool not in rests:
                    rests[tally.pool] = self._rest_in(snapshot, tally.pool)
                found[record.id] = signal_of(tally, rests[tally.pool], record.signal)
        return found

    def with_signal(self, record: Record) -> Record:
        """A record with its signal as it is now."""
        return msgspec.structs.replace(record, signal=self.signals([record])[record.id])

    def weakest(self, pool: str, floor: float, limit: int, sleeps: Slept | None = None) -> list[Weak]:
        """At most `limit` records of a pool whose every strength is below a floor, now or after one more sleep; the
        weakest of each kind and level first."""
        found: list[Weak] = []
        with self._records.environment.read() as snapshot:
            rest = self._rest_in(snapshot, pool)
            for kind in KINDS:
                for level in range(LEVELS):
                    left = sleeps.retention[level] if sleeps and kind not in sleeps.spared else 1.0
                    for weak in self._rising(snapshot, pool, kind, level, decayed(rest, kind, level)):
                        if exp(weak.strength) * left >= floor or len(found) >= limit:
                            break
                        found.append(weak)
        return found

    def soonest(self, pool: str, kind: Kind, level: int, limit: int) -> list[Weak]:
        """At most `limit` records of a pool's kind and level, the weakest first."""
        with self._records.environment.read() as snapshot:
            decay = decayed(self._rest_in(snapshot, pool), kind, level)
            rising = self._rising(snapshot, pool, kind, level, decay)
            return [weak for weak, _ in zip(rising, range(limit), strict=False)]

    def lightest(self, pool: str, level: int, limit: int) -> list[str]:
        """At most `limit` ids of a pool's level, the ones whose last use is longest ago first (T6)."""
        with self._records.environment.read() as snapshot:
            rising = (weak for kind in KINDS for weak in self._rising(snapshot, pool, kind, level, 0.0))
            return [weak.id for weak in nsmallest(limit, rising, key=lambda weak: (weak.last, weak.id))]

    def by_level(self, pool: str) -> tuple[int, ...]:
        """How many records of a pool may fade, by level."""
        counts = [0] * LEVELS
        mark = digest(pool)
        with self._records.environment.read() as snapshot:
            cursor = snapshot.cursor(self._db("fading"))
            if cursor.set_range(mark):
                for key, _ in cursor.iternext():
                    if not key.startswith(mark):
                        break
                    counts[key[17]] += 1
        return tuple(counts)

    def _rising(self, snapshot: lmdb.Transaction, pool: str, kind: Kind, level: int, decay: float) -> Iterator[Weak]:
        mark = digest(pool) + bytes((KINDS.index(kind), level))
        cursor = snapshot.cursor(self._db("fading"))
        if cursor.set_range(mark):
            for key, stored in cursor.iternext():
                if not key.startswith(mark):
                    return
                last = int.from_bytes(unseal(key, stored, "the order of fading"))
                yield Weak(key[26:].decode(), _number(key[18:26]) + decay, last, kind, level)

    def everything(self) -> Iterator[tuple[str, Tally]]:
        """Every tally, in order of id, from one snapshot."""
        with self._records.environment.read() as snapshot:
            for key, stored in snapshot.cursor(self._db("tallies")).iternext():
                id = key.decode()
                yield id, _tally.decode(unseal(key, stored, f"the counters of {id}"))


def _place(id: str, tally: Tally | None) -> bytes | None:
    if tally is None or not tally.fades:
        return None
    return digest(tally.pool) + bytes((KINDS.index(tally.kind), tally.level)) + _sortable(energy(tally)) + id.encode()


def _sortable(number: float) -> bytes:
    """Eight bytes that sort as the number does."""
    (bits,) = unpack(">Q", pack(">d", number))
    return (bits ^ (1 << 64) - 1 if bits >> 63 else bits | 1 << 63).to_bytes(8)


def _number(raw: bytes) -> float:
    bits = int.from_bytes(raw)
    bits = bits & (1 << 63) - 1 if bits >> 63 else bits ^ (1 << 64) - 1
    return unpack(">d", bits.to_bytes(8))[0]
