"""The curator: proposes what a pool's playbook or the user's identity should take in (G3, G4).

Invariants: it writes proposals only; no statement passes on one conversation alone; L1 is proposed from the user's own
words alone; a cluster that the user rejected comes back only with `MORE` new instances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

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
from ...projections.inbox import PendingProposal, proposal_id
from ...projections.placement import AGENT
from ...projections.stores import Stores
from ...projections.strength import DAY
from .clusters import DUPLICATE, LIKE, stars, vectors_of
from .instances import CountedEvidence, EvidenceCounter, EvidenceInstance, confidence

TYPES = frozenset({"preference", "convention", "decision", "lesson", "procedure", PRINCIPLE})
"""Types that may be promoted. Facts, events and commitments pass with time: "on vacation" was told on two days."""

IDENTITY_TYPES = frozenset({"preference", PRINCIPLE})
"""Types that may become part of the user's identity."""

WISHES = frozenset({"preference", "convention", PRINCIPLE})
"""Types of what the user may mean for every project; a decision or a procedure is about its own."""

MORE = 2
"""New instances with which a rejected cluster comes back."""

STEPS = 10
"""Most steps of a patch."""

CONDITION = "3 sessions on different days say otherwise"
"""The change condition of a record that states none."""

EVIDENCE = 20
"""Most pieces of evidence that a step names."""

TOO_FEW = "too little independent evidence"
UNBOUND = "unbound/"

ThresholdsOf = Callable[[str], Thresholds]


class RoleProposal(NamedTuple):
    """A proposal, as the journal and as a reader get it. `records`: those on whose present revision it rests."""

    operation: ChangeProposed
    told: CuratedProposal
    records: tuple[Record, ...]


class BeliefCluster(NamedTuple):
    """Records that say the same with their evidence; `best` is the one whose words are proposed."""

    best: Record
    records: tuple[Record, ...]
    evidence: CountedEvidence


class Curator:
    """Looks for beliefs that have earned a place in a layer. Not on the write thread; one object a run."""

    def __init__(
        self, stores: Stores, counter: EvidenceCounter, thresholds: ThresholdsOf, now: int, earlier: Earlier
    ) -> None:
        self._stores, self._counter, self._thresholds, self._now = stores, counter, thresholds, now
        self._earlier = earlier
        self.left_out = Counter[str]()
        self.read = 0
        self._coming = Counter[tuple[str, Layer]]()
        self._let_go: set[str] = set()

    def proposals(self, pools: Sequence[str]) -> Iterator[RoleProposal]:
        """Yield what these pools' layers should take in; then what the user said in several of them."""
        of_user: list[Record] = []
        for pool in pools:
            candidates = list(self._candidates(pool))
            self.read += len(candidates)
            promoted: set[str] = set()
            for cluster in stars(candidates, self._stores.vector_store.get, self._differ):
                if proposal := self._judged(cluster, pool):
                    promoted.update(record.id for record in cluster)
                    yield proposal
            of_user += (
                record for record in candidates if record.provenance.trust == "user" and record.id not in promoted
            )
        if PERSONAL in pools:
            yield from self._of_several(of_user)

    def _of_several(self, said: Sequence[Record]) -> Iterator[RoleProposal]:
        """Yield what the user said in several pools, for the user's own playbook."""
        if len({record.pool for record in said}) < 2:
            return
        for cluster in stars(said, self._stores.vector_store.get, self._differ):
            best = _best(cluster, PERSONAL)
            alike = [record for record in cluster if record is best or self._may_be_one(best, record)]
            if len({record.pool for record in alike}) < 2:
                continue
            if best.pool != PERSONAL:
                self.left_out["said in several projects, but none is of your own memory"] += 1
            elif proposal := self._judged(alike, PERSONAL):
                yield proposal

    def _may_be_one(self, first: Record, second: Record) -> bool:
        """Whether two records of two pools may mean one thing: a wish may hold everywhere, anything else in the project
        that it was said in."""
        if _is_of(first, WISHES) and _is_of(second, WISHES):
            return True
        return self._said_in(first) == self._said_in(second) != ""

    def _said_in(self, record: Record) -> str:
        session = self._stores.sources.session(record.provenance.source)
        return session.opened.project if session else ""

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

    def _differ(self, older: Record, newer: Record, cosine: float) -> bool:
        differs = contradict(older, newer, cosine)
        self.left_out["a like statement says otherwise"] += differs
        return differs

    def _judged(self, cluster: Sequence[Record], pool: str) -> RoleProposal | None:
        """Return a proposal for a cluster, None where it has not earned one."""
        if not self._counter.may_be_independent(cluster):
            return None
        evidence = self._counter.of(cluster)
        self.left_out.update(evidence.not_counted)
        belief = BeliefCluster(_best(cluster, pool), tuple(cluster), evidence)
        if why := self._why_none(belief, pool):
            self.left_out[why] += 1
            return None
        return self._merge(belief, pool) or self._promotion(
            belief, pool, "L1" if self._is_identity(belief, pool) else "L2"
        )

    def _why_none(self, belief: BeliefCluster, pool: str) -> str:
        """Return why a belief has earned no layer, "" if it has earned one."""
        if is_leaning(belief.best):
            return "its words need those before them"
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
        reason = f"the playbook has it already; said on {_days(belief.evidence.instances)}"
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
        return f"{len(instances)} independent instances: {_days(instances)}{full}"

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
            statement=belief.best.content[:STATEMENT],
            layer=layer,
            confidence=confidence(instances),
            evidence=tuple(CuratedEvidence(each.type, each.ref, each.note) for each in instances[:EVIDENCE]),
            why=why,
            change_condition=change_condition(belief.best),
            against=against.id if against else "",
            against_statement=against.content[:STATEMENT] if against else "",
            let_go=let_go.id if let_go else "",
            let_go_statement=let_go.content[:STATEMENT] if let_go else "",
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


