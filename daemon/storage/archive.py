"""The archive: raw captures without secrets, one log entry each; local only.

Invariants: `(document, turn)` is stored once unless its text changed, then the new entry names the one it replaces; an
acknowledged turn is always found and a repeated one always recognised (P-7, W13): the index has a row for every turn up
to `indexed_seq`, written in one transaction with it, and later turns are in memory, read from the log at opening. Rows
are written in sorted batches, because single rows would cost a page each.
"""

from __future__ import annotations

from binascii import crc_hqx
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Literal

import lmdb
import msgspec

from ...protocol.errors import JournalCorrupt
from ...protocol.event import Captured, text, with_text
from ...protocol.instant import micros
from ...protocol.operation import Cut
from ...protocol.record import Span
from ..world import World
from .checksummed_rows import rows_with, walk
from .cuts import replaced
from .log import Draft, Entry, Log

Fate = Literal["accepted", "duplicate", "changed"]
INDEX_EVERY = 4096
"""Turns after which the index is written; a start reads at most as many again, in some 40 ms."""

RUN = 256
"""Most captures that one transaction reads."""

_decoder = msgspec.msgpack.Decoder(Captured)
_encoder = msgspec.msgpack.Encoder()


def decode(entry: Entry) -> Captured | None:
    """Return the capture of an entry, or None if its payload was removed. Raises JournalCorrupt."""
    if entry.payload is None:
        return None
    try:
        return _decoder.decode(entry.payload)
    except msgspec.MsgspecError as error:
        raise JournalCorrupt(f"cannot decode capture {entry.seq}: {error}", hint="run `memd verify`") from error


def _turn_key(document: str, turn: str) -> bytes:
    return _document_key(document) + blake2b(turn.encode(), digest_size=8).digest()


@lru_cache(1024)
def _document_key(document: str) -> bytes:
    return blake2b(document.encode(), digest_size=8).digest()


