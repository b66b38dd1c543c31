"""An append-only chain of entries over LMDB, whose payloads can be removed without breaking the chain.

Invariants:
- seq runs 1, 2, 3 … without a hole; a header never changes;
- `payload_hash = blake2b(blind ‖ payload)`, and each header has the hash of the previous header, so the chain verifies
  over headers alone and a removed payload cannot be guessed from its hash;
- entries are in blocks (`protocol/block.py`), each under the seq of its last entry; a read checks a block against the
  next one, or the last one against the stored tip, so damaged headers, payloads and holes are detected;
- one thread appends; a group is one transaction and flushed (fsync) when `append` returns;
- a payload is removed or rewritten only after a group announced it; a rewritten payload has its own checksum;
- `put`'s return value is checked: LMDB returns False, without an error, for a key out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import lmdb
import msgspec

from ...protocol import block
from ...protocol.block import BEGIN, REMOVED, TIP, Header, Kept, digest, header_of
from ...protocol.errors import JournalCorrupt, UnsupportedFormat
from ..world import World
from .lmdb_environment import MAP_SIZE, Environment

FORMAT = 2
"""1 had a row for each header and each payload."""

GENESIS = bytes(TIP)
BLIND = 16
READ_BLOCKS = 32
"""Decoded blocks in the cache: a read is often followed by a read of the next entry."""


class Draft(msgspec.Struct, frozen=True):
    """An entry to be appended."""

    kind: str
    version: int
    payload: bytes


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A header with its payload; `payload` is None if it was removed."""

    header: Header
    payload: bytes | None

    @property
    def seq(self) -> int:
        """The position in the log, from 1."""
        return self.header.seq


class End(NamedTuple):
    """The end of the log: the last seq, the hash of the last header, its time."""

    seq: int
    tip: bytes
    at: int


