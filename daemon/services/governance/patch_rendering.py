"""The bytes of the patches of this home: rendered from the revisions of the records that their steps name (G2, R9).

Invariants: the same steps and revisions give the same bytes, and so the same name, in every version of memd; no quote,
span, document, session, neighbour or use of a record is rendered; of evidence only its type, and a day or a place in
the repository.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ....protocol.corrections import PlaybookChange
from ....protocol.instant import day, from_micros
from ....protocol.operation import PatchStep
from ....protocol.patch_file import (
    IDENTITY,
    PLAYBOOK,
    STATEMENT,
    AddRecord,
    DeprecateRecord,
    PatchOperation,
    PromoteRecord,
    ReviewRecord,
    SeedEvidence,
    SeedRecord,
    SeedReview,
    SeedScope,
    Stability,
    SupersedeRecord,
    gone_file,
    seed_id,
    write_patch,
)
from ....protocol.record import CONSOLIDATED, Record, Review, Volatility
from ....stages.batch import PERSONAL
from ...projections.patches import PatchEntry, records_of
from ...projections.stores import Stores
from ..outgoing_screen import flags_in, secrets_in
from ..playbook_belief import ADDS, revision_of, statement

CHANGE_CONDITION = "3 sessions on different days say otherwise"
"""The rule that is written out for a record without a change condition of its own."""

STABILITIES: dict[Volatility, Stability] = {"stable": "stable", "semi": "semi-stable", "situational": "volatile"}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLACES = {
    "artifact": re.compile(r"(?![/~])(?!.*\.\.)[^\s\\:][^\s\\:]{0,199}"),
    "commit": re.compile(r"[0-9a-f]{7,64}"),
    "pr": re.compile(r"#?[0-9]{1,9}"),
}
"""By type of evidence: references that mean the same on every machine. Of other evidence the day is kept alone."""

_OMITTED = frozenset({CONSOLIDATED, "summary"})


class Rendered(NamedTuple):
    """A patch as a file. `names`: seed ids and the records that they mean."""

    id: str
    data: bytes
    names: tuple[tuple[str, str], ...]


class WordsForgotten(Exception):
    """The words of a record are no longer in this home."""


def name_of(stores: Stores, record: Record) -> str:
    """Return the name of a record in patch files: the one that its own patch gave it, or one that follows from it."""
    if record.is_from_patch:
        return record.provenance.spans[-1].turn
    return seed_id(record.id, from_micros(record.learned_at)[:10])


def names_of(stores: Stores, steps: Iterable[PatchStep]) -> tuple[tuple[str, str], ...]:
    """Return the names in a file of the records that steps name. Raises WordsForgotten."""
    ids = records_of(steps)
    records = stores.records.many(ids)
    if len(records) < len(ids):
        raise WordsForgotten
    return tuple((name_of(stores, records[id]), id) for id in ids)


def rendered(stores: Stores, pool: str, steps: Sequence[PatchStep], generated_by: str, on: str) -> Rendered:
    """Return the patch of these steps that was made on a day. Raises WordsForgotten."""
    names = names_of(stores, steps)
    by_id = {id: name for name, id in names}
    operations = [_operation(stores, pool, step, by_id, steps, on) for step in steps]
    id, data = write_patch(operations, generated_by, on)
    return Rendered(id, data, names)


def file_of(stores: Stores, entry: PatchEntry) -> bytes:
    """Return the file of an own patch; only its hash once a record of it is forgotten."""
    try:
        made = rendered(stores, entry.pool, entry.steps, entry.generated_by, entry.day)
    except WordsForgotten:
        return gone_file(entry.hash)
    return made.data if made.id == entry.patch else gone_file(entry.hash)


def _operation(
    stores: Stores,
    pool: str,
    step: PatchStep,
    names: Mapping[str, str],
    steps: Sequence[PatchStep],
    on: str,
) -> PatchOperation:
    name = names[step.id]
    match step.op:
        case "add" | "promote":
            record = revision_of(stores, step.id, step.rev)
            if record is None:
                raise WordsForgotten
            replaced = tuple(
                sorted(names[other.id] for other in steps if other.op == "supersede" and other.to == step.id)
            )
            seed = seed_record(record, step, name, pool, on, replaced)
            if step.op == "promote" and seed.layer == "L2":
                return PromoteRecord(id=name, record=seed)
            return AddRecord(target=IDENTITY if seed.layer == "L1" else PLAYBOOK, record=seed)
        case "supersede":
            return SupersedeRecord(old=name, to=names[step.to])
        case "deprecate":
            return DeprecateRecord(id=name, reason=step.reason[:500])
        case "review":
            return ReviewRecord(
                id=name,
                at=step.day or on,
                confidence=round(step.confidence, 2) if step.confidence else None,
                next_review=step.next_review[:10],
            )


def seed_record(
    record: Record, step: PatchStep, name: str, pool: str, on: str, supersedes: tuple[str, ...] = ()
) -> SeedRecord:
    """Return a revision of a record as a file has it. `on`: the day of the patch."""
    review = record.review or Review()
    following = step.next_review or review.next
    return SeedRecord(
        id=name,
        layer="L1" if step.layer == "L1" and pool == PERSONAL else "L2",
        scope=SeedScope(type="global" if pool == PERSONAL else "project"),
        tags=tuple(dict.fromkeys((record.type, *(tag for tag in record.tags if tag not in _OMITTED))))[:50],
        statement=statement(record),
        evidence=evidence_of(record, step),
        confidence=round(step.confidence or record.confidence, 2),
        stability=STABILITIES[record.volatility],
        created_at=from_micros(record.learned_at)[:10],
        updated_at=on,
        review=SeedReview(
            cadence_days=review.cadence_days,
            next_review=following[:10],
            change_condition=(step.change_condition or review.change_condition or CHANGE_CONDITION)[:500],
        ),
        supersedes=supersedes,
    )


def evidence_of(record: Record, step: PatchStep) -> tuple[SeedEvidence, ...]:
    """Return the evidence that a file names: of a step, or else the days on which the record was said."""
    kept = _leaving(step.evidence) or _leaving(_said(record))
    return tuple(SeedEvidence(type=type, ref=ref) for type, ref, _ in kept)


def _leaving(given: Iterable[tuple[str, str, str]]) -> tuple[tuple[str, str, str], ...]:
    """Return evidence as it may leave, sorted."""
    return tuple(sorted({each for each in map(_evidence, given) if each[1]}))[:100]


def _said(record: Record) -> Iterator[tuple[str, str, str]]:
    provenance = record.provenance
    for trust, at in ((provenance.trust, provenance.said_at), *((item.trust, item.at) for item in provenance.evidence)):
        yield "user" if trust == "user" else "session", day(at), ""


def _evidence(given: tuple[str, str, str]) -> tuple[str, str, str]:
    """Return evidence as it may leave: without note, and without a reference that only this machine knows."""
    type, ref, _ = given
    if (place := _PLACES.get(type)) and place.fullmatch(ref) and not secrets_in(ref):
        return type, ref, ""
    dated = _DAY.match(ref)
    kept = type if type in {"artifact", "commit", "pr", "session", "measurement", "user"} else "session"
    return kept, dated[0] if dated else "", ""


def leaves(operations: Iterable[PatchOperation]) -> Iterator[str]:
    """Yield the texts of a patch that came from somebody's words."""
    for operation in operations:
        if isinstance(operation, AddRecord | PromoteRecord):
            yield from (operation.record.statement, *operation.record.tags, operation.record.review.change_condition)
        elif isinstance(operation, DeprecateRecord):
            yield operation.reason


