"""The records that a profile would have after a change that the user only looks at (T1, U8)."""

from __future__ import annotations

from collections.abc import Sequence

from ....protocol.record import Record
from ...projections.profile import Part, part
from .profile_lines import Cards


class AssumedCards:
    """The records of `cards`, some of them as they would be; a record that `cards` lacks is new."""

    def __init__(self, cards: Cards, records: Sequence[Record]) -> None:
        self._cards, self._records = cards, {record.id: record for record in records}

    def cards(self, pool: str, name: Part) -> list[Record]:
        """Return the records of a pool's part, in no order."""
        others = [record for record in self._cards.cards(pool, name) if record.id not in self._records]
        return others + [record for record in self._records.values() if (record.pool, part(record)) == (pool, name)]
