"""The second step of reconcile: turns proposals into operations if nothing that they rest on changed meanwhile.

Invariants: no model here; a record that exists already changes nothing but what it teaches; an edited record keeps its
words and its pool; evidence of one turn counts once; no record is in a wider pool than any of its sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from ....protocol.operation import Added, AnyOperation, Decision, Merged, Neighbour, Updated
from ....protocol.record import LEARNINGS, LIVE, RELATED, RELATED_AT, Record
from ....stages.batch import Proposal
from ...projections.placement import Placing, visible_to
from ...projections.stores import Stores
from ..statements import is_edited
from ..withdrawal import is_withdrawn

UNRELATED = 2
"""Most unrelated neighbours that a decision keeps, the nearest ones; they are most of its bytes."""


def stale(stores: Stores, proposals: Sequence[Proposal]) -> list[str]:
    """Return ids of proposals to judge again: a neighbour changed, or their key was taken meanwhile."""
    coming = {proposal.record.id for proposal in proposals}
    wanted = {neighbour.id for p in proposals for neighbour in p.decision.neighbours} - coming
    now = stores.records.many(wanted)
    again: list[str] = []
    for proposal in proposals:
        judged = {neighbour.id: neighbour.rev for neighbour in proposal.decision.neighbours}
        moved = any(id in wanted and (id not in now or now[id].rev != rev) for id, rev in judged.items())
        if moved or _key_taken(stores, proposal, judged):
            again.append(proposal.record.id)
    return again


def _key_taken(stores: Stores, proposal: Proposal, judged: dict[str, int]) -> bool:
    record = proposal.record
    if not record.key or proposal.decision.action == "noop" or record.status not in LIVE:
        return False
    holder = stores.records.holding_key(record.pool, record.key)
    return bool(holder) and holder != record.id and holder not in judged


def operations_of(
    stores: Stores, proposals: Sequence[Proposal], judged: Callable[[Record], Record] = lambda record: record
) -> list[AnyOperation]:
    """Return the operations of proposals, in order, without those that exist. `judged`: marks new records."""
    known = stores.records.many({p.record.id for p in proposals} | {p.target for p in proposals if p.target} - {""})
    lessons = _lessons(proposals, known)
    decisions = {proposal.target or proposal.record.id: proposal.decision for proposal in proposals}
    teaching = tuple(_teaching(known, lessons, decisions))  # first: what follows changes a record that teaches it
    known |= {update.record.id: update.record for update in teaching}
    operations: list[AnyOperation] = [*teaching]
    made: dict[str, Record] = {}
    placing = Placing(stores.sources, stores.aliases)
    for proposal in proposals:
        record = msgspec.structs.replace(proposal.record, learnings=lessons.get(proposal.record.id, {}))
        before = made.get(record.id) or known.get(record.id)
        record, decision = _placed(stores, placing, record, before), _noted(proposal.decision)
        if before is not None and before.status == "hidden":
            continue  # undone: the same turn does not bring it back
        if decision.action == "noop":
            target = made.get(proposal.target) or known.get(proposal.target)
            if target is None or proposal.evidence is None or _has(target, proposal):
                continue
            if placing.may_rest(target, proposal.evidence):
                operations.append(Merged(id=target.id, evidence=proposal.evidence, decision=decision))
            elif before is None:  # the same statement of a pool that this one must not see
                record = made[record.id] = _related(judged(record), proposal.decision)
                operations.append(Added(record=record, decision=msgspec.structs.replace(decision, action="add")))
        elif before is None:
            record = made[record.id] = _related(judged(record), proposal.decision)
            operations.append(Added(record=record, retires=proposal.retires, decision=decision))
        elif _takes_its_place(stores, before, decision):
            changed = msgspec.structs.replace(
                record,
                rev=before.rev + 1,
                review=before.review,
                layer=before.layer,
                learnings=before.learnings,
                relates_to=before.relates_to,
                artifacts=before.artifacts,
            )
            if before.placed:
                changed = msgspec.structs.replace(changed, pool=before.pool, placed=True)
            operations.append(Updated(record=changed, retires=proposal.retires, decision=decision))
            made[record.id] = changed
    return operations


def _lessons(proposals: Sequence[Proposal], known: Mapping[str, Record]) -> dict[str, dict[str, str]]:
    """Return what agents learnt, by the record of the statement, or by the one that says the same if it is of the same
    session: undoing the session would not hide what a record of another one teaches (O4)."""
    records = {**{proposal.record.id: proposal.record for proposal in proposals}, **known}
    lessons: dict[str, dict[str, str]] = {}
    for proposal in proposals:
        record, id = proposal.record, proposal.target or proposal.record.id
        if not record.learnings or id not in records or "injection" in (*record.flags, *records[id].flags):
            continue
        if records[id].provenance.source == record.provenance.source:
            lessons[id] = {**record.learnings, **lessons.get(id, {})}
    return lessons


def _teaching(
    known: Mapping[str, Record], lessons: Mapping[str, dict[str, str]], decisions: Mapping[str, Decision]
) -> Iterator[Updated]:
    """Yield the updates of records that exist. What a record teaches already stays."""
    for id, learnings in lessons.items():
        before = known.get(id)
        if before is None or before.status not in LIVE:
            continue
        kept = {name: words for name, words in before.learnings.items() if words != before.description}
        told = {**before.learnings, **learnings, **kept}  # what a cue alone taught gives way
        if told != before.learnings and len(told) <= LEARNINGS:
            names = ", ".join(sorted(learnings.keys() - kept.keys()))
            record = _related(msgspec.structs.replace(before, learnings=told, rev=before.rev + 1), decisions[id])
            decision = Decision(action="update", reason=f"the agent of the session told what it teaches for {names}")
            yield Updated(record=record, decision=decision)


def _related(record: Record, decision: Decision) -> Record:
    """Return a record that teaches something with its links to the records near it (O4)."""
    if not record.learnings:
        return record
    near = (n for n in decision.neighbours if n.label == "unrelated" and n.similarity >= RELATED_AT)
    nearest = [neighbour.id for neighbour in sorted(near, key=lambda neighbour: -neighbour.similarity)]
    ids = dict.fromkeys(id for id in (*record.relates_to, *nearest) if id != record.id)
    return msgspec.structs.replace(record, relates_to=tuple(ids)[:RELATED])


def _noted(decision: Decision) -> Decision:
    """Shorten a decision for the journal: without a last step that repeats the reason."""
    said = decision.steps and decision.steps[-1].what == f"{decision.action}: {decision.reason}"
    unrelated = [neighbour for neighbour in decision.neighbours if neighbour.label == "unrelated"]
    left_out = set[Neighbour](unrelated[UNRELATED:])
    return msgspec.structs.replace(
        decision,
        steps=decision.steps[:-1] if said else decision.steps,
        neighbours=tuple(neighbour for neighbour in decision.neighbours if neighbour not in left_out),
    )


def _takes_its_place(stores: Stores, before: Record, decision: Decision) -> bool:
    """Return whether a proposal becomes the next revision of the record with its id."""
    if before.status in LIVE:
        return not is_edited(before) and (decision.action == "update" or before.status == "provisional")
    return is_withdrawn(stores, before)  # its source says it again


def _placed(stores: Stores, placing: Placing, record: Record, before: Record | None) -> Record:
    """Move a record to the pool where it may be, as visible as its sources allow, or as it was `before`; it takes no
    key from another record there."""
    placed = placing.narrowed(record)
    visibility = before.provenance.visibility if before else placing.visibility(placed)
    placed = placing.narrowed(visible_to(placed, visibility))
    if placed.pool == record.pool or not placed.key:
        return placed
    holder = stores.records.holding_key(placed.pool, placed.key)
    return placed if holder in ("", placed.id) else msgspec.structs.replace(placed, key="", needs_review=True)


def _has(target: Record, proposal: Proposal) -> bool:
    evidence = proposal.evidence
    assert evidence is not None
    turn = (evidence.span.document, evidence.span.turn)
    rests_on = [*target.provenance.spans, *(known.span for known in target.provenance.evidence)]
    return any((span.document, span.turn) == turn for span in rests_on)
