"""Change conditions: what makes a belief doubtful, and whether it happened.

Invariants: a belief whose condition is met loses confidence and is proposed to the user, never retired here;
statements from before the belief's last confirmation do not count; a higher count is needed to report it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ....protocol.fading import Reviewed
from ....protocol.instant import micros
from ....protocol.operation import Added, AnyOperation, ChangeProposed, Updated
from ....protocol.record import LIVE, Record
from ...forgetting_rules import Rules
from ...projections.inbox import proposal_id
from ...projections.stores import Stores
from ..record_history import entries

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
    """A record against a belief, with its time (microseconds) and place."""

    record: str
    at: int
    day: str
    document: str
    project: str


def condition(record: Record, rules: Rules) -> Condition | None:
    """Return when a belief is doubtful: by its own countable words, else by the rule; None for other records."""
    if not (record.held or record.type in BELIEFS or "principle" in record.tags):
        return None
    stated = record.review.change_condition if record.review else ""
    if match := _STATED.search(stated):
        return Condition(int(match["count"]), match["of"].lower().startswith("project"), stated)
    if not rules.change_sessions:
        return None
    return Condition(rules.change_sessions, False, f"{rules.change_sessions} sessions on different days contradict it")


class Conditions:
    """The daily check of change conditions."""

    def __init__(self, stores: Stores, rules: Callable[[], Rules]) -> None:
        self._stores, self._rules = stores, rules

    def met(self, doubtful: Iterable[str]) -> list[AnyOperation]:
        """Return the operations for beliefs whose condition is met. `doubtful`: records left for review. On the write
        thread; commit the result at once."""
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
        return operations

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
        pairs |= {
            (pending.what.record, pending.what.against) for pending in self._stores.inbox.list() if pending.what.against
        }
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
        return Instance(record.id, micros(said.said_at), said.said_at[:10], said.source, project)


def _confirmed(belief: Record) -> int:
    """Return the time of the last confirmation in microseconds."""
    said = [belief.provenance.said_at, *(evidence.at for evidence in belief.provenance.evidence)]
    return max(map(micros, said))


def _independent(said: Iterable[Instance], stated: Condition) -> int:
    """Count projects, or sessions on different days."""
    told_by = list(said)
    if stated.projects:
        return len({instance.project for instance in told_by if instance.project})
    return min(len({instance.document for instance in told_by}), len({instance.day for instance in told_by}))
