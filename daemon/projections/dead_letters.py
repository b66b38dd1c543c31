"""Dead letters: the captures that could not be distilled, each until it is, or until it is forgotten (P-12, T10).

Comes in: `distilled` with failures, `retried`, `redacted`. Goes out: letters by number. Invariants: a capture is listed
once, with its last reason and the number of its attempts; nothing but a successful retry or forgetting takes it off.
"""

from __future__ import annotations

import msgspec

from ...protocol.operation import Distilled, Failure, Redacted, Retried
from ...protocol.reply import Logged
from ...protocol.running import DeadLetter
from ..storage.checksummed_rows import unseal
from .projection import OperationBatch
from .records import Records, digest

_letter = msgspec.msgpack.Decoder(DeadLetter)
_encode = msgspec.msgpack.Encoder().encode


class DeadLetterTable:
    """The fold of dead letters, by number and by turn."""

    databases = ("letters", "letters_of")
    reads = (Distilled, Retried, Redacted)

    def __init__(self, records: Records) -> None:
        self._records = records

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
                for one in redacted.turns:
                    for turn in one.turns:
                        self._forget(batch, digest(one.document) + digest(turn))
            case _:
                pass

    def _put(self, batch: OperationBatch, failure: Failure, at: int) -> None:
        db = self._records.environment.db
        key = failure.seq.to_bytes(8)
        before = batch.get(key, db=db("letters"))
        letter = DeadLetter(
            id=failure.seq,
            document=failure.document,
            turn=failure.turn,
            stage=failure.stage,
            reason=failure.error,
            attempts=_letter.decode(before).attempts + 1 if before else 1,
            at=at,
        )
        batch.put(key, _encode(letter), db=db("letters"))
        place = digest(failure.document) + digest(failure.turn)
        known = batch.get(place, db=db("letters_of")) or b""
        if before is None:
            batch.put(place, known + key, db=db("letters_of"))

    def _drop(self, batch: OperationBatch, seq: int) -> None:
        batch.delete(seq.to_bytes(8), db=self._records.environment.db("letters"))

    def _forget(self, batch: OperationBatch, place: bytes) -> None:
        known = batch.get(place, db=self._records.environment.db("letters_of")) or b""
        for start in range(0, len(known), 8):
            self._drop(batch, int.from_bytes(known[start : start + 8]))
        if known:
            batch.delete(place, db=self._records.environment.db("letters_of"))

    def get(self, seq: int) -> DeadLetter | None:
        """The letter of that number, or None."""
        key = seq.to_bytes(8)
        with self._records.environment.read() as transaction:
            stored = transaction.get(key, db=self._records.environment.db("letters"))
        return _letter.decode(unseal(key, stored, "a dead letter")) if stored else None

    def newest(self, limit: int | None = None) -> list[DeadLetter]:
        """Letters, the newest capture first."""
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("letters"))
            found: list[DeadLetter] = []
            going = cursor.last()
            while going and (limit is None or len(found) < limit):
                found.append(_letter.decode(unseal(*cursor.item(), "a dead letter")))
                going = cursor.prev()
            return found

    def count(self) -> int:
        """How many there are."""
        with self._records.environment.read() as transaction:
            return int(transaction.stat(self._records.environment.db("letters"))["entries"])
