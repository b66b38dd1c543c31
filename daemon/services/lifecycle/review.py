"""Review: lowers the confidence of old records that may have changed and that nobody confirmed.

Only volatile records have a review date, and pinning, use or restatement moves it. A run writes few operations, and
starts only on an idle machine on power. Due records follow from the records alone, so a restart loses nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from pathlib import Path

from ....protocol.fading import Reviewed
from ....protocol.instant import from_micros, micros
from ....protocol.record import LIVE, Record, Signal
from ...forgetting_rules import Rules
from ...projections.stores import Stores
from ...projections.strength import DAY
from ..write_thread import Writer
from .conditions import Conditions

MOST = 200
"""Records reviewed a run."""

KEPT = 2000
"""Most due records to remember."""

UNUSED = Signal()
"""Use only postpones a review: a record that is not due without it needs no read of the counters."""

POWER = Path("/sys/class/power_supply")


def cadence_days(record: Record, rules: Rules) -> float:
    """Return the calendar days between two reviews; 0 for stable records and kinds that never fade."""
    if record.review and record.review.cadence_days:
        return record.review.cadence_days
    if record.kind in rules.never or record.held or record.volatility == "stable":
        return 0.0
    return rules.review_days * (1 if record.volatility == "situational" else 2)


def due_at(record: Record, signal: Signal, rules: Rules) -> int:
    """Return the time of the next review in microseconds, 0 for never. Use and restatement postpone it."""
    if not (cadence := cadence_days(record, rules)):
        return 0
    if record.review and record.review.next:
        planned = micros(record.review.next)
    else:
        planned = micros(record.provenance.said_at) + int(cadence * DAY)
    seen = max([signal.last_access, *(micros(evidence.at) for evidence in record.provenance.evidence)])
    return max(planned, seen + int(cadence * DAY) if seen else 0)


def is_quiet() -> bool:
    """Return whether the machine is idle and on power, as far as it reports."""
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        return False
    for supply in POWER.glob("*/online"):
        try:
            if supply.read_text().strip() == "0":
                return False
        except OSError:
            continue
    return True


class ReviewJob:
    """The daily review."""

    def __init__(self, stores: Stores, writer: Writer, rules: Callable[[], Rules], now: Callable[[], int]) -> None:
        self._stores, self._writer, self._rules, self._now = stores, writer, rules, now
        self.conditions = Conditions(stores, rules)
        self._due: list[str] = []
        self._looked_at: int | None = None

    def overdue(self, pools: Container[str]) -> Iterator[Record]:
        """Yield the live records of these pools whose review is due, by id; may miss those since the last full look,
        at most a day ago."""
        if self._looked_at is None or self._now() - self._looked_at >= DAY:
            self._look()
        records = self._stores.records.many(self._due).values()
        return (record for record in records if record.pool in pools and self._is_overdue(record))

    def _look(self) -> list[str]:
        """Find due records; return those left for review."""
        due: list[str] = []
        doubtful: list[str] = []
        for record in self._stores.records.everything():
            if record.needs_review and record.status in LIVE:
                doubtful.append(record.id)
            if len(due) < KEPT and self._is_overdue(record):
                due.append(record.id)
        self._due, self._looked_at = due, self._now()
        return doubtful

    def _is_overdue(self, record: Record) -> bool:
        rules, now = self._rules(), self._now()
        if record.status not in LIVE or rules.is_off(record.pool) or not 0 < due_at(record, UNUSED, rules) <= now:
            return False
        return due_at(record, self._stores.counters.signals([record])[record.id], rules) <= now

    def run(self) -> int:
        """Lower the confidence of due records and of those whose change condition is met; return their number. Not on
        the write thread."""
        doubtful, overdue = self._look(), self._due[:MOST]
        return self._writer.run(lambda: self._review(overdue) + self._doubt(doubtful)).result()

    def _doubt(self, doubtful: list[str]) -> int:
        operations = self.conditions.met(doubtful)
        if operations:
            self._stores.commit(operations)
        return sum(isinstance(operation, Reviewed) for operation in operations)

    def _review(self, ids: list[str]) -> int:
        rules, now = self._rules(), self._now()
        operations = [
            Reviewed(
                id=record.id,
                confidence=round(record.confidence * rules.overdue_confidence, 4),
                next=from_micros(now + int(cadence_days(record, rules) * DAY)),
                why="overdue",
            )
            for record in self._stores.records.many(ids).values()
            if record.status in LIVE
        ]
        if operations:
            self._stores.commit(operations)
        return len(operations)
