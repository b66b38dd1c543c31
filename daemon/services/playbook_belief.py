"""What the patches of a pool together say of a record: stated, retired, looked at again (G2).

Invariants: nothing is written; the answer follows from the set of patches that count, never from the order in which
they came; of two patches that state one record the first by day and name counts; retirements only add.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from ...protocol.operation import PatchStep
from ...protocol.record import LIVE, PLAYBOOK_HOST, Record, is_patch_document, record_id
from ..projections.patches import PatchEntry
from ..projections.stores import Stores
from .record_history import versions

ADDS = frozenset({"add", "promote"})
RETIRES = frozenset({"supersede", "deprecate"})
PAST = frozenset({"superseded", "deprecated"})
"""Reasons of a step that states a record which no longer held when its patch was written."""

COUNTED = frozenset({"applied", "taken"})


def playbook_document(mark: str) -> str:
    """Return the document that the patches of a repository are."""
    return f"{PLAYBOOK_HOST}:{mark}"


def playbook_id(pool: str, mark: str, name: str) -> str:
    """Return the id of the record that a patch of another author states under a name."""
    return record_id(pool, playbook_document(mark), name, 0, 0)


class Believed(msgspec.Struct, frozen=True):
    """What patches say of one record. `stated`: the step that states it; `by`: what replaces it; `until`: the day of
    the patch that retires it; `confidence`, `next_review`: of the last review that names one, 0 and "" for none."""

    stated: PatchStep | None = None
    stated_in: str = ""
    retired_in: str = ""
    by: str = ""
    until: str = ""
    reason: str = ""
    confidence: float = 0.0
    next_review: str = ""

    @property
    def is_retired(self) -> bool:
        return bool(self.retired_in)


NOTHING = Believed()


def statement(record: Record) -> str:
    """Return the words by which a playbook states a record: the description where it has all of the clause."""
    whole = " ".join(record.content.split()) in record.description
    return record.description if whole else record.content


def believed(entries: Iterable[PatchEntry]) -> dict[str, Believed]:
    """Fold patches: what they say, by id of the record."""
    beliefs: dict[str, Believed] = {}
    steps = [(entry, step) for entry in sorted(entries, key=rank) for step in entry.steps]
    for entry, step in steps:
        if step.op in ADDS:
            before = beliefs.get(step.id, NOTHING)
            beliefs[step.id] = before if before.stated else _stated(before, entry, step)
    for entry, step in steps:
        if step.op in RETIRES:
            beliefs[step.id] = _retired(beliefs.get(step.id, NOTHING), entry, step)
    reviews = [step for _, step in steps if step.op == "review"]
    for step in sorted(reviews, key=lambda review: review.day):
        before = beliefs.get(step.id, NOTHING)
        confidence, next_review = step.confidence or before.confidence, step.next_review or before.next_review
        beliefs[step.id] = _with(before, confidence=confidence, next_review=next_review)
    return beliefs


def rank(entry: PatchEntry) -> tuple[str, str]:
    """Return the place of a patch among those that say different things of a record."""
    return entry.day, entry.patch


def _with(before: Believed, **changes: object) -> Believed:
    return msgspec.structs.replace(before, **changes)


def _stated(before: Believed, entry: PatchEntry, step: PatchStep) -> Believed:
    """Return a belief that a step states: it may state what was retired before."""
    stated = _with(before, stated=step, stated_in=entry.patch)
    if step.reason not in PAST:
        return stated
    return _with(stated, retired_in=entry.patch, by=step.to, until=entry.day)


def _retired(before: Believed, entry: PatchEntry, step: PatchStep) -> Believed:
    """Return a belief that is retired; a replacement counts before a retirement without one."""
    if before.is_retired and (before.by or not step.to):
        return before
    return _with(before, retired_in=entry.patch, by=step.to, until=entry.day, reason=step.reason)


class PlaybookBelief:
    """The patches of one pool. `silent`: documents that say nothing."""

    def __init__(self, stores: Stores, pool: str, *, trusted: bool | None = None) -> None:
        """`trusted`: whether the patches of others count, None if the user's present word decides."""
        self.entries = stores.patches.all(pool)
        self.is_trusted = stores.patches.policy(pool).trusted if trusted is None else trusted

    def counted(self, without: Collection[str] = (), more: Iterable[PatchEntry] = ()) -> list[PatchEntry]:
        """Return the patches that count. `without`: names of patches that go, `more`: those that come."""
        changed = {entry.patch: entry for entry in more}
        entries = (*(entry for entry in self.entries if entry.patch not in changed), *changed.values())
        return [
            entry
            for entry in entries
            if entry.standing in COUNTED and entry.patch not in without and (entry.is_own or self.is_trusted)
        ]


def no_longer_retired(stores: Stores, documents: Iterable[str]) -> Iterator[Record]:
    """Yield the records that only the patches of these repositories retire (A3)."""
    for document in documents:
        session = stores.sources.session(document) if is_patch_document(document) else None
        if session is None:
            continue
        belief = PlaybookBelief(stores, session.opened.project)
        entries = belief.counted()
        own = believed(entry for entry in entries if entry.is_own)
        all_of_them = believed(entries)
        retired = {id for id, each in all_of_them.items() if each.is_retired and not own.get(id, NOTHING).is_retired}
        for record in stores.records.many(sorted(retired)).values():
            if record.provenance.source != document and is_as(record, all_of_them[record.id]):
                yield record


def is_as(record: Record, belief: Believed) -> bool:
    """Whether a record is in the state that its patches give it: nobody changed it since."""
    if belief.stated is None and record.is_from_patch:
        return record.status == "hidden"
    if belief.is_retired:
        return record.status == "retired" and record.superseded_by == belief.by
    return record.status in (*LIVE, "archived")


def last_live(stores: Stores, record: Record) -> Record:
    """Return the last state of a record in which it was believed, itself if it never was."""
    if record.status in LIVE:
        return record
    last = record
    for _, version in versions(stores, record.id):
        if version is not None and version.status in LIVE:
            last = version
    return last


def revision_of(stores: Stores, id: str, rev: int) -> Record | None:
    """Return a revision of a record, None if the journal no longer has it."""
    record = stores.records.get(id)
    if record is None or record.rev == rev:
        return record
    return next((row for _, row in versions(stores, id) if row is not None and row.rev == rev), None)
