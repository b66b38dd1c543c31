"""The curator: proposes what a pool's playbook or the user's identity should take in (G3, G4).

Invariants: it writes proposals only; no statement passes on one conversation alone; L1 is proposed from the user's own
words alone; a cluster that the user rejected comes back only with `MORE` new instances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ....protocol.curation import (
    CURATOR,
    CuratedEvidence,
    CuratedProposal,
    LayerRule,
    ProposalKind,
    Thresholds,
)
from ....protocol.ingestion import SUMMARY
from ....protocol.instant import from_micros
from ....protocol.operation import ChangeProposed, PatchStep
from ....protocol.patch_file import STATEMENT
from ....protocol.record import LIVE, PRINCIPLE, Layer, Record
from ....stages.batch import PERSONAL
from ....stages.same_rules import Rows, RuleReader, ToldStatement, same_rules
from ...projections.inbox import PendingProposal, proposal_id
from ...projections.placement import AGENT
from ...projections.records import digest
from ...projections.stores import Stores
from ...projections.strength import DAY
from ..playbook_belief import statement
from .clusters import stars
from .instances import CountedEvidence, EvidenceCounter, EvidenceInstance, confidence

TYPES = frozenset({"preference", "convention", "decision", "lesson", "procedure", PRINCIPLE})
"""Types that may be promoted. Facts, events and commitments pass with time: "on vacation" was told on two days."""

IDENTITY_TYPES = frozenset({"preference", PRINCIPLE})
"""Types that may become part of the user's identity."""

MORE = 2
"""New instances with which a rejected cluster comes back."""

STEPS = 10
"""Most steps of a patch."""

CONDITION = "3 sessions on different days say otherwise"
"""The change condition of a record that states none."""

EVIDENCE = 20
"""Most pieces of evidence that a step names."""

LASTING = 0.4
"""Probability that a proposed statement holds from now on."""

DUPLICATE = 0.85
"""Cosine from which a record of the playbook has a statement already."""

LIKE = 0.5
"""Cosine from which two statements are compared by their words."""

TOO_FEW = "too little independent evidence"
UNBOUND = "unbound/"

ThresholdsOf = Callable[[str], Thresholds]


class RoleProposal(NamedTuple):
    """A proposal, as the journal and as a reader get it. `records`: those on whose present revision it rests."""

    operation: ChangeProposed
    told: CuratedProposal
    records: tuple[Record, ...]


class BeliefCluster(NamedTuple):
    """Records that say the same with their evidence; `best` is the one whose words are proposed, `lasting` the
    probability that they hold from now on."""

    best: Record
    records: tuple[Record, ...]
    evidence: CountedEvidence
    lasting: float


