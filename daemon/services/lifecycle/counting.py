"""Counts of retrievals and uses on their way into the journal.

Retrievals wait in memory for a session's end or `FLUSH_S`, and a crash may lose them; a use is committed at once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

from ....protocol.fading import Count, Counted, Released
from ....protocol.operation import AnyOperation
from ...forgetting_rules import Rules, UseOutcome
from ...projections.stores import Stores
from ..statements import is_on_probation
from ..write_thread import Writer

FLUSH_S = 600.0
SLICE = 1000
"""Records in one operation at most."""


class UseCounter:
    """Counts retrievals and uses. Any thread may call it."""

    def __init__(self, stores: Stores, writer: Writer, rules: Callable[[], Rules]) -> None:
        self._stores, self._writer, self._rules = stores, writer, rules
        self._waiting: Counter[str] = Counter()
        self._lock = threading.Lock()

    def candidates(self, ids: Iterable[str]) -> None:
        """Count retrievals, which strengthen nothing."""
        with self._lock:
            self._waiting.update(ids)

    def uncounted(self) -> Mapping[str, int]:
        """Return the waiting counts of retrievals by record."""
        with self._lock:
            return dict(self._waiting)

    def used(self, ids: Iterable[str], perspective: str = "", outcome: UseOutcome = "") -> Future[int]:
        """Count a use of these records, under a perspective, with an outcome: durable when the future is done, whose
        result is the number of records."""
        wanted = tuple(ids)
        return self._writer.run(lambda: self.commit_use(wanted, perspective, outcome))

    def commit_use(self, ids: Iterable[str], perspective: str, outcome: UseOutcome) -> int:
        """Count a use as `used` does, durably when this returns. On the write thread."""
        return self._commit(dict.fromkeys(ids, Count(uses=1, impact=self._impact(outcome))), perspective)

    def credit(self, ids: Iterable[str], outcome: UseOutcome) -> Future[int]:
        """Add the impact of a task's outcome to records whose use was counted before (T4)."""
        impact = self._impact(outcome)
        counts = dict.fromkeys(ids, Count(impact=impact))
        return self._writer.run(lambda: self._commit(counts, ""))

    def _impact(self, outcome: UseOutcome) -> float:
        rules = self._rules()
        return {"": 0.0, "helpful": rules.helpful, "success": rules.success, "prevented": rules.prevented}[outcome]

    def flush(self) -> Future[int]:
        """Commit the waiting counts; the result is the number of records."""
        with self._lock:
            waiting, self._waiting = self._waiting, Counter[str]()
        counts = {id: Count(candidates=number) for id, number in waiting.items()}
        return self._writer.run(lambda: self._commit(counts, ""))

    def _commit(self, counts: Mapping[str, Count], perspective: str) -> int:
        """Commit counts, and release used records from probation. On the write thread."""
        records = self._stores.records.many(counts)
        pools: dict[str, dict[str, Count]] = {}
        for id, record in records.items():
            pools.setdefault(record.pool, {})[id] = counts[id]
        operations: list[AnyOperation] = []
        for pool, inside in sorted(pools.items()):
            ordered = sorted(inside.items())
            for start in range(0, len(ordered), SLICE):
                operations.append(self._counted(pool, dict(ordered[start : start + SLICE]), perspective))
        if proven := tuple(id for id, record in records.items() if counts[id].uses and is_on_probation(record)):
            operations.append(Released(ids=proven))
        if operations:
            self._stores.commit(operations)
        return len(records)

    def _counted(self, pool: str, counts: dict[str, Count], perspective: str) -> Counted:
        rules = self._rules()
        return Counted(
            pool=pool,
            counts=counts,
            perspective=perspective,
            step=rules.use,
            perspective_step=rules.perspective_use,
            impact_share=rules.impact_share,
            level_uses=rules.level_uses,
        )
