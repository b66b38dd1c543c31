"""The archive: raw captures as they were taken, secrets already out, one entry each; local only.

Comes in: `Captured` values. Goes out: their seqs, and turns by document. Invariants: `(document, turn)` is taken once
unless its words changed (then the new entry names the one it replaces); the index is written in the transaction of the
entries it points to, so an acknowledged turn is always found and a repeated one always recognised (P-7, W13).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import lmdb
import msgspec

from ...protocol.errors import JournalCorrupt
from ...protocol.event import Captured, text
from ...protocol.record import Span
from ..world import World
from .log import Draft, Entry, Log

Fate = Literal["accepted", "duplicate", "changed"]

_decoder = msgspec.msgpack.Decoder(Captured)
_encoder = msgspec.msgpack.Encoder()


def decode(entry: Entry) -> Captured | None:
    """The capture in an entry, or None if its payload was removed. Raises JournalCorrupt."""
    if entry.payload is None:
        return None
    try:
        return _decoder.decode(entry.payload)
    except msgspec.MsgspecError as error:
        raise JournalCorrupt(f"capture {entry.seq} does not decode: {error}", hint="run `memd verify`") from error


def _turn_key(document: str, turn: str) -> bytes:
    return blake2b(f"{document}\0{turn}".encode(), digest_size=16).digest()


def _document_key(document: str) -> bytes:
    return blake2b(document.encode(), digest_size=16).digest()


class Archive:
    """The log of captures, with an index by turn and one by document."""

    def __init__(self, folder: Path, world: World, *, readonly: bool = False) -> None:
        self.log = Log(folder, world, extra=("turns", "documents"), readonly=readonly)

    @property
    def _turns(self) -> lmdb.Database:
        return self.log.environment.db("turns")

    @property
    def _documents(self) -> lmdb.Database:
        return self.log.environment.db("documents")

    @property
    def last(self) -> int:
        """The seq of the last capture."""
        return self.log.last

    def take(self, captures: Sequence[Captured]) -> list[Fate]:
        """Append what is new or changed, durably, as one group; the fate of each capture in order."""
        fates: list[Fate] = []
        fresh: list[Captured] = []
        inside: dict[bytes, Captured] = {}
        keys = [_turn_key(captured.document, captured.event.turn) for captured in captures]
        seqs = self._seqs_of(keys)
        for captured, key in zip(captures, keys, strict=True):
            before = inside.get(key)
            replaces = 0
            if before is None and (seq := seqs.get(key)):
                before, replaces = self._at(seq, captured.document, captured.event.turn), seq
            expired = bool(replaces) and before is None  # its words were removed: it is known, and not taken again
            if expired or (before is not None and before.event == captured.event):
                fates.append("duplicate")
                continue
            fates.append("accepted" if before is None else "changed")
            fresh.append(msgspec.structs.replace(captured, replaces=replaces))
            inside[key] = captured
        drafts = [Draft("captured", 1, _encoder.encode(captured)) for captured in fresh]

        def index(transaction: lmdb.Transaction, entries: Sequence[Entry]) -> None:
            for captured, entry in zip(fresh, entries, strict=True):
                key = entry.seq.to_bytes(8)
                transaction.put(_turn_key(captured.document, captured.event.turn), key, db=self._turns)
                transaction.put(_document_key(captured.document) + key, b"", db=self._documents)

        self.log.append(drafts, index)
        return fates

    def _seqs_of(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        """The seqs of the turns that are known, by key, from one snapshot."""
        with self.log.environment.read() as transaction:
            found = ((key, transaction.get(key, db=self._turns)) for key in keys)
            return {key: int.from_bytes(seq) for key, seq in found if seq}

    def seq_of(self, document: str, turn: str) -> int:
        """The seq of the newest capture of a turn, 0 if there is none."""
        with self.log.environment.read() as transaction:
            found = transaction.get(_turn_key(document, turn), db=self._turns)
        return int.from_bytes(found) if found else 0

    def turn(self, document: str, turn: str) -> Captured | None:
        """The newest capture of a turn, or None."""
        seq = self.seq_of(document, turn)
        return self._at(seq, document, turn) if seq else None

    def _at(self, seq: int, document: str, turn: str = "") -> Captured | None:
        """The capture to which an index points; the log vouches for what it says, the index for nothing."""
        entry = self.log.get(seq)
        captured = decode(entry) if entry else None
        if entry is None or (captured and (captured.document != document or (turn and captured.event.turn != turn))):
            raise JournalCorrupt(f"the archive's index is wrong about {document}", hint="run `memd verify`")
        return captured

    def span(self, span: Span) -> str | None:
        """The words of a span as they were captured, or None where the turn is unknown or its words are removed."""
        captured = self.turn(span.document, span.turn)
        return text(captured.event)[span.start : span.end] if captured else None

    def expire(self, seqs: Sequence[int]) -> None:
        """Remove payload and blind of these captures, all or none; their headers stay. Called by the writing thread."""
        self.log.erase(seqs)

    def around(self, document: str, turn: str, before: int, after: int) -> list[tuple[int, Captured]]:
        """The captures of one document around a turn, in order, with their seqs: for DEEP and `memd why`."""
        seq = self.seq_of(document, turn)
        if not seq:
            return []
        prefix = _document_key(document)
        with self.log.environment.read() as transaction:
            cursor = transaction.cursor(self._documents)
            seqs = [seq]
            cursor.set_key(prefix + seq.to_bytes(8))
            while len(seqs) <= before and cursor.prev() and cursor.key().startswith(prefix):
                seqs.insert(0, int.from_bytes(cursor.key()[16:]))
            cursor.set_key(prefix + seq.to_bytes(8))
            for _ in range(after):
                if not (cursor.next() and cursor.key().startswith(prefix)):
                    break
                seqs.append(int.from_bytes(cursor.key()[16:]))
        return [(number, captured) for number in seqs if (captured := self._at(number, document))]

    def after(self, seq: int, limit: int) -> list[tuple[int, Captured]]:
        """At most `limit` captures after `seq`, in order, with their seqs; removed ones are left out."""
        return [(e.seq, captured) for e in self.log.slice(seq, limit) if (captured := decode(e)) is not None]

    def reindex(self) -> None:
        """Write the index rows that are missing: a damaged one makes a turn unknown, and the log has them all."""
        newest: dict[bytes, int] = {}
        places: list[bytes] = []
        for entry in self.log.read():
            if (captured := decode(entry)) is not None:
                newest[_turn_key(captured.document, captured.event.turn)] = entry.seq
                places.append(_document_key(captured.document) + entry.seq.to_bytes(8))

        def work(transaction: lmdb.Transaction) -> None:
            for key, seq in newest.items():
                found = transaction.get(key, db=self._turns)
                if found is None or int.from_bytes(found) < seq:
                    transaction.put(key, seq.to_bytes(8), db=self._turns)
            for place in places:
                transaction.put(place, b"", db=self._documents)

        self.log.environment.write(work)

    def close(self) -> None:
        """Close the log."""
        self.log.close()
