"""How much feedback there is to learn from, by agent (Q6).

Comes in: `feedback`. Goes out: counts of samples. Invariant: the samples themselves stay in the journal, which whoever
learns reads.
"""

from __future__ import annotations

from ...protocol.fading import FeedbackGiven
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from .projection import OperationBatch
from .records import Records, digest


class FeedbackCounts:
    """The fold of feedback."""

    databases = ("lessons",)
    reads = (FeedbackGiven,)

    def __init__(self, records: Records) -> None:
        self._records = records

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Count the samples of one operation."""
        if isinstance(entry.operation, FeedbackGiven) and entry.operation.samples:
            db, key = self._records.environment.db("lessons"), digest(entry.operation.agent)
            known = int.from_bytes(batch.get(key, db=db) or b"\0")
            batch.put(key, (known + len(entry.operation.samples)).to_bytes(8), db=db)

    def count(self, agent: str) -> int:
        """How many samples an agent gave so far."""
        key = digest(agent)
        with self._records.environment.read() as transaction:
            stored = transaction.get(key, db=self._records.environment.db("lessons"))
        return int.from_bytes(unseal(key, stored, "a count of feedback")) if stored else 0