class Curator:
    """Looks for beliefs that have earned a place in a layer. Not on the write thread; one object a run."""

    def __init__(
        self,
        stores: Stores,
        counter: EvidenceCounter,
        thresholds: ThresholdsOf,
        now: int,
        earlier: Earlier,
        reader: RuleReader,
    ) -> None:
        self._stores, self._counter, self._thresholds, self._now = stores, counter, thresholds, now
        self._earlier, self._reader = earlier, reader
        self.left_out = Counter[str]()
        self.read = 0
        self._coming = Counter[tuple[str, Layer]]()
        self._let_go: set[str] = set()

    def proposals(self, pools: Sequence[str]) -> Iterator[RoleProposal]:
        """Yield what these pools' layers should take in."""
        told = [record for pool in pools for record in self._candidates(pool)]
        self.read += len(told)
        pairs = same_rules([self._told_statement(record) for record in told], rows_of(told, self._stores), self._reader)
        for cluster in stars(told, pairs):
            agreeing = self._without_denials(cluster)
            if proposal := self._judged(agreeing, self._home(agreeing)):
                yield proposal

    def _told_statement(self, record: Record) -> ToldStatement:
        turn, before = self._counter.turn_of(record)
        return ToldStatement(
            words=record.description,
            turn=turn,
            before=before,
            family=self._counter.family(record.provenance.source),
            is_user=record.provenance.trust == "user",
            pool=record.pool,
        )

    def _project(self, record: Record) -> str:
        session = self._stores.sources.session(record.provenance.source)
        return session.opened.project if session else ""

    def _home(self, cluster: Sequence[Record]) -> str:
        """Return the pool whose playbook takes a rule: the project's if all of it was said there, else the user's own
        if a record of it is there."""
        pools = {record.pool for record in cluster}
        projects = {self._project(record) for record in cluster}
        if len(projects) == 1 and projects <= pools:
            return projects.pop()
        return PERSONAL if PERSONAL in pools else cluster[0].pool

    def _candidates(self, pool: str) -> Iterator[Record]:
        for record in self._stores.records.in_pool(pool):
            if record.status not in LIVE or record.layer != "L3":
                continue
            if record.status == "provisional" or record.flags or record.needs_review or record.is_team:
                self.left_out["flagged, in doubt, or of another author"] += 1
            elif not is_promotable(record):
                self.left_out["another type than a rule or wish"] += 1
            elif SUMMARY not in record.tags and not record.valid_to:
                yield record

    def _without_denials(self, cluster: Sequence[Record]) -> list[Record]:
        """Return a cluster without the records that say otherwise than its centre."""
        centre = cluster[0]
        near = cosines(cluster, self._stores)
        agreeing = [other for other in cluster[1:] if not contradict(*_by_time(centre, other), near[other.id])]
        self.left_out["a like statement says otherwise"] += len(cluster) - 1 - len(agreeing)
        return [centre, *agreeing]

    def _judged(self, cluster: Sequence[Record], pool: str) -> RoleProposal | None:
        """Return a proposal for a cluster, None where it has not earned one."""
        if not self._counter.may_be_independent(cluster):
            return None
        evidence = self._counter.of(cluster)
        self.left_out.update(evidence.not_counted)
        likely = self._reader.lasting([record.description for record in cluster])
        lasting = {record.id: probability for record, probability in zip(cluster, likely, strict=True)}
        best = _best(cluster, pool, lasting)
        belief = BeliefCluster(best, tuple(cluster), evidence, lasting[best.id])
        if why := self._why_none(belief, pool):
            self.left_out[why] += 1
            return None
        return self._merge(belief, pool) or self._promotion(
            belief, pool, "L1" if self._is_identity(belief, pool) else "L2"
        )

    def _why_none(self, belief: BeliefCluster, pool: str) -> str:
        """Return why a belief has earned no layer, "" if it has earned one."""
        if belief.lasting < LASTING:
            return "it may be a task, a fact or a finding of its day"
        if belief.evidence.is_in_rules:
            return "a file for agents says it already"
        if not belief.evidence.conversations:
            return "only documents say it"
        if self._is_identity(belief, pool):
            return ""
        rule = self._thresholds(pool).playbook
        if CURATOR not in rule.writers:
            return "the policy lets no curator write L2"
        if why := why_not(belief.evidence.instances, rule):
            return why
        return "none of its tags is allowed in L2" if _lacks_tags(belief.best, rule) else ""

    def _is_identity(self, belief: BeliefCluster, pool: str) -> bool:
        """Whether the user alone said it often enough, in so many words, for the user's own L1."""
        rule = self._thresholds(pool).identity
        is_own = pool == PERSONAL and belief.best.provenance.trust == "user" and _is_of(belief.best, IDENTITY_TYPES)
        is_own = is_own and CURATOR in rule.writers
        return is_own and not why_not(belief.evidence.by_user(), rule) and not _lacks_tags(belief.best, rule)

    # --- proposals -----------------------------------------------------------------------------------------------
    def _merge(self, belief: BeliefCluster, pool: str) -> RoleProposal | None:
        """Return the proposal to merge a belief with the record of the playbook that says it already."""
        held = [record for record in held_in(self._stores, pool) if record.id != belief.best.id]
        against = nearest_duplicate(self._stores, belief.best, held)
        if against is None:
            return None
        id = proposal_id(belief.best.id, against.id)
        reason = f"the playbook has it already; {_days(belief.evidence.instances)}"
        operation = ChangeProposed(
            id=id,
            what="duplicate",
            record=belief.best.id,
            against=against.id,
            by=CURATOR,
            label="duplicate",
            reason=reason,
        )
        told = self._told(belief, pool, "merge", id, reason, against.layer, against=against)
        return RoleProposal(operation, told, (belief.best, against))

    def _promotion(self, belief: BeliefCluster, pool: str, layer: Layer) -> RoleProposal | None:
        rules = self._thresholds(pool)
        instances = belief.evidence.by_user() if layer == "L1" else belief.evidence.instances
        if why := self._earlier.why_not(belief, len(instances)):
            self.left_out[why] += 1
            return None
        day = from_micros(self._now)[:10]
        cadence = rules.stable_days if belief.best.volatility == "stable" else rules.semi_days
        step = PatchStep(
            op="promote",
            id=belief.best.id,
            rev=belief.best.rev,
            layer=layer,
            confidence=confidence(instances),
            day=day,
            next_review=from_micros(self._now + cadence * DAY)[:10],
            change_condition=change_condition(belief.best),
            evidence=tuple((each.type, each.ref, each.note) for each in instances[:EVIDENCE]),
        )
        out = self._whom_to_let_go(pool, layer, rules.of(layer))
        steps = (step, *_let_go(out, day, layer)) if out else (step,)
        id = proposal_id(belief.best.id, f"{CURATOR} {pool} {layer} {len(instances)}")
        reason = self._why(instances, layer, out)
        operation = ChangeProposed(
            id=id, what="patch", record=belief.best.id, by=CURATOR, label=f"into {layer}", reason=reason, steps=steps
        )
        self._coming[pool, layer] += 1
        told = self._told(belief, pool, "promote", id, reason, layer, let_go=out)
        return RoleProposal(operation, told, (belief.best, out) if out else (belief.best,))

    def _why(self, instances: Sequence[EvidenceInstance], layer: Layer, out: Record | None) -> str:
        full = f"; {layer} is full, so {out.id[:8]} would leave it" if out else ""
        return f"{_days(instances)}{full}"

    def _whom_to_let_go(self, pool: str, layer: Layer, rule: LayerRule) -> Record | None:
        """Return the record that leaves a full layer: one that the user did not pin, the weakest one."""
        inside = [record for record in held_in(self._stores, pool) if record.layer == layer]
        if len(inside) + self._coming[pool, layer] - len(self._let_go & {record.id for record in inside}) < rule.most:
            return None
        free = [record for record in inside if record.id not in self._let_go]
        signals = self._stores.counters.signals(free)
        weakest = min(
            free,
            key=lambda record: (record.pinned, signals[record.id].strength, record.confidence, record.id),
            default=None,
        )
        if weakest is not None:
            self._let_go.add(weakest.id)
        return weakest

    def _told(
        self,
        belief: BeliefCluster,
        pool: str,
        kind: ProposalKind,
        id: str,
        why: str,
        layer: Layer,
        against: Record | None = None,
        let_go: Record | None = None,
    ) -> CuratedProposal:
        instances = belief.evidence.by_user() if layer == "L1" else belief.evidence.instances
        return CuratedProposal(
            id=id,
            kind=kind,
            by=CURATOR,
            pool=pool,
            record=belief.best.id,
            statement=statement(belief.best)[:STATEMENT],
            layer=layer,
            confidence=confidence(instances),
            evidence=tuple(CuratedEvidence(each.type, each.ref, each.note) for each in instances[:EVIDENCE]),
            why=why,
            change_condition=change_condition(belief.best),
            against=against.id if against else "",
            against_statement=statement(against)[:STATEMENT] if against else "",
            let_go=let_go.id if let_go else "",
            let_go_statement=statement(let_go)[:STATEMENT] if let_go else "",
        )


