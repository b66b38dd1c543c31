"""The log: an append-only chain of entries over LMDB, whose payloads can be removed without breaking the chain.

Comes in: drafts (kind, version, payload). Goes out: entries with seq, time and hash. Invariants:
- seq runs 1, 2, 3 … without a hole; a header is written once and never changed;
- `payload_hash = blake2b(blind ‖ payload)`, and each header holds the hash of the header before it, so the chain
  verifies over headers alone and a removed payload can't be guessed from its hash;
- one thread appends; a group is one transaction and on the disk (fsync) when `append` returns;
- `put`'s return value is checked: LMDB says False, not an error, for a key out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import lmdb
import msgspec

from ...protocol.errors import JournalCorrupt, UnsupportedFormat
from ..world import World
from .environment import MAP_SIZE, Environment

FORMAT = 1
GENESIS = bytes(32)
BLIND = 16


class Draft(msgspec.Struct, frozen=True):
    """What is to be appended."""

    kind: str
    version: int
    payload: bytes


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The part of an entry that stays for good. `at` is microseconds in UTC and grows strictly."""

    seq: int
    previous: bytes
    payload_hash: bytes
    kind: str
    version: int
    at: int


class Entry(msgspec.Struct, frozen=True):
    """A header with its payload; `payload` is None once it was removed."""

    header: Header
    payload: bytes | None

    @property
    def seq(self) -> int:
        """Position in the log, from 1."""
        return self.header.seq


_headers = msgspec.msgpack.Decoder(Header)
Alongside = Callable[[lmdb.Transaction, Sequence[Entry]], None]


class Log:
    """One log in one folder. `extra` names databases that its owner fills in the same transaction (an index)."""

    def __init__(self, folder: Path, world: World, *, extra: tuple[str, ...] = (), map_size: int = MAP_SIZE) -> None:
        self.environment = Environment(folder, ("meta", "headers", "payloads", *extra), durable=True, map_size=map_size)
        self._world = world
        self._headers, self._payloads = self.environment.db("headers"), self.environment.db("payloads")
        self.environment.write(self._check_format)
        with self.environment.read() as transaction:
            self.last, self._tip, self._at = self._find_tip(transaction)

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

    def _find_tip(self, transaction: lmdb.Transaction) -> tuple[int, bytes, int]:
        cursor = transaction.cursor(self._headers)
        if not cursor.last():
            return 0, GENESIS, 0
        raw = cursor.value()
        header = _headers.decode(raw)
        return header.seq, blake2b(raw, digest_size=32).digest(), header.at

    def append(self, drafts: Sequence[Draft], alongside: Alongside | None = None) -> list[Entry]:
        """Append a group durably, in order. `alongside` writes what belongs to the entries in the same transaction.

        Raises StorageFull: then nothing of the group was written.
        """
        if not drafts:
            return []

        def work(transaction: lmdb.Transaction) -> tuple[list[Entry], bytes]:
            entries: list[Entry] = []
            tip, at = self._tip, self._at
            for offset, draft in enumerate(drafts, 1):
                at = max(self._world.now(), at + 1)
                blind = self._world.token(BLIND)
                digest = blake2b(blind + draft.payload, digest_size=32).digest()
                header = Header(self.last + offset, tip, digest, draft.kind, draft.version, at)
                raw = msgspec.msgpack.encode(header)
                key = header.seq.to_bytes(8)
                kept = transaction.put(key, raw, db=self._headers, append=True, overwrite=False)
                if not (kept and transaction.put(key, blind + draft.payload, db=self._payloads, append=True)):
                    raise JournalCorrupt(f"entry {header.seq} can't be appended", hint="run `memd verify`")
                tip = blake2b(raw, digest_size=32).digest()
                entries.append(Entry(header, draft.payload))
            if alongside is not None:
                alongside(transaction, entries)
            return entries, tip

        entries, tip = self.environment.write(work)
        self.last, self._tip, self._at = entries[-1].seq, tip, entries[-1].header.at
        return entries

    def get(self, seq: int) -> Entry | None:
        """The entry at `seq`, checked against its hash, or None past the end. Raises JournalCorrupt."""
        return next(iter(self.slice(seq - 1, 1)), None) if seq > 0 else None

    def slice(self, after: int, limit: int) -> list[Entry]:
        """At most `limit` entries after `after`, each payload checked against its hash. Raises JournalCorrupt."""
        entries: list[Entry] = []
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self._headers)
            found = cursor.set_range((after + 1).to_bytes(8))
            while found and len(entries) < limit:
                entries.append(self._checked(transaction, cursor.key(), cursor.value()))
                found = cursor.next()
        return entries

    def read(self, after: int = 0, *, size: int = 512) -> Iterator[Entry]:
        """All entries after `after`, in slices, each in a transaction of its own so that no old page is pinned."""
        while group := self.slice(after, size):
            yield from group
            after = group[-1].seq

    def _checked(self, transaction: lmdb.Transaction, key: bytes, raw: bytes) -> Entry:
        try:
            header = _headers.decode(raw)
        except msgspec.MsgspecError as error:
            raise JournalCorrupt(
                f"header {int.from_bytes(key)} does not decode", hint="restore the newest backup"
            ) from error
        stored = transaction.get(key, db=self._payloads)
        if stored is None:
            return Entry(header, None)
        if header.seq != int.from_bytes(key) or blake2b(stored, digest_size=32).digest() != header.payload_hash:
            raise JournalCorrupt(
                f"entry {int.from_bytes(key)} of {self.environment.folder.name} is not what was written",
                hint="restore the newest backup",
            )
        return Entry(header, stored[BLIND:])

    def fingerprint(self, seq: int) -> str:
        """The hash of the header at `seq`, which vouches for everything up to it; "" where there is no such entry."""
        with self.environment.read() as transaction:
            raw = transaction.get(seq.to_bytes(8), db=self._headers)
        return blake2b(raw, digest_size=32).hexdigest() if raw else ""

    def verify(self, after: int = 0) -> int:
        """Check every hash and every link after `after`; returns how many entries hold. Raises JournalCorrupt."""
        previous: bytes | None = GENESIS if after == 0 else None
        count = 0
        for entry in self.read(after):
            if previous is not None and entry.header.previous != previous:
                raise JournalCorrupt(f"the chain breaks before entry {entry.seq}", hint="restore the newest backup")
            previous = blake2b(msgspec.msgpack.encode(entry.header), digest_size=32).digest()
            count += 1
        return count

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()
