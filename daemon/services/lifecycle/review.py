"""Review: lowers the confidence of old records that nobody confirmed, and of beliefs whose change condition is met.

Pinned records have no review date; use or restatement postpones that of others. A run writes few operations, and
starts only on an idle machine on power. Due records follow from the records alone, so a restart loses nothing.
A belief whose change condition is met is proposed to the user, never retired here; statements from before the belief's
last confirmation do not count; a higher count is needed to report it again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ....protocol.fading import Reviewed
from ....protocol.instant import from_micros, micros
from ....protocol.operation import Added, AnyOperation, ChangeProposed, Updated
from ....protocol.record import LIVE, Record, Signal
from ...forgetting_rules import Rules
from ...projections.inbox import proposal_id
from ...projections.stores import Stores
from ...projections.strength import DAY
from ..record_history import entries
from ..write_thread import Writer

MOST = 200
"""Records reviewed a run."""

KEPT = 2000
"""Most due records to remember."""

UNUSED = Signal()
"""Use only postpones a review: a record that is not due without it needs no read of the counters."""

POWER = Path("/sys/class/power_supply")

BELIEFS = frozenset({"preference", "convention", "principle"})
"""Types with a change condition (G4); records that are pinned, in L1 or L2, or tagged `principle` have one too."""

_AGAINST = frozenset({"replaces", "contradicts"})
_STATED = re.compile(r"\b(?P<count>\d{1,3})\s*\+?\s*(?:or more |separate |independent |different )*(?P<of>sessions?|"
                     r"projects?|days?|times|instances?|people)\b", re.IGNORECASE)  # fmt: skip


class Condition(NamedTuple):
    """The number of sessions on different days, or of projects, that must contradict a belief."""

    least: int
    projects: bool
    text: str


class Instance(NamedTuple):
    """A record against a belief, with its time (microseconds), document, session family and project."""

    record: str
    at: int
    day: str
    document: str
    family: str
    project: str


def condition(record: Record, rules: Rules) -> Condition | None:
    """Return when a belief is doubtful: by its own countable words, else by the rule; None for other records."""
    stated = record.review.change_condition if record.review else ""
    if match := _STATED.search(stated):
        return Condition(int(match["count"]), match["of"].lower().startswith("project"), stated)
    is_belief = record.held or record.type in BELIEFS or "principle" in record.tags
    if not (is_belief and rules.change_sessions):
        return None
    return Condition(rules.change_sessions, False, f"{rules.change_sessions} sessions on different days contradict it")


def cadence_days(record: Record, rules: Rules) -> float:
    """Return the calendar days between two reviews; 0 for pinned records and kinds that never fade."""
    if record.review and record.review.cadence_days:
        return record.review.cadence_days
    if record.kind in rules.never or record.held:
        return 0.0
    return rules.stable_review_days if record.volatility == "stable" else rules.review_days


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

    def __init__(
        self,
        stores: Stores,
        writer: Writer,
        rules: Callable[[], Rules],
        now: Callable[[], int],
        rules_of: Callable[[str], Rules] | None = None,
    ) -> None:
        """`rules_of`: the rules of a pool, by default `rules`, those of all."""
        self._stores, self._writer, self._rules, self._now = stores, writer, rules, now

        def of_all(pool: str) -> Rules:
            return rules()

        self._rules_of = rules_of or of_all
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
        rules, now = self._rules_of(record.pool), self._now()
        if record.status not in LIVE or rules.is_off(record.pool) or not 0 < due_at(record, UNUSED, rules) <= now:
            return False
        return due_at(record, self._stores.counters.signals([record])[record.id], rules) <= now

    def run(self) -> int:
        """Lower the confidence of due records and of those whose change condition is met; return their number. Not on
        the write thread."""
        doubtful, overdue = self._look(), self._due[:MOST]
        return self._writer.run(lambda: self._review(overdue) + self._doubt(doubtful)).result()

    def _review(self, ids: list[str]) -> int:
        rules, now = self._rules(), self._now()
        operations = [
            Reviewed(
                id=record.id,
                confidence=round(record.confidence * rules.overdue_confidence, 4),
                next=from_micros(now + int(cadence_days(record, self._rules_of(record.pool)) * DAY)),
                why="overdue",
            )
            for record in self._stores.records.many(ids).values()
            if record.status in LIVE
        ]
        if operations:
            self._stores.commit(operations)
        return len(operations)

    def _doubt(self, doubtful: Iterable[str]) -> int:
        """Doubt beliefs whose condition is met; return their number. `doubtful`: records left for review."""
        operations: list[AnyOperation] = []
        rules = self._rules()
        against = self._against(doubtful)
        for belief in self._stores.records.many(sorted(against)).values():
            stated = condition(belief, rules)
            if stated is None or belief.status not in LIVE or rules.is_off(belief.pool):
                continue
            said = sorted(
                (instance for instance in against[belief.id] if instance.at > _confirmed(belief)), key=lambda e: e.at
            )
            count = _independent(said, stated)
            if count < stated.least or count <= (belief.review.against if belief.review else 0):
                continue
            why = f"{stated.text}: met by {count}"
            operations.append(
                Reviewed(
                    id=belief.id,
                    confidence=round(belief.confidence * rules.changed_confidence, 4),
                    next=belief.review.next if belief.review else "",
                    why=why,
                    against=count,
                )
            )
            operations += self._proposed(belief, said[-1], why)
        if operations:
            self._stores.commit(operations)
        return sum(isinstance(operation, Reviewed) for operation in operations)

    def contradictions(self) -> dict[str, tuple[str, ...]]:
        """Return the independent records against each belief that were said after its last confirmation, oldest
        first; one a session family and day."""
        doubtful = self._look()
        against = self._against(doubtful)
        beliefs = self._stores.records.many(against)
        return {
            id: tuple(instance.record for instance in _one_each(against[id], _confirmed(belief)))
            for id, belief in beliefs.items()
        }

    def _proposed(self, belief: Record, newest: Instance, why: str) -> Iterator[ChangeProposed]:
        id = proposal_id(belief.id, newest.record)
        if self._stores.inbox.get(id) is None:
            yield ChangeProposed(
                id=id,
                what="conflict",
                record=belief.id,
                against=newest.record,
                document=newest.document,
                label="contradicts",
                reason=why,
            )

    def _against(self, doubtful: Iterable[str]) -> dict[str, list[Instance]]:
        """Return the live records against each belief, without rejected and injected ones."""
        pairs = {(belief, id) for id in doubtful for belief in self._left_beside(id)}
        proposals = (pending.what for pending in self._stores.inbox.list())
        pairs |= {(proposal.record, proposal.against) for proposal in proposals if proposal.what == "conflict"}
        records = self._stores.records.many({id for _, id in pairs})
        instances: dict[str, list[Instance]] = {}
        for belief, id in sorted(pairs):
            record = records.get(id)
            asked = self._stores.inbox.get(proposal_id(belief, id))
            stands = asked is None or asked.state == "open"
            if record and stands and record.status in LIVE and "injection" not in record.flags:
                instances.setdefault(belief, []).append(self._instance(record))
        return instances

    def _left_beside(self, id: str) -> set[str]:
        """Return the records that contradict this one, by its last decision."""
        for entry in entries(self._stores, id, newest_first=True):
            if isinstance(entry.operation, Added | Updated) and entry.operation.record.id == id:
                near = entry.operation.decision.neighbours
                return {neighbour.id for neighbour in near if neighbour.label in _AGAINST} - set(
                    entry.operation.record.supersedes
                )
        return set()

    def _instance(self, record: Record) -> Instance:
        said = record.provenance
        session = self._stores.sources.session(said.source)
        project = session.opened.project if session else record.pool
        family = session.family if session else said.source
        return Instance(record.id, micros(said.said_at), said.said_at[:10], said.source, family, project)


def _one_each(said: Iterable[Instance], after: int) -> Iterator[Instance]:
    """Yield the instances after a time, no two of one family or of one day."""
    seen: set[str] = set()
    for instance in sorted(said, key=lambda instance: instance.at):
        if instance.at > after and seen.isdisjoint((instance.family, instance.day)):
            seen.update((instance.family, instance.day))
            yield instance


def _confirmed(belief: Record) -> int:
    """Return the time of the last confirmation in microseconds."""
    said = [belief.provenance.said_at, *(evidence.at for evidence in belief.provenance.evidence)]
    return max(map(micros, said))


def _independent(said: Iterable[Instance], stated: Condition) -> int:
    """Count projects, or sessions on different days."""
    told_by = list(said)
    if stated.projects:
        return len({instance.project for instance in told_by if instance.project})
    return min(len({instance.family for instance in told_by}), len({instance.day for instance in told_by}))