_encode = msgspec.msgpack.Encoder().encode
Short = tuple[int, list[bytes], list[Kept]]
"""A block that is not full: its first seq, the tip before each entry, the entries."""

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
        alone: bool = False,
        quick: bool = False,
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        """`readonly`, `alone` and `on_full`: as for `Environment`; `quick`: as for `Packer`.

        Raises JournalCorrupt, UnsupportedFormat.
        """
        self.environment = Environment(
            folder,
            ("meta", "blocks", *extra),
            durable=True,
            map_size=map_size,
            readonly=readonly,
            alone=alone,
            on_full=on_full,
        )
        self._world, self._packer = world, block.Packer(quick=quick)
        self._read: dict[bytes, tuple[bytes, list[Entry], bytes]] = {}
        """The cache of decoded blocks: by key the row, its entries, the tip after it."""
        self._short: Short | None = None
        """The last block, if it is open and this object wrote it."""
        if not readonly:
            self.environment.write(self._check_format)
        with self.environment.read() as transaction:
            self._end = self._find_end(transaction)

    @property
    def _blocks(self) -> lmdb.Database:
        return self.environment.db("blocks")

    @property
    def last(self) -> int:
        """The seq of the last entry, 0 for none."""
        return self._end.seq

    @property
    def tip(self) -> bytes:
        """The hash of the last header."""
        return self._end.tip

    def _check_format(self, transaction: lmdb.Transaction) -> None:
        meta = self.environment.db("meta")
        stored = transaction.get(b"format", db=meta)
        if stored is None:
            transaction.put(b"format", str(FORMAT).encode(), db=meta)
        elif int(stored) != FORMAT:
            raise UnsupportedFormat(
                f"{self.environment.folder} has format {int(stored)}, this version reads {FORMAT}",
                hint="install the version of memd that wrote it, or a newer one",
            )

    def _find_end(self, transaction: lmdb.Transaction) -> End:
        cursor = transaction.cursor(self._blocks)
        written = transaction.get(b"tip", db=self.environment.db("meta"))
        if not cursor.last():
            if written:
                raise self._corrupt("all entries are missing")
            return End(0, GENESIS, 0)
        entries, tip = self._entries(*cursor.item())
        last = entries[-1].header
        if tip != written:
            raise self._corrupt(f"entry {last.seq} is not the last one that was written")
        return End(last.seq, tip, last.at)

    def _corrupt(self, what: str) -> JournalCorrupt:
        self.environment.mark_suspect()
        return JournalCorrupt(
            f"the {self.environment.folder.name} is damaged: {what}", hint="see `memd verify`, `memd restore-backup`"
        )

    def append(self, drafts: Sequence[Draft], alongside: Alongside | None = None) -> list[Entry]:
        """Append a group durably, in order. `alongside` writes more rows in the same transaction.

        Raises StorageFull: then nothing of the group was written.
        """
        if not drafts:
            return []

        def work(transaction: lmdb.Transaction) -> tuple[list[Entry], bytes, Short | None]:
            seq, tip, at = self._end
            first, tips, stored = self._unfinished(transaction)
            entries: list[Entry] = []
            blinds = self._world.token(BLIND * len(drafts))
            for start, draft in zip(range(0, len(blinds), BLIND), drafts, strict=True):
                seq, at = seq + 1, max(self._world.now(), at + 1)
                entry = Kept(at, draft.kind, draft.version, blinds[start : start + BLIND] + draft.payload)
                stored.append(entry)
                tips.append(tip)
                header, tip = header_of(seq, tip, entry)
                entries.append(Entry(header, draft.payload))
            rows = self._packer.rows(first, tips, stored)
            self._put(transaction, rows)
            transaction.put(b"tip", tip, db=self.environment.db("meta"))
            if alongside is not None:
                alongside(transaction, entries)
            start = int.from_bytes(rows[-2][0]) + 1 - first if len(rows) > 1 else 0
            short = (first + start, tips[start:], stored[start:]) if block.is_open(rows[-1][1]) else None
            return entries, tip, short

        entries, tip, self._short = self.environment.write(work)
        self._end = End(entries[-1].seq, tip, entries[-1].header.at)
        return entries

    def _unfinished(self, transaction: lmdb.Transaction) -> Short:
        """Delete the last block if it is open and return it, as the start of the next block."""
        cursor = transaction.cursor(self._blocks)
        if not cursor.last() or not block.is_open(row := cursor.value()):
            return self._end.seq + 1, [], []
        if self._short is not None:
            cursor.delete()
            first, tips, stored = self._short
            return first, [*tips], [*stored]
        entries, tip = self._entries(cursor.key(), row)
        if entries[-1].seq != self._end.seq or tip != self._end.tip:
            raise self._corrupt(f"entry {self._end.seq} is not the last one that was written")
        cursor.delete()
        return entries[0].seq, [entry.header.previous for entry in entries], self._decoded(row)

    def _put(self, transaction: lmdb.Transaction, rows: list[tuple[bytes, bytes]]) -> None:
        """Put rows after all existing ones."""
        _, added = transaction.cursor(self._blocks).putmulti(rows, append=True, overwrite=False)
        if added != len(rows):
            raise self._corrupt(f"entry {int.from_bytes(rows[0][0])} or an earlier one cannot be appended")

    def erase(self, seqs: Sequence[int]) -> None:
        """Remove payload and blind of these entries, all or none; the bytes leave the file with `compact` (T10)."""
        self.environment.write(lambda transaction: self._replace(transaction, dict.fromkeys(seqs, REMOVED)))

    def rewrite(self, payloads: Mapping[int, bytes], alongside: Callable[[lmdb.Transaction], object]) -> None:
        """Replace payloads, all or none; the chain still verifies. The old bytes leave the file with `compact` (P-18).
        `alongside` writes in the same transaction. Raises StorageFull."""
        replacements = {seq: block.rewritten(seq, payload) for seq, payload in payloads.items()}

        def work(transaction: lmdb.Transaction) -> None:
            self._replace(transaction, replacements)
            alongside(transaction)

        self.environment.write(work)

    def _replace(self, transaction: lmdb.Transaction, replacements: Mapping[int, bytes]) -> None:
        """Replace blind and payload of these entries, writing each block once."""
        self._read, self._short = {}, None
        cursor = transaction.cursor(self._blocks)
        done = 0
        for seq in sorted(replacements):
            if seq <= done or not cursor.set_range(seq.to_bytes(8)):
                continue
            key, row = cursor.item()
            entries, done = self._decoded(row), int.from_bytes(key)
            for number, entry in enumerate(entries, done - len(entries) + 1):
                if number in replacements:
                    payload_hash = entry.payload_hash or digest(entry.stored)
                    entries[number - done - 1] = msgspec.structs.replace(
                        entry, stored=replacements[number], payload_hash=payload_hash
                    )
            transaction.put(key, block.encode(block.previous_of(row), entries, self._packer.strategy), db=self._blocks)

    def get(self, seq: int) -> Entry | None:
        """Return the entry at `seq`, checked against its hash, or None past the end. Raises JournalCorrupt."""
        return next(iter(self.slice(seq - 1, 1)), None) if seq > 0 else None

    def slice(self, after: int, limit: int) -> list[Entry]:
        """Return at most `limit` entries after `after`, each checked against its hashes. Raises JournalCorrupt."""
        entries: list[Entry] = []
        end = self._end  # before the snapshot, which therefore has at least these entries
        seq, tip = after, b""
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self._blocks)
            rows = cursor.iternext() if cursor.set_range((after + 1).to_bytes(8)) else iter(())
            for key, row in rows:
                if tip and not row.startswith(tip, BEGIN - TIP):
                    raise self._corrupt(f"the chain breaks before entry {seq + 1}")
                if len(entries) >= limit:
                    return entries[:limit]
                block_entries, tip = self._entries(key, row)
                if (first := block_entries[0].seq) != seq + 1:
                    if entries or first > seq:
                        raise self._corrupt(f"there is no entry {seq + 1}")
                    block_entries = block_entries[after + 1 - first :]
                entries += block_entries
                seq = block_entries[-1].seq
            if seq < end.seq or (entries and tip != transaction.get(b"tip", db=self.environment.db("meta"))):
                raise self._corrupt(f"the chain breaks after entry {seq}")
        return entries[:limit]

    def read(self, after: int = 0, *, size: int = 512) -> Iterator[Entry]:
        """Yield all entries after `after`, each slice from its own transaction, so that no old page is pinned."""
        while group := self.slice(after, size):
            yield from group
            after = group[-1].seq

    def of_kinds(self, kinds: Collection[str], after: int, upto: int, *, blocks: int = 64) -> Iterator[Entry]:
        """Yield the entries of some kinds after `after` and at most to `upto`, in order, in short transactions.

        Checks each block by its checksum, but not the chain of hashes, which their headers leave out: twice as fast as
        `read` where most entries are of other kinds.
        """
        while after < upto:
            with self.environment.read() as transaction:
                cursor = transaction.cursor(self._blocks)
                rows = list(islice(cursor.iternext(), blocks)) if cursor.set_range((after + 1).to_bytes(8)) else []
            if not rows:
                return
            for key, row in rows:
                items, last = self._decoded(row), int.from_bytes(key)
                for seq, item in enumerate(items, last - len(items) + 1):
                    if item.kind in kinds and after < seq <= upto:
                        payload = self._vouched(seq, item.stored) if item.payload_hash else item.stored[BLIND:]
                        yield Entry(Header(seq, b"", item.payload_hash, item.kind, item.version, item.at), payload)
                after = last

    def _decoded(self, row: bytes) -> list[Kept]:
        try:
            return block.decode(row)
        except ValueError as error:
            raise self._corrupt(f"cannot decode a block: {error}") from error

    def _entries(self, key: bytes, row: bytes) -> tuple[list[Entry], bytes]:
        """Return the entries of a block and the tip after it, which the next block confirms."""
        read = self._read
        if (cached := read.get(key)) and cached[0] == row:
            return cached[1], cached[2]
        decoded, tip = self._decoded(row), block.previous_of(row)
        entries: list[Entry] = []
        for seq, item in enumerate(decoded, int.from_bytes(key) - len(decoded) + 1):  # `header_of`, inlined for speed
            stored = item.stored
            payload_hash = item.payload_hash or blake2b(stored, digest_size=TIP).digest()
            header = Header(seq, tip, payload_hash, item.kind, item.version, item.at)
            tip = blake2b(_encode(header), digest_size=TIP).digest()
            entries.append(Entry(header, self._vouched(seq, stored) if item.payload_hash else stored[BLIND:]))
        if not entries or entries[0].seq < 1:
            raise self._corrupt(f"the block that ends with entry {int.from_bytes(key)} does not match its checksum")
        if len(read) >= READ_BLOCKS:
            read = self._read = {}
        read[key] = row, entries, tip
        return entries, tip

    def _vouched(self, seq: int, stored: bytes) -> bytes | None:
        try:
            return block.vouched(seq, stored)
        except ValueError as error:
            raise self._corrupt(str(error)) from error

    def stored(self, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return by seq the stored bytes of these entries: blind and payload, or their replacement."""
        by_seq: dict[int, bytes] = {}
        with self.environment.read() as transaction:
            cursor = transaction.cursor(self._blocks)
            for seq in seqs:
                if cursor.set_range(seq.to_bytes(8)):
                    entries = self._decoded(cursor.value())
                    place = seq - int.from_bytes(cursor.key()) + len(entries) - 1
                    if place >= 0:
                        by_seq[seq] = entries[place].stored
        return by_seq

    def fingerprint(self, seq: int) -> str:
        """Return the hash of the header at `seq`, which confirms all entries up to it; "" without such an entry."""
        entry = self.get(seq) if seq <= self.last else None
        return digest(_encode(entry.header)).hex() if entry else ""

    def seq_at(self, at: int) -> int:
        """Return the seq of the last entry at or before a time in microseconds, 0 for none."""
        low, high = 0, self.last
        while low < high:
            middle = (low + high + 1) // 2
            entry = self.get(middle)
            if entry is None:
                raise self._corrupt(f"there is no entry {middle}")
            low, high = (middle, high) if entry.header.at <= at else (low, middle - 1)
        return low

    def verify(self, after: int = 0, tip: bytes = b"") -> int:
        """Check every hash and link after `after`, whose header has the hash `tip`, and return the number of entries.

        Without a `tip` the first link is not checked. Raises JournalCorrupt.
        """
        if after == 0:
            tip = GENESIS
        elif tip and self.fingerprint(after) != tip.hex():
            raise self._corrupt(f"entry {after} differs from the one that was verified")
        count = 0
        for entry in self.read(after):
            if tip and entry.header.previous != tip:
                raise self._corrupt(f"the chain breaks before entry {entry.seq}")
            tip = digest(_encode(entry.header))
            count += 1
        return count

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()