class PatchGate:
    """Which records may go into a repository. `why_not_exported`: tells why a record may not leave at all."""

    def __init__(self, why_not_exported: Callable[[Record], str]) -> None:
        self._why_not_exported = why_not_exported

    def why_not(self, record: Record, step: PatchStep, pool: str, on: str) -> str:
        """Return why a record may not be stated in the pool's patches, in words for the user; "" if it may."""
        if record.pool != pool:
            return "it is not in this project"
        if pool != PERSONAL and not record.is_from_patch and (why := self._why_not_exported(record)):
            return why
        if pool == PERSONAL and record.flags:
            return f"it has a warning: {record.flags[0]}"
        if len(statement(record)) > STATEMENT:
            return f"it is longer than a statement may be ({STATEMENT:,} characters)"
        seed = seed_record(record, step, "mem_20260101_000", pool, on)
        return _of_words(leaves([AddRecord(target=PLAYBOOK, record=seed)]), record.provenance.trust != "user")


def _of_words(texts: Iterable[str], material: bool) -> str:
    words = list(texts)
    if secret := next((found[0].rule for each in words if (found := secrets_in(each))), ""):
        return f"it may hold a secret ({secret})"
    flags = flags_in("\n".join(dict.fromkeys(words)), material)
    return f"it has a warning: {flags[0]}" if flags else ""


def reason_refused(step: PatchStep) -> str:
    """Return why the reason of a step may not leave, "" if it may."""
    return _of_words([step.reason], True) if step.reason else ""


# --- for the reader --------------------------------------------------------------------------------------------------
def changes_of(
    stores: Stores, steps: Iterable[PatchStep], coming: Mapping[str, Record] | None = None
) -> tuple[PlaybookChange, ...]:
    """Return what steps change. `coming`: records that are not in the stores."""
    steps = tuple(steps)
    records = {**stores.records.many(records_of(steps)), **(coming or {})}

    def words(id: str) -> str:
        return statement(records[id]) if id in records and records[id].status != "hidden" else ""

    return tuple(_change(step, words, records.get(step.id)) for step in steps)


def lines_of(stores: Stores, steps: Iterable[PatchStep], coming: Mapping[str, Record] | None = None) -> tuple[str, ...]:
    """Return what steps change, one line each, with what proves it. `coming`: records that are not in the stores."""
    return tuple(change.line for change in changes_of(stores, steps, coming))


def _change(step: PatchStep, words: Callable[[str], str], record: Record | None) -> PlaybookChange:
    match step.op:
        case "add" | "promote":
            own = record is not None and not record.is_from_patch
            proof = ", ".join(f"{item.type} {item.ref}" for item in evidence_of(record, step)) if own and record else ""
            confidence = step.confidence or (record.confidence if record else 0.0)
            return PlaybookChange(op=step.op, new=words(step.id), confidence=confidence, proof=proof)
        case "supersede":
            return PlaybookChange(op=step.op, old=words(step.id), new=words(step.to))
        case "deprecate":
            return PlaybookChange(op=step.op, old=words(step.id), proof=step.reason)
        case "review":
            following = f"next {step.next_review[:10]}" if step.next_review else ""
            return PlaybookChange(op=step.op, old=words(step.id), proof=" · ".join(filter(None, (step.day, following))))


def frozen(stores: Stores, steps: Iterable[PatchStep]) -> tuple[PatchStep, ...]:
    """Return steps that name a revision of each record that they state, and no evidence that may not leave."""
    steps = tuple(steps)
    records = stores.records.many(step.id for step in steps)
    return tuple(
        msgspec.structs.replace(step, rev=step.rev or records[step.id].rev, evidence=_leaving(step.evidence))
        if step.op in ADDS and step.id in records
        else step
        for step in steps
    )