class Earlier:
    """What the roles proposed before, and what became of it."""

    def __init__(self, proposals: Iterable[PendingProposal]) -> None:
        self._counts: dict[str, list[tuple[str, int]]] = {}
        for pending in proposals:
            if pending.what.what == "patch":
                for step in pending.what.steps:
                    if step.op in ("add", "promote"):
                        self._counts.setdefault(step.id, []).append((pending.state, len(step.evidence)))

    def why_not(self, belief: BeliefCluster, count: int) -> str:
        """Return why a belief is not proposed again, "" if it may be."""
        ids = {id for record in belief.records for id in (record.id, *record.supersedes)}
        known = [entry for id in ids for entry in self._counts.get(id, ())]
        if any(state == "open" for state, _ in known):
            return "it waits in the inbox already"
        before = max((evidence for _, evidence in known), default=-MORE)
        return "decided or lapsed before, with no more evidence now" if min(count, EVIDENCE) < before + MORE else ""


def why_not(instances: Sequence[EvidenceInstance], rule: LayerRule) -> str:
    """Return why instances are too few for a layer, "" if they are enough. One conversation is never enough."""
    days = {instance.day for instance in instances if not instance.is_durable}
    if len(instances) < max(2, rule.evidence):
        return TOO_FEW
    if len(days) < 2 and not any(instance.is_durable for instance in instances):
        return TOO_FEW
    return "" if confidence(instances) >= rule.confidence else "too little confidence"