def is_leaning(record: Record) -> bool:
    """Whether a statement begins with, or names, what only the words before it explain."""
    from ....stages.subjects import dangling, unnamed  # its rules load slowly, and a start needs none

    return dangling(record.content) or unnamed(record.content)


def is_promotable(record: Record) -> bool:
    """Whether a record is of a type that may be promoted."""
    return record.kind not in ("edge", "persona") and _is_of(record, TYPES)


def held_in(stores: Stores, pool: str) -> list[Record]:
    """Return the records of a pool's L1 and L2, and those that the user pinned."""
    return list(stores.records.many(stores.inbox.held([pool])).values())


def nearest_duplicate(stores: Stores, record: Record, held: Sequence[Record]) -> Record | None:
    """Return the record of the playbook that says what this one says, the nearest one."""
    from ....stages.contradictions import compare  # its rules load slowly, and a start needs none

    both = [record, *held]
    places, rows = vectors_of(both, stores.vector_store.get)
    cosines = {both[place].id: float(row @ rows[0]) for place, row in zip(places, rows, strict=True)}
    if not places or places[0] != 0:
        cosines = {}
    near = [other for other in held if cosines.get(other.id, 0.0) >= LIKE]
    same = [
        other
        for other in near
        if not contradict(other, record, cosines[other.id])
        and (
            cosines[other.id] >= DUPLICATE or compare(other.content, record.content, cosines[other.id]).label == "same"
        )
    ]
    return max(same, key=lambda other: (cosines[other.id], other.id), default=None)


def change_condition(record: Record) -> str:
    """Return what would change a record's statement; the rule where it says nothing."""
    stated = record.review.change_condition if record.review else ""
    return stated or CONDITION


def curated_pools(stores: Stores, is_left: Callable[[str], bool]) -> list[str]:
    """Return the pools that have a playbook: the user's own and those of projects."""
    pools = [pool for pool in sorted(stores.records.tally()) if not pool.startswith((AGENT, UNBOUND))]
    return [pool for pool in pools if not is_left(pool)]


def _best(cluster: Sequence[Record], pool: str) -> Record:
    """Return the record whose words are proposed: one of the pool that needs no other, the user's before an agent's
    before a document's, the nearest to the centre."""
    ranks = {"user": 0, "assistant": 1, "tool": 2, "document": 3}
    order = {record.id: place for place, record in enumerate(cluster)}
    return min(
        cluster,
        key=lambda record: (
            record.pool != pool,
            is_leaning(record),
            ranks[record.provenance.trust],
            record.status != "active",
            order[record.id],
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
    """Return the kinds and days of evidence in words: "you on 2026-01-03 and 2026-01-09, 1 commit"."""
    named = {"user": "you on ", "session": "an agent on "}
    parts: list[str] = []
    for kind in dict.fromkeys(instance.type for instance in instances):
        refs = sorted(instance.ref for instance in instances if instance.type == kind)
        listed = ", ".join(refs[:3]) + (f" and {len(refs) - 3} more" if len(refs) > 3 else "")
        parts.append(f"{named.get(kind, f'{kind} ')}{listed}")
    return "; ".join(parts)
