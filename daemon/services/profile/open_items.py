"""Open items: commitments that no later turn reports as done or dropped (Q1).

Invariants: nothing but the archive is read; only a sentence about the same things closes an item, never time; a negated
sentence closes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ....protocol.event import Captured, text
from ....protocol.instant import micros
from ....protocol.record import Record
from ....stages.commitments import closes, subject

TURNS = 400
"""Turns of the same session after a commitment that may close it."""


class NearbyCaptures(Protocol):
    """Reads of captures (`Archive`)."""

    def around(self, document: str, turn: str, before: int, after: int) -> Sequence[tuple[int, Captured]]:
        """Return the captures of a document around a turn, in order, with their seqs."""
        ...


def is_open(commitment: Record, archive: NearbyCaptures, learned: Iterable[Record]) -> bool:
    """Whether neither a later turn nor a record that was learned later closes a commitment."""
    wanted = subject(commitment.content)
    if not wanted:
        return False
    said_at = micros(commitment.provenance.said_at)
    later = (record for record in learned if record.id != commitment.id and micros(record.provenance.said_at) > said_at)
    if any(closes(record.content, wanted) for record in later):
        return False
    span = commitment.provenance.spans[0]
    around = archive.around(span.document, span.turn, 0, TURNS)
    return not any(closes(text(turn.event), wanted) for _, turn in around if turn.event.turn != span.turn)