def contradict(older: Record, newer: Record, cosine: float) -> bool:
    """Whether two like statements differ: the later one denies or replaces the earlier one, or speaks of another
    thing."""
    from ....stages.contradictions import compare, of_another  # its rules load slowly, and a start needs none

    if of_another(older.content, newer.content):
        return True
    return compare(older.content, newer.content, cosine).label in ("contradicts", "replaces")


def _by_time(one: Record, other: Record) -> tuple[Record, Record]:
    first, second = sorted((one, other), key=lambda record: record.provenance.said_at)
    return first, second


def is_promotable(record: Record) -> bool:
    """Whether a record is of a type that may be promoted."""
    return record.kind not in ("edge", "persona") and _is_of(record, TYPES)


def held_in(stores: Stores, pool: str) -> list[Record]:
    """Return the records of a pool's L1 and L2, and those that the user pinned."""
    return list(stores.records.many(stores.inbox.held([pool])).values())


def nearest_duplicate(stores: Stores, record: Record, held: Sequence[Record]) -> Record | None:
    """Return the record of the playbook that says what this one says, the nearest one."""
    from ....stages.contradictions import compare  # its rules load slowly, and a start needs none

    near = cosines([record, *held], stores)
    same = [
        other
        for other in held
        if near[other.id] >= LIKE
        and not contradict(other, record, near[other.id])
        and (near[other.id] >= DUPLICATE or compare(other.content, record.content, near[other.id]).label == "same")
    ]
    return max(same, key=lambda other: (near[other.id], other.id), default=None)


def rows_of(records: Sequence[Record], stores: Stores) -> Rows:
    """Return the vectors of records (records x width); zeros for one that has none."""
    places, found = stores.vector_store.get([digest(record.description) for record in records])
    rows = np.zeros((len(records), found.shape[1]), np.float32)
    rows[list(places)] = found
    return rows


def cosines(records: Sequence[Record], stores: Stores) -> dict[str, float]:
    """Return the cosine of each record's description with the first one's, by id; 0 where one has no vector."""
    rows = rows_of(records, stores)
    return {record.id: float(row @ rows[0]) for record, row in zip(records, rows, strict=True)}


def change_condition(record: Record) -> str:
    """Return what would change a record's statement; the rule where it says nothing."""
    stated = record.review.change_condition if record.review else ""
    return stated or CONDITION


def curated_pools(stores: Stores, is_left: Callable[[str], bool]) -> list[str]:
    """Return the pools that have a playbook: the user's own and those of projects."""
    pools = [pool for pool in sorted(stores.records.tally()) if not pool.startswith((AGENT, UNBOUND))]
    return [pool for pool in pools if not is_left(pool)]


def _best(cluster: Sequence[Record], pool: str, lasting: Mapping[str, float]) -> Record:
    """Return the record whose words are proposed: one of the pool, the user's before an agent's
    before a document's, the one that reads most like a rule."""
    ranks = {"user": 0, "assistant": 1, "tool": 2, "document": 3}
    return min(
        cluster,
        key=lambda record: (
            record.pool != pool,
            ranks[record.provenance.trust],
            -lasting[record.id],
            record.id,
        ),
    )


def _is_of(record: Record, types: frozenset[str]) -> bool:
    return record.type in types or PRINCIPLE in record.tags


def _lacks_tags(record: Record, rule: LayerRule) -> bool:
    return bool(rule.tags) and not set(rule.tags) & set(record.tags)


def _let_go(record: Record, day: str, layer: Layer) -> tuple[PatchStep, ...]:
    reason = f"{layer} is full; this one is used least"
    return (PatchStep(op="deprecate", id=record.id, rev=record.rev, day=day, reason=reason),)


def _days(instances: Sequence[EvidenceInstance]) -> str:
    """Return the kinds and days of evidence in words: "you said so on 2026-01-03 and 2026-01-09; commit 0a1b2c3"."""
    named = {"user": "you said so on ", "session": "an agent said so on "}
    parts: list[str] = []
    for kind in dict.fromkeys(instance.type for instance in instances):
        refs = sorted(instance.ref for instance in instances if instance.type == kind)
        listed = [*refs[:3], f"{len(refs) - 3} more"] if len(refs) > 3 else refs
        joined = " and ".join(filter(None, (", ".join(listed[:-1]), listed[-1])))
        parts.append(f"{named.get(kind, f'{kind} ')}{joined}")
    return "; ".join(parts)
