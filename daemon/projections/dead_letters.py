"""Dead letters: the captures that could not be distilled (P-12, T10).

Invariants: a capture is listed once, with its last reason and its number of attempts; only a successful retry or
forgetting removes it.
"""

from __future__ import annotations

from itertools import islice

import msgspec

from ...protocol.dead_letters import DeadLetter
from ...protocol.operation import Distilled, Failure, Redacted, Retried
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from .projection import FoldTables, OperationBatch
from .records import digest

_letter = msgspec.msgpack.Decoder(DeadLetter)
_encode = msgspec.msgpack.Encoder().encode


class DeadLetterTable(FoldTables):
    """The fold of dead letters, by number and by turn."""

    databases = ("letters", "letters_of")
    reads = (Distilled, Retried, Redacted)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        match entry.operation:
            case Distilled() as distilled:
                for failure in distilled.failed:
                    self._put(batch, failure, entry.at)
            case Retried() as retried:
                if retried.failed is None:
                    self._drop(batch, retried.archive_seq)
                else:
                    self._put(batch, retried.failed, entry.at)
            case Redacted() as redacted:
                for seq in redacted.captures:
                    self._drop(batch, seq)
                for document in redacted.turns:
                    for turn in document.turns:
                        self._forget(batch, digest(document.document) + digest(turn))
            case _:
                pass

    def _put(self, batch: OperationBatch, failure: Failure, at: int) -> None:
        letters, letters_of = map(self._table, self.databases)
        key = failure.seq.to_bytes(8)
        before = batch.get(key, db=letters)
        letter = DeadLetter(
            id=failure.seq,
            document=failure.document,
            turn=failure.turn,
            stage=failure.stage,
            reason=failure.error,
            attempts=_letter.decode(before).attempts + 1 if before else 1,
            at=at,
        )
        batch.put(key, _encode(letter), db=letters)
        place = digest(failure.document) + digest(failure.turn)
        if before is None:
            batch.put(place, (batch.get(place, db=letters_of) or b"") + key, db=letters_of)

    def _drop(self, batch: OperationBatch, seq: int) -> None:
        batch.delete(seq.to_bytes(8), db=self._table("letters"))

    def _forget(self, batch: OperationBatch, place: bytes) -> None:
        known = batch.get(place, db=self._table("letters_of")) or b""
        for start in range(0, len(known), 8):
            self._drop(batch, int.from_bytes(known[start : start + 8]))
        if known:
            batch.delete(place, db=self._table("letters_of"))

    def get(self, seq: int) -> DeadLetter | None:
        """Return the dead letter of a capture, or None."""
        stored = self._value("letters", seq.to_bytes(8), "a dead letter")
        return _letter.decode(stored) if stored else None

    def newest(self, limit: int | None = None) -> list[DeadLetter]:
        """Return dead letters, the newest capture first."""
        with self.environment.read() as snapshot:
            rows = islice(snapshot.cursor(self._table("letters")).iterprev(), limit)
            return [_letter.decode(unseal(key, stored, "a dead letter")) for key, stored in rows]

    def count(self) -> int:
        """Return the number of dead letters."""
        return self._count("letters")
