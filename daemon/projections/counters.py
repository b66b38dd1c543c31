"""The counters of every record and the decay of every pool (R6, T3-T7); the number of feedback samples (Q6).

Invariants: a record has one tally from its first operation to its redaction; a sleep changes one row of its pool;
`fading` lists the records that may fade, by pool, kind and level in order of strength, so that a search for faded
records reads no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from math import exp
from struct import pack, unpack
from typing import NamedTuple, get_args

import msgspec

from ...protocol.fading import LEVELS, Counted, FeedbackGiven, Folded, Rest, Restored, Slept, Tally
from ...protocol.operation import Rebased
from ...protocol.record import LIVE, Kind, Record, Signal
from ...protocol.reply import Logged
from ..storage.checksummed_rows import keys_with, rows_with, unseal
from ..storage.lmdb_environment import Environment, Transaction
from .projection import FoldTables, OperationBatch
from .records import Records, digest
from .strength import begun, counted, decayed, energy, held, remarked, restored, settled, signal_of, slept

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


class Counters(FoldTables):
    """The fold of tallies and of each pool's decay (`Rest`)."""

    databases = ("tallies", "rests", "fading")
    reads = ()

    def __init__(self, environment: Environment, records: Records) -> None:
        super().__init__(environment)
        self._records = records

    # --- the fold ----------------------------------------------------------------------------------------------------
    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in, after the fold of records."""
        operation = entry.operation
        match operation:
            case Counted():
                rest = self._rest(batch, operation.pool)
                for id, count in operation.counts.items():
                    tally = self._tally(batch, id)
                    if tally is not None:
                        own = rest if tally.pool == operation.pool else self._rest(batch, tally.pool)
                        self._put(batch, id, tally, counted(tally, count, operation, entry.at, own))
            case Slept():
                before = self._rest(batch, operation.pool)
                after = slept(before, operation, KINDS, entry.at)
                self._put_rest(batch, operation.pool, after)
                for id in operation.given:
                    tally = self._tally(batch, id)
                    if tally is not None and tally.pool == operation.pool:
                        self._put(batch, id, tally, held(tally, before, after))
            case Folded():
                for rest in operation.pools:
                    self._put_rest(batch, rest.pool, rest)
                for id, tally in operation.tallies.items():
                    if (before := self._tally(batch, id)) != tally:
                        self._put(batch, id, before, tally)
            case _:
                for id in batch.touched(entry):
                    self._follow(batch, id, operation)

    def _follow(self, batch: OperationBatch, id: str, operation: object) -> None:
        record, before = self._records.in_batch(batch, id), self._tally(batch, id)
        if record is None:
            if before is not None:
                self._put(batch, id, before, None)
            return
        if before is None or isinstance(operation, Rebased):
            after = self._started(batch, record)
        else:
            after = self._moved(batch, before, record)
            if isinstance(operation, Restored):
                after = restored(after, operation, self._rest(batch, after.pool))
        if after != before:
            self._put(batch, id, before, after)

    def _started(self, batch: OperationBatch, record: Record) -> Tally:
        tally = begun(record.pool, record.kind, record.learned_at, record.signal, fades=fades(record))
        return remarked(tally, self._rest(batch, record.pool))

    def _moved(self, batch: OperationBatch, before: Tally, record: Record) -> Tally:
        """Return the tally after a change of its record's pool, kind or status."""
        if (before.pool, before.kind) == (record.pool, record.kind):
            return before if before.fades == fades(record) else msgspec.structs.replace(before, fades=not before.fades)
        now = settled(before, self._rest(batch, before.pool))
        changed = msgspec.structs.replace(now, pool=record.pool, kind=record.kind, fades=fades(record))
        return remarked(changed, self._rest(batch, record.pool))

    def _tally(self, batch: OperationBatch, id: str) -> Tally | None:
        if id not in batch.tallies:
            stored = batch.get(id.encode(), db=self._table("tallies"))
            batch.tallies[id] = _tally.decode(stored) if stored else None
        return batch.tallies[id]

    def _put(self, batch: OperationBatch, id: str, before: Tally | None, after: Tally | None) -> None:
        batch.tallies[id] = after
        batch.rows(self._table("tallies"))[id.encode()] = _encode(after) if after else None
        rows = batch.rows(self._table("fading"))
        old, new = _place(id, before), _place(id, after)
        if old and old != new:
            rows[old] = None
        if new and after:
            rows[new] = (after.last or after.at).to_bytes(8)

    def _rest(self, batch: OperationBatch, pool: str) -> Rest:
        rest = batch.rests.get(pool)
        if rest is None:
            stored = batch.get(digest(pool), db=self._table("rests"))
            rest = batch.rests[pool] = _rest.decode(stored) if stored else _REST
        return rest

    def _put_rest(self, batch: OperationBatch, pool: str, rest: Rest) -> None:
        batch.rests[pool] = rest
        batch.put(digest(pool), _encode(rest), db=self._table("rests"))

    # --- reads -------------------------------------------------------------------------------------------------------
    def _tally_in(self, snapshot: Transaction, id: str) -> Tally | None:
        key = id.encode()
        stored = snapshot.get(key, db=self._table("tallies"))
        return _tally.decode(unseal(key, stored, f"the counters of {id}")) if stored else None

    def _rest_in(self, snapshot: Transaction, pool: str) -> Rest:
        key = digest(pool)
        stored = snapshot.get(key, db=self._table("rests"))
        return _rest.decode(unseal(key, stored, f"how {pool} slept")) if stored else _REST

    def rest(self, pool: str) -> Rest:
        """Return the decay of a pool."""
        with self.environment.read() as snapshot:
            return self._rest_in(snapshot, pool)

    def rests(self) -> tuple[Rest, ...]:
        """Return the decay of every pool that ever slept."""
        return tuple(map(_rest.decode, self._values("rests", "how a pool slept")))

    def signals(self, records: Iterable[Record]) -> dict[str, Signal]:
        """Return the current signal of these records by id, from one snapshot (R6)."""
        signals: dict[str, Signal] = {}
        rests: dict[str, Rest] = {}
        with self.environment.read() as snapshot:
            for record in records:
                tally = self._tally_in(snapshot, record.id)
                if tally is None:
                    signals[record.id] = record.signal
                    continue
                if tally.pool not in rests:
                    rests[tally.pool] = self._rest_in(snapshot, tally.pool)
                signals[record.id] = signal_of(tally, rests[tally.pool], record.signal)
        return signals

    def with_signal(self, record: Record) -> Record:
        """Return a record with its current signal."""
        return msgspec.structs.replace(record, signal=self.signals([record])[record.id])

    def weakest(self, pool: str, floor: float, limit: int, sleeps: Slept | None = None) -> list[Weak]:
        """Return at most `limit` records of a pool whose strengths are all below a floor, now or after one more sleep;
        the weakest of each kind and level first."""
        weakest: list[Weak] = []
        with self.environment.read() as snapshot:
            rest, given = self._rest_in(snapshot, pool), frozenset(sleeps.given if sleeps else ())
            for kind in KINDS:
                for level in range(LEVELS):
                    left = sleeps.retention[level] if sleeps and kind not in sleeps.spared else 1.0
                    for weak in self._rising(snapshot, pool, kind, level, decayed(rest, kind, level)):
                        if exp(weak.strength) * left >= floor or len(weakest) >= limit:
                            break
                        if weak.id not in given or exp(weak.strength) < floor:
                            weakest.append(weak)
        return weakest

    def soonest(self, pool: str, kind: Kind, level: int, limit: int) -> list[Weak]:
        """Return at most `limit` records of a pool's kind and level, the weakest first."""
        with self.environment.read() as snapshot:
            decay = decayed(self._rest_in(snapshot, pool), kind, level)
            rising = self._rising(snapshot, pool, kind, level, decay)
            return [weak for weak, _ in zip(rising, range(limit), strict=False)]

    def lightest(self, pool: str, level: int, limit: int) -> list[str]:
        """Return at most `limit` ids of a pool's level, the least recently used first (T6)."""
        with self.environment.read() as snapshot:
            rising = (weak for kind in KINDS for weak in self._rising(snapshot, pool, kind, level, 0.0))
            return [weak.id for weak in nsmallest(limit, rising, key=lambda weak: (weak.last, weak.id))]

    def by_level(self, pool: str) -> tuple[int, ...]:
        """Return the number of records of a pool that may fade, by level."""
        counts = [0] * LEVELS
        with self.environment.read() as snapshot:
            for key in keys_with(snapshot, self._table("fading"), digest(pool)):
                counts[key[1]] += 1
        return tuple(counts)

    def _rising(self, snapshot: Transaction, pool: str, kind: Kind, level: int, decay: float) -> Iterator[Weak]:
        prefix = digest(pool) + bytes((KINDS.index(kind), level))
        for key, stored in rows_with(snapshot, self._table("fading"), prefix):
            last = int.from_bytes(unseal(key, stored, "the order of fading"))
            yield Weak(key[26:].decode(), _number(key[18:26]) + decay, last, kind, level)

    def everything(self) -> Iterator[tuple[str, Tally]]:
        """Yield every tally, in order of id, from one snapshot."""
        with self.environment.read() as snapshot:
            for key, stored in snapshot.cursor(self._table("tallies")).iternext():
                id = key.decode()
                yield id, _tally.decode(unseal(key, stored, f"the counters of {id}"))


class FeedbackCounts(FoldTables):
    """The number of feedback samples by agent; the samples stay in the journal."""

    databases = ("lessons",)
    reads = (FeedbackGiven,)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Count the samples of one operation."""
        if isinstance(entry.operation, FeedbackGiven) and entry.operation.samples:
            table, key = self._table("lessons"), digest(entry.operation.agent)
            known = int.from_bytes(batch.get(key, db=table) or b"")
            batch.put(key, (known + len(entry.operation.samples)).to_bytes(8), db=table)

    def count(self, agent: str) -> int:
        """Return the number of samples of an agent."""
        return int.from_bytes(self._value("lessons", digest(agent), "a count of feedback") or b"")


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
