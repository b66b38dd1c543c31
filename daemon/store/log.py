"""The log: an append-only chain of entries over LMDB, whose payloads can be removed without breaking the chain.

Comes in: drafts (kind, version, payload). Goes out: entries with seq, time and hash. Invariants:
- seq runs 1, 2, 3 … without a hole; a header is written once and never changed;
- `payload_hash = blake2b(blind ‖ payload)`, and each header holds the hash of the header before it, so the chain
  verifies over headers alone and a removed payload can't be guessed from its hash;
- whatever is read is checked against the entry after it (the last one against the tip that its group wrote beside it),
  so a header is vouched for as well as a payload, and a hole is never taken for the end;
- one thread appends; a group is one transaction and on the disk (fsync) when `append` returns;
- a payload is removed or rewritten only in a group that says so first; a rewritten one vouches for itself;
- `put`'s return value is checked: LMDB says False, not an error, for a key out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import lmdb
import msgspec

from ...protocol.errors import JournalCorrupt, UnsupportedFormat
from ..world import World
from .environment import MAP_SIZE, Environment

FORMAT = 1
GENESIS = bytes(32)
BLIND = 16
REMOVED = b"removed"
"""What stands in place of a removed payload: one that is merely gone is damage, and is not taken for forgotten."""

REWRITTEN = b"rewritten"
"""What a payload begins with that took the place of another: its own hash follows, the header vouches for the first."""


class Draft(msgspec.Struct, frozen=True):
    """What is to be appended."""

    kind: str
    version: int
    payload: bytes


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The part of an entry that stays for good. `at` is microseconds in UTC and grows strictly."""

    seq: int
    previous: bytes
    payload_hash: bytes
    kind: str
    version: int
    at: int


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A header with its payload; `payload` is None once it was removed."""

    header: Header
    payload: bytes | None

    @property
    def seq(self) -> int:
        """Position in the log, from 1."""
        return self.header.seq


class End(NamedTuple):
    """Where the log ends: the last seq, the hash of the last header, its time."""

    seq: int
    tip: bytes
    at: int


def digest(data: bytes) -> bytes:
    """The hash of the chain."""
    return blake2b(data, digest_size=32).digest()


_headers = msgspec.msgpack.Decoder(Header)
_encoder = msgspec.msgpack.Encoder()
Alongside = Callable[[lmdb.Transaction, Sequence[Entry]], None]


class Log:
    """One log in one folder. `extra` names databases that its owner fills in the same transaction (an index)."""

    def __init__(
        self,
        folder: Path,
        world: World,
        *,
        extra: tuple[str, ...] = (),
        map_size: int = MAP_SIZE,
        readonly: bool = False,
    ) -> None:
        """`readonly`: for a child of the process that owns the log. Raises JournalCorrupt, UnsupportedFormat."""
        self.environment = Environment(
            folder, ("meta", "headers", "payloads", *extra), durable=True, map_size=map_size, readonly=readonly
        )
        self._world = world
        if not readonly:
            self.environment.write(self._check_format)
        with self.environment.read() as transaction:
            self._end = self._find_end(transaction)

    @property
    def _headers(self) -> lmdb.Database:
        return self.environment.db("headers")

    @property
    def _payloads(self) -> lmdb.Database:
        return self.environment.db("payloads")

    @property
    def last(self) -> int:
        """The seq of the last entry, 0 for none."""
        return self._end.seq

    @property
    def tip(self) -> bytes:
        """The hash of the last header: whoever knows it and its seq can verify what comes after alone."""
        return self._end.tip

    def _check_format(self, transaction: lmdb.Transaction) -> None:
        meta = self.environment.db("meta")
        found = transaction.get(b"format", db=meta)
        if found is None:
            transaction.put(b"format", str(FORMAT).encode(), db=meta)
        elif int(found) != FORMAT:
            raise UnsupportedFormat(
                f"{self.environment.folder} has format {int(found)}, this version knows {FORMAT}",
                hint="install the version of memd that wrote it, or a newer one",
            )

    def _find_end(self, transaction: lmdb.Transaction) -> End:
        cursor = transaction.cursor(self._headers)
        written = transaction.get(b"tip", db=self.environment.db("meta"))
        if not cursor.last():
            if written:
                raise self._corrupt("every entry is gone")
            return End(0, GENESIS, 0)
        raw = cursor.value()
        key = cursor.key()
        header = self._header(raw, int.from_bytes(key))
        self._checked(header, key, header.seq, transaction.get(key, db=self._payloads))
        if written not in (None, digest(raw)):
            raise self._corrupt(f"entry {header.seq} is not the last one that was written")
        return End(header.seq, digest(raw), header.at)

    def _corrupt(self, what: str) -> JournalCorrupt:
        folder, self.environment.suspect = self.environment.folder, True
        return JournalCorrupt(f"the {folder.name} is damaged: {what}", hint="see `memd verify`, `memd restore-backup`")

    def append(self, drafts: Sequence[Draft], alongside: Alongside | None = None) -> list[Entry]:
        """Append a group durably, in order. `alongside` writes what belongs to the entries in the same transaction.

        Raises StorageFull: then nothing of the group was written.
        """
        if not drafts:
            return []

        def work(transaction: lmdb.Transaction) -> tuple[list[Entry], bytes]:
            entries: list[Entry] = []
            headers: list[tuple[bytes, bytes]] = []
            payloads: list[tuple[bytes, bytes]] = []
            seq, tip, at = self._end
            blinds = self._world.token(BLIND * len(drafts))
            for start, draft in zip(range(0, len(blinds), BLIND), drafts, strict=True):
                seq, at = seq + 1, max(self._world.now(), at + 1)
                blinded = blinds[start : start + BLIND] + draft.payload
                header = Header(seq, tip, digest(blinded), draft.kind, draft.version, at)
                raw = _encoder.encode(header)
                tip = digest(raw)
                key = seq.to_bytes(8)
                headers.append((key, raw))
                payloads.append((key, blinded))
                entries.append(Entry(header, draft.payload))
            self._put(transaction, self._headers, headers)
            self._put(transaction, self._payloads, payloads)
            transaction.put(b"tip", tip, db=self.environment.db("meta"))
            if alongside is not None:
                alongside(transaction, entries)
            return entries, tip

        entries, tip = self.environment.write(work)
        self._end = End(entries[-1].seq, tip, entries[-1].header.at)
        return entries

    def _put(self, transaction: lmdb.Transaction, database: lmdb.Database, rows: list[tuple[bytes, bytes]]) -> None:
        """Rows behind all that are there."""
        _, added = transaction.cursor(database).putmulti(rows, append=True, overwrite=False)
        if added != len(rows):
            raise self._corrupt(f"entry {int.from_bytes(rows[0][0])}, or one after it, can't be appended")

    def erase(self, seqs: Sequence[int]) -> None:
        """Remove payload and blind of these entries, all or none; headers stay. The bytes go with `compact` (T10)."""

        def work(transaction: lmdb.Transaction) -> None:
            for seq in seqs:
                if transaction.get(seq.to_bytes(8), db=self._headers) is not None:
                    transaction.put(seq.to_bytes(8), REMOVED, db=self._payloads)

        self.environment.write(work)

    def rewrite(self, payloads: Mapping[int, bytes], alongside: Callable[[lmdb.Transaction], object]) -> None:
        """Put other payloads in place of these, all or none; headers stay, and the chain verifies. What was there goes
        from the file with `compact` (P-18). `alongside` writes in the same transaction. Raises StorageFull."""

        def work(transaction: lmdb.Transaction) -> None:
            for seq, payload in payloads.items():
                key = seq.to_bytes(8)
                transaction.put(key, REWRITTEN + digest(key + payload) + payload, db=self._payloads)
            alongside(transaction)

        self.environment.write(work)

    def get(self, seq: int) -> Entry | None:
        """The entry at `seq`, checked against its hash, or None past the end. Raises JournalCorrupt."""
        return next(iter(self.slice(seq - 1, 1)), None) if seq > 0 else None

    def slice(self, after: int, limit: int) -> list[Entry]:
        """At most `limit` entries after `after`, each checked against its hashes. Raises JournalCorrupt."""
        entries: list[Entry] = []
        end = self._end  # before the snapshot, which therefore holds at least that much
        seq, tip = after, b""
        with self.environment.read() as transaction:
            headers, payloads = transaction.cursor(self._headers), transaction.cursor(self._payloads)
            first = (after + 1).to_bytes(8)
            if headers.set_range(first) and payloads.set_range(first):
                rows = zip(headers.iternext(), payloads.iternext(), strict=False)
                for (key, raw), (place, stored) in islice(rows, limit + 1):
                    seq += 1
                    header = self._header(raw, seq)
                    sound = place == key == seq.to_bytes(8) and header.seq == seq
                    if sound and blake2b(stored, digest_size=32).digest() == header.payload_hash:  # as nearly all are
                        entries.append(Entry(header, stored[BLIND:]))
                    else:
                        entries.append(self._checked(header, key, seq, stored if place == key else None))
                    if tip and header.previous != tip:
                        raise self._corrupt(f"the chain breaks before entry {seq}")
                    tip = blake2b(raw, digest_size=32).digest()
        if len(entries) <= limit and (seq < end.seq or (entries and seq == end.seq and tip != end.tip)):
            raise self._corrupt(f"the chain breaks after entry {seq}")
        return entries[:limit]

    def read(self, after: int = 0, *, size: int = 512) -> Iterator[Entry]:
        """All entries after `after`, in slices, each in a transaction of its own so that no old page is pinned."""
        while group := self.slice(after, size):
            yield from group
            after = group[-1].seq

    def _header(self, raw: bytes, seq: int) -> Header:
        try:
            return _headers.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._corrupt(f"header {seq} does not decode") from error

    def _checked(self, header: Header, key: bytes, seq: int, stored: bytes | None) -> Entry:
        if header.seq != seq or int.from_bytes(key) != seq:
            raise self._corrupt(f"there is no entry {seq}")
        if stored == REMOVED:
            return Entry(header, None)
        if stored is not None and blake2b(stored, digest_size=32).digest() == header.payload_hash:
            return Entry(header, stored[BLIND:])
        vouched, payload = len(REWRITTEN), (stored or b"")[len(REWRITTEN) + 32 :]
        if stored and stored.startswith(REWRITTEN) and stored[vouched : vouched + 32] == digest(key + payload):
            return Entry(header, payload)
        raise self._corrupt(f"entry {seq} is not what was written")

    def fingerprint(self, seq: int) -> str:
        """The hash of the header at `seq`, which vouches for everything up to it; "" where there is no such entry."""
        with self.environment.read() as transaction:
            raw = transaction.get(seq.to_bytes(8), db=self._headers)
        return digest(raw).hex() if raw else ""

    def seq_at(self, at: int) -> int:
        """The seq of the last entry whose time, in microseconds, is not after `at`; 0 if there is none."""
        low, high = 0, self.last
        with self.environment.read() as transaction:
            while low < high:
                middle = (low + high + 1) // 2
                raw = transaction.get(middle.to_bytes(8), db=self._headers)
                if raw is None:
                    raise self._corrupt(f"there is no entry {middle}")
                low, high = (middle, high) if _headers.decode(raw).at <= at else (low, middle - 1)
        return low

    def verify(self, after: int = 0, tip: bytes = b"") -> int:
        """Check every hash and every link after `after`, whose header has the hash `tip`; how many entries hold.

        Without a `tip` the first link after `after` is taken as it stands. Raises JournalCorrupt.
        """
        if after == 0:
            tip = GENESIS
        elif tip and self.fingerprint(after) != tip.hex():
            raise self._corrupt(f"entry {after} is not the one that was verified before")
        count = 0
        for entry in self.read(after):
            if tip and entry.header.previous != tip:
                raise self._corrupt(f"the chain breaks before entry {entry.seq}")
            tip = digest(msgspec.msgpack.encode(entry.header))
            count += 1
        return count

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()
