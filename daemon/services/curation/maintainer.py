"""The maintainer: proposes merges within a playbook, that contradicted records leave it, and lapsed reviews (G1, G4).

Invariants: it writes proposals only; it proposes nothing about a record of which a proposal waits; duplicates outside
of the playbook and conflicts of pinned records are found elsewhere (T12, T13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ....protocol.curation import MAINTAINER, CuratedEvidence, CuratedProposal, ProposalKind
from ....protocol.instant import from_micros
from ....protocol.operation import ChangeProposed, PatchStep
from ....protocol.patch_file import STATEMENT
from ....protocol.record import LIVE, Record
from ...projections.inbox import PendingProposal, proposal_id
from ...projections.stores import Stores
from ..playbook_belief import statement
from .curator import STEPS, RoleProposal, ThresholdsOf, held_in, nearest_duplicate

Contradictions = Callable[[], Mapping[str, Sequence[str]]]
"""The independent records against each belief that no decision has settled, newest last."""


class Maintainer:
    """Looks after the playbooks. Not on the write thread; one object a run."""

    def __init__(
        self,
        stores: Stores,
        against: Contradictions,
        thresholds: ThresholdsOf,
        now: int,
        waiting: Sequence[PendingProposal],
    ) -> None:
        """`waiting`: the open proposals of the inbox, of whatever kind."""
        self._stores, self._against, self._thresholds = stores, against, thresholds
        self._day = from_micros(now)[:10]
        self._waiting = {id for pending in waiting for id in _records_of(pending.what)}

    def proposals(self, pools: Sequence[str]) -> Iterator[RoleProposal]:
        """Yield what should change in these pools' playbooks."""
        against = self._against()
        for pool in pools:
            if MAINTAINER not in self._thresholds(pool).playbook.writers:
                continue
            playbook = [
                record
                for record in held_in(self._stores, pool)
                if record.layer == "L2" and record.status in LIVE and record.id not in self._waiting
            ]
            taken: set[str] = set()
            for proposal in (*self._contradicted(playbook, against), *self._merged(playbook)):
                if taken.isdisjoint(record.id for record in proposal.records):
                    taken.update(record.id for record in proposal.records)
                    yield proposal
            yield from self._reviewed([record for record in playbook if record.id not in taken])

    def _contradicted(self, playbook: Iterable[Record], against: Mapping[str, Sequence[str]]) -> Iterator[RoleProposal]:
        for record in playbook:
            ids = against.get(record.id, ())
            if len(ids) < self._thresholds(record.pool).contradictions:
                continue
            other = self._stores.records.get(ids[-1])
            if other is None:
                continue
            said = other.provenance.said_at[:10]
            reason = f"{len(ids)} independent statement{'s' if len(ids) > 1 else ''} against it, the last of {said}"
            step = PatchStep(op="deprecate", id=record.id, rev=record.rev, day=self._day, reason=reason)
            yield self._proposal("deprecate", (step,), record, reason, f"{len(ids)} {other.id}", other)

    def _merged(self, playbook: Sequence[Record]) -> Iterator[RoleProposal]:
        for place, record in enumerate(playbook):
            kept = nearest_duplicate(self._stores, record, playbook[place + 1 :])
            if kept is None:
                continue
            gone, stays = sorted((record, kept), key=_weight)
            reason = f"{stays.id[:8]} says the same"
            step = PatchStep(op="supersede", id=gone.id, rev=gone.rev, to=stays.id, day=self._day, reason=reason)
            yield self._proposal("merge", (step,), gone, reason, stays.id, stays)

    def _reviewed(self, playbook: Iterable[Record]) -> Iterator[RoleProposal]:
        """Yield one patch of a pool with the confidence of records whose review lapsed after their last patch."""
        lapsed = [record for record in playbook if self._is_lowered(record)][:STEPS]
        if not lapsed:
            return
        steps = tuple(
            PatchStep(
                op="review",
                id=record.id,
                rev=record.rev,
                day=self._day,
                confidence=record.confidence,
                next_review=record.review.next[:10] if record.review else "",
                reason="nobody confirmed it by its review date",
            )
            for record in lapsed
        )
        first = lapsed[0]
        reason = f"{len(steps)} of the playbook lost confidence, because nobody confirmed them by their review date"
        names = " ".join(f"{record.id} {record.confidence}" for record in lapsed)
        yield self._proposal("review", steps, first, reason, names)

    def _is_lowered(self, record: Record) -> bool:
        """Whether the confidence of a record is below the one that its last patch gave it."""
        steps = [step for entry in self._stores.patches.of_record(record.id) for step in entry.steps]
        stated = [step.confidence for step in steps if step.id == record.id and step.confidence]
        return bool(stated) and round(record.confidence, 2) < round(stated[-1], 2)

    def _proposal(
        self,
        kind: ProposalKind,
        steps: tuple[PatchStep, ...],
        record: Record,
        reason: str,
        distinct: str,
        other: Record | None = None,
    ) -> RoleProposal:
        id = proposal_id(record.id, f"{MAINTAINER} {kind} {distinct}")
        labels = {"deprecate": "contradicted", "merge": "duplicate", "review": "review lapsed"}
        operation = ChangeProposed(
            id=id,
            what="patch",
            record=record.id,
            by=MAINTAINER,
            label=labels[kind],
            reason=reason,
            steps=steps,
        )
        day = CuratedEvidence("session", other.provenance.said_at[:10]) if other and kind == "deprecate" else None
        told = CuratedProposal(
            id=id,
            kind=kind,
            by=MAINTAINER,
            pool=record.pool,
            record=record.id,
            statement=statement(record)[:STATEMENT],
            layer="L2",
            confidence=record.confidence,
            evidence=(day,) if day else (),
            why=reason,
            against=other.id if other else "",
            against_statement=statement(other)[:STATEMENT] if other else "",
        )
        return RoleProposal(operation, told, (record, other) if other else (record,))


def _records_of(what: ChangeProposed) -> Iterator[str]:
    yield from filter(None, (what.record, what.against))
    yield from (step.id for step in what.steps)


def _weight(record: Record) -> tuple[bool, bool, float, int, str]:
    """Return the order of two equal records of a playbook: the last one stays."""
    return record.pinned, record.provenance.trust == "user", record.confidence, -record.learned_at, record.id