def _runs(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of numbers that follow each other, at most `RUN` of them."""
    first = previous = -1
    for seq in seqs:
        if seq != previous + 1 or seq - first >= RUN:
            if first >= 0:
                yield first, previous
            first = seq
        previous = seq
    if first >= 0:
        yield first, previous


def _row(key: bytes, seq: int) -> bytes:
    """Return a CRC-16 of key and seq, then the seq in as few bytes as possible."""
    short = seq.to_bytes((seq.bit_length() + 7) // 8)
    return crc_hqx(key + short, 0).to_bytes(2) + short


def _seq(key: bytes, row: bytes) -> int:
    """Return the seq of an index row, 0 if the row is damaged."""
    return int.from_bytes(row[2:]) if crc_hqx(key + row[2:], 0).to_bytes(2) == row[:2] else 0


class Archive:
    """The log of captures, with an index by document and turn. One thread writes, any thread reads."""

    def __init__(
        self, folder: Path, world: World, *, readonly: bool = False, on_full: Callable[[], None] = lambda: None
    ) -> None:
        self.log = Log(folder, world, extra=("index",), readonly=readonly, on_full=on_full)
        self._readonly = readonly
        with self.log.environment.read() as transaction:
            stored = transaction.get(b"indexed_seq", db=self.log.environment.db("meta"))
        self._upto = min(int.from_bytes(stored or b""), self.log.last)
        self._tail: dict[bytes, int] = {}
        self._read_tail()

    @property
    def _index(self) -> lmdb.Database:
        return self.log.environment.db("index")

    def _read_tail(self) -> None:
        """Read the entries after the indexed ones."""
        for entry in self.log.read(self._upto):
            if (captured := decode(entry)) is not None:
                self._tail[_turn_key(captured.document, captured.event.turn)] = entry.seq
            self._upto = entry.seq

    def _write_index(self, transaction: lmdb.Transaction, rows: Mapping[bytes, int], upto: int) -> None:
        consumed, _ = transaction.cursor(self._index).putmulti(sorted((k, _row(k, seq)) for k, seq in rows.items()))
        if consumed != len(rows):
            raise JournalCorrupt(f"{len(rows) - consumed} rows of the index were not taken", hint="run `memd verify`")
        transaction.put(b"indexed_seq", upto.to_bytes(8), db=self.log.environment.db("meta"))

    def index(self) -> None:
        """Write the index up to the log's end. Called by the write thread. Raises StorageFull: it stays in memory."""
        if self._tail:
            self.log.environment.write(lambda transaction: self._write_index(transaction, self._tail, self.log.last))
            self._tail = {}

    @property
    def last(self) -> int:
        """The seq of the last capture."""
        return self.log.last

    def take(self, captures: Sequence[Captured]) -> list[Fate]:
        """Append new and changed captures durably as one group, and return the fate of each in order."""
        fates: list[Fate] = []
        drafts: list[Draft] = []
        fresh: dict[bytes, int] = {}
        inside: dict[bytes, Captured] = {}
        keys = [_turn_key(captured.document, captured.event.turn) for captured in captures]
        seqs = self._seqs_of(keys)
        for captured, key in zip(captures, keys, strict=True):
            before, replaces = inside.get(key), fresh.get(key, 0)
            if before is None and (replaces := seqs.get(key, 0)):
                before = self._at(replaces, key)
            expired = replaces and before is None  # the text was removed: the turn is known, and not stored again
            if expired or (before is not None and before.event == captured.event):
                fates.append("duplicate")
                continue
            fates.append("accepted" if before is None else "changed")
            inside[key] = captured = msgspec.structs.replace(captured, replaces=replaces) if replaces else captured
            drafts.append(Draft("captured", 1, _encoder.encode(captured)))
            fresh[key] = self.log.last + len(drafts)
        self._append(drafts, fresh)
        return fates

    def _append(self, drafts: Sequence[Draft], fresh: Mapping[bytes, int]) -> None:
        due = len(self._tail) + len(fresh) >= INDEX_EVERY
        rows = {**self._tail, **fresh} if due else fresh

        def alongside(transaction: lmdb.Transaction, entries: Sequence[Entry]) -> None:
            self._write_index(transaction, rows, entries[-1].seq)

        self.log.append(drafts, alongside if due else None)
        if due:
            self._tail = {}
        else:
            self._tail.update(fresh)

    def _seqs_of(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        """Return the seqs of the known turns by key."""
        tail = self._tail  # first: an entry that leaves it is in every later snapshot
        seqs = {key: tail[key] for key in keys if key in tail}
        if len(seqs) < len(keys):
            with self.log.environment.read() as transaction:
                for key in keys:
                    if key not in seqs and (stored := transaction.get(key, db=self._index)):
                        if not (seq := _seq(key, stored)):
                            raise self._index_error("has a damaged row")
                        seqs[key] = seq
        return seqs

    def seq_of(self, document: str, turn: str) -> int:
        """Return the seq of the newest capture of a turn, 0 for none."""
        if self._readonly:  # its owner may have appended more
            self._read_tail()
        key = _turn_key(document, turn)
        return self._seqs_of([key]).get(key, 0)

    def holders(self, documents: Sequence[str], turn: str) -> list[str]:
        """Return those of these documents that have a turn of this name."""
        keys = {_turn_key(document, turn): document for document in documents}
        return [keys[key] for key in self._seqs_of(list(keys))]

    def turn(self, document: str, turn: str) -> Captured | None:
        """Return the newest capture of a turn, or None."""
        return self.find(document, turn)[1]

    def find(self, document: str, turn: str) -> tuple[int, Captured | None]:
        """Return the newest capture of a turn with its seq; 0 for an unknown turn, None for a removed payload."""
        seq = self.seq_of(document, turn)
        return seq, self._at(seq, _turn_key(document, turn)) if seq else None

    def newest_at(self, document: str) -> int:
        """Return when the newest turn of a document was stored, in microseconds; 0 for none."""
        newest = max(self._seqs_in(document).values(), default=0)
        entry = self.log.get(newest) if newest else None
        return entry.header.at if entry else 0

    def last_event_at(self, document: str) -> int:
        """Return the time of a document's newest event, in microseconds; 0 for none."""
        newest = max(((seq, key) for key, seq in self._seqs_in(document).items()), default=None)
        captured = self._at(*newest) if newest else None
        return micros(captured.event.at) if captured else 0

    def _seqs_in(self, document: str) -> dict[bytes, int]:
        """Return the newest seq of each turn of a document by key; 0 for a damaged row."""
        prefix, tail = _document_key(document), list(self._tail.items())
        with self.log.environment.read() as transaction:
            newest = {key: _seq(key, stored) for key, stored in rows_with(transaction, self._index, prefix)}
        return newest | {key: seq for key, seq in tail if key.startswith(prefix)}

    def numbered(self, document: str) -> list[tuple[int, Captured]]:
        """Return the newest captures of a document's turns with their seqs, in order, without removed payloads."""
        keys = {seq: key for key, seq in self._seqs_in(document).items()}
        captures: list[tuple[int, Captured]] = []
        for first, last in _runs(sorted(keys)):
            entries = self.log.slice(first - 1, last + 1 - first) if first else []
            if len(entries) != last + 1 - first:
                raise self._index_error(f"does not match capture {last}")
            for entry in entries:
                if captured := self._checked(entry.seq, keys[entry.seq], entry):
                    captures.append((entry.seq, captured))
        return captures

    def turns_since(self, document: str, seq: int) -> list[tuple[int, Captured]]:
        """Return the newest captures of a document's turns that were stored after `seq`, in order, with their seqs."""
        seqs = sorted((number, key) for key, number in self._seqs_in(document).items() if number > seq)
        return [(number, captured) for number, key in seqs if (captured := self._at(number, key))]

    def turns(self, document: str) -> list[Captured]:
        """Return the newest captures of a document's turns, in order, without removed payloads."""
        return [captured for _, captured in self.numbered(document)]

    def span(self, span: Span) -> str | None:
        """Return the captured text of a span, or None if the turn is unknown or its payload removed."""
        captured = self.turn(span.document, span.turn)
        return text(captured.event)[span.start : span.end] if captured else None

    def expire(self, seqs: Sequence[int]) -> None:
        """Remove payload and blind of these captures, all or none. Called by the write thread. Raises StorageFull.

        The index is written first, because the log no longer has the names of these turns afterwards.
        """
        self.index()
        self.log.erase(seqs)

    @property
    def cut_by(self) -> int:
        """The seq of the last operation whose cuts were applied, 0 for none."""
        with self.log.environment.read() as transaction:
            return int.from_bytes(transaction.get(b"cut_by", db=self.log.environment.db("meta")) or b"")

    def cut(self, cuts: Sequence[Cut], by: int) -> None:
        """Replace secrets by placeholders, once for the operation `by`, all or none. Called by the write thread. Raises
        StorageFull."""
        if self.cut_by >= by:
            return
        payloads: dict[int, bytes] = {}
        for seq, group in groupby(cuts, key=lambda cut: cut.seq):
            entry = self.log.get(seq)
            if entry is None or (captured := decode(entry)) is None:
                continue  # expired or forgotten
            own = tuple(group)
            event = with_text(captured.event, replaced(text(captured.event), own))
            rules = (*captured.redacted, *(cut.rule for cut in own))
            captured = msgspec.structs.replace(captured, event=event, redacted=rules)
            payloads[seq] = _encoder.encode(captured)
        meta = self.log.environment.db("meta")
        self.log.rewrite(payloads, lambda transaction: transaction.put(b"cut_by", by.to_bytes(8), db=meta))

    def around(self, document: str, turn: str, before: int, after: int) -> list[tuple[int, Captured]]:
        """Return the captures of a document around a turn, in order, with their seqs."""
        seq = self.seq_of(document, turn)
        if not seq:
            return []
        newest = self._seqs_in(document)
        if not all(newest.values()):
            raise self._index_error("has a damaged row")
        places = sorted((number, key) for key, number in newest.items())
        place = bisect_left(places, (seq, b""))
        near = places[max(0, place - before) : place + after + 1]
        return [(number, captured) for number, key in near if (captured := self._at(number, key))]

    def _at(self, seq: int, key: bytes) -> Captured | None:
        """Return the capture of an index row, None if its payload was removed; the log checks it, the row does not."""
        return self._checked(seq, key, self.log.get(seq))

    def _checked(self, seq: int, key: bytes, entry: Entry | None) -> Captured | None:
        captured = decode(entry) if entry else None
        if entry is None or (captured and _turn_key(captured.document, captured.event.turn) != key):
            raise self._index_error(f"does not match capture {seq}")
        return captured

    def _index_error(self, what: str) -> JournalCorrupt:
        self.log.environment.mark_suspect()
        return JournalCorrupt(f"the archive's index {what}", hint="`memd down && memd up` writes it anew")

    def after(self, seq: int, limit: int) -> list[tuple[int, Captured]]:
        """Return the captures among the `limit` entries after `seq`, in order, with their seqs."""
        return [(e.seq, captured) for e in self.log.slice(seq, limit) if (captured := decode(e)) is not None]

    def is_indexed(self) -> bool:
        """Whether the index is undamaged and its rows are found by their keys. 1 µs a row."""
        try:
            with self.log.environment.read() as transaction:
                return all(_seq(key, stored) for key, stored in walk(transaction, self._index))
        except JournalCorrupt:
            return False

    def reindex(self) -> None:
        """Write the index again: from the log, and for turns with removed payload from its undamaged rows."""
        self._upto = 0
        self._read_tail()

        def work(transaction: lmdb.Transaction) -> None:
            index = transaction.cursor(self._index).iternext()
            rows = {key: seq for key, stored in index if (seq := _seq(key, stored))}
            transaction.drop(self._index, delete=False)
            self._write_index(transaction, {**rows, **self._tail}, self.log.last)

        self.log.environment.write(work)
        self._tail = {}

    def close(self) -> None:
        """Close the log."""
        self.log.close()
