"""Patches that come with the committed tree of a trusted repository (G2).

Invariants: all patches of a request are one commit, so that a kill takes all of them or none; a patch that memd has is
not taken again, and one with other bytes under its name is refused; what the records become follows from the set of
patches; a name in a patch means a record of this home, or one of the repository's document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from ....protocol.errors import MemdError
from ....protocol.event import Origin
from ....protocol.governance import PatchesTaken, TakePatches, TreeFile
from ....protocol.instant import from_micros
from ....protocol.operation import (
    AnyOperation,
    ChangeProposed,
    PatchGone,
    PatchStep,
    PatchTaken,
    SessionOpened,
    Shift,
)
from ....protocol.patch_file import (
    AddRecord,
    DeprecateRecord,
    Patch,
    PatchOperation,
    PromoteRecord,
    ReviewRecord,
    SupersedeRecord,
    file_hash,
    read_patch,
)
from ....protocol.record import LIVE, PLAYBOOK_HOST, Record
from ...projections.inbox import proposal_id
from ...projections.patches import PatchEntry, records_of
from ...projections.stores import Stores
from ..playbook_belief import ADDS, PAST, Believed, PlaybookBelief, believed, playbook_document, playbook_id
from ..statements import is_edited
from .patch_records import Arriving, author_name, name_of, record_of, says_the_same, why_not
from .patch_rendering import lines_of
from .record_changes import RecordChanges

"""Records of a playbook from which a new one becomes a proposal (R9)."""

PIN = "pin"
"""Label of a proposal to pin a record that a repository has as identity."""

OTHER_BYTES = "it was edited after it was taken: what was taken stays; a change needs a patch of its own"
FORGOTTEN = "you forgot it"
OWN = "a record of this home has this name and says something else"
CHANGED = "you changed this record, and another patch states it"
UNKNOWN_NAME = "no patch here states it yet"

Contradictions = Callable[[Sequence[Record]], list[tuple[str, str, str]]]
"""Returns what new records contradict of the user's pins: the pin, the new record, why."""


class _Read(NamedTuple):
    """A patch file that can be read."""

    file: TreeFile
    patch: Patch


class PatchTaking:
    """One request: read once, then built on the state of the stores. `now` in microseconds; `most`: records of L2."""

    def __init__(self, stores: Stores, pool: str, mark: str, request: TakePatches, now: int, most: int) -> None:
        self._stores, self._pool, self._mark, self._request, self._now = stores, pool, mark, request, now
        self._most = most
        self._document = playbook_document(mark)
        self._read: dict[str, _Read] = {}
        self._unread: list[tuple[str, str]] = []
        for file in request.files:
            self._open(file)

    def _open(self, file: TreeFile) -> None:
        try:
            patch = read_patch(file.data)
        except MemdError as error:
            self._unread.append((file.blob[:12] or "a patch", error.message))
            return
        if patch.id in self._read and self._read[patch.id].file.data != file.data:
            self._unread.append((patch.id, "two files of the tree have this name"))
            return
        self._read[patch.id] = _Read(file, patch)
        for operation in patch.operations:
            why_not(operation)  # the verdicts are cached here, so that the write thread does not wait for them

    def built(self) -> TakenPatches:
        """Return what follows from the patches as the stores are now."""
        taken = TakenPatches(
            self._stores, self._pool, self._mark, self._now, most=self._most, by_user=self._request.by_user
        )
        taken.refused += self._unread
        for patch_id in sorted(self._read):
            taken.take(*self._read[patch_id])
        if self._request.present is not None:
            taken.without({*self._request.present, *self._read})
        taken.settle()
        return taken


class TakenPatches:
    """The operations that patches lead to."""

    def __init__(self, stores: Stores, pool: str, mark: str, now: int, *, most: int, by_user: bool) -> None:
        self._stores, self._pool, self._mark, self._now, self._by_user = stores, pool, mark, now, by_user
        self._most = most
        self._document = playbook_document(mark)
        self._belief = PlaybookBelief(stores, pool, trusted=True)
        self._known = {entry.patch: entry for entry in self._belief.entries}
        self.refused: list[tuple[str, str]] = []
        self.known = 0
        self.taken: list[str] = []
        self.back: list[str] = []
        self.gone: list[str] = []
        self.conflicts: list[ChangeProposed] = []
        self._new: dict[str, PatchEntry] = {}
        self._words: dict[tuple[str, str], Record] = {}
        authors = {entry.patch: entry.author for entry in self._belief.entries}
        self._changes = RecordChanges(stores, now, authors)
        self._authors = authors

    # --- sorting -------------------------------------------------------------------------------------------------
    def take(self, file: TreeFile, patch: Patch) -> None:
        """Sort a patch: new, known, back, or another one under a known name."""
        entry = self._known.get(patch.id)
        author = "" if self._by_user else author_name(file.author)
        if entry is None:
            self._authors[patch.id] = author
            self._add(file, patch, author)
            self.taken.append(patch.id)
        elif self._has_other_bytes(entry, file):
            self.refused.append((patch.id, OTHER_BYTES))
        elif entry.standing == "taken" and entry.blob:
            self.known += 1
        else:
            self._again(entry, file, author)

    def _has_other_bytes(self, entry: PatchEntry, file: TreeFile) -> bool:
        if entry.blob:
            return bool(file.blob) and entry.blob != file.blob
        return bool(entry.hash) and entry.hash != file_hash(file.data)

    def _again(self, entry: PatchEntry, file: TreeFile, author: str) -> None:
        """Note that the tree has an own patch, or has a patch again that was gone."""
        if entry.standing == "gone":
            self.back.append(entry.patch)
        elif entry.standing == "sent":
            self.taken.append(entry.patch)
        else:
            self.known += 1
        change = {"standing": "taken", "blob": file.blob, "commit": file.commit, "author": author}
        self._new[entry.patch] = msgspec.structs.replace(entry, **change)
        self._authors[entry.patch] = author

    def without(self, present: Iterable[str]) -> None:
        """Find the patches that the tree no longer has. A patch that was never there is not missed."""
        there = set(present)
        self.gone += [
            entry.patch
            for entry in self._belief.entries
            if entry.standing == "taken"
            and entry.blob
            and entry.patch not in there
            and not (entry.is_own and entry.forgotten)
        ]

    # --- one patch -----------------------------------------------------------------------------------------------
    def _add(self, file: TreeFile, patch: Patch, author: str) -> None:
        arriving = Arriving(self._pool, self._mark, author or "user", self._now, self._by_user)
        names: dict[str, str] = {}
        refused: list[tuple[str, str]] = []
        steps: list[PatchStep] = []
        for operation in patch.operations:
            name = name_of(operation)
            id = self._id_of(name, names)
            why = why_not(operation) or self._why_not_here(operation, id, arriving)
            step = None if why else self._step(operation, id, names)
            if why:
                refused.append((name, why))
            elif step is not None:
                steps.append(step)
                if isinstance(operation, AddRecord | PromoteRecord):
                    self._words.setdefault((patch.id, id), record_of(operation.record, arriving))
        self.refused += [(name, f"{why} ({patch.id})") for name, why in refused]
        self._new[patch.id] = PatchEntry(
            pool=self._pool,
            patch=patch.id,
            standing="taken",
            at=self._now,
            day=patch.created_at,
            generated_by=patch.generated_by,
            blob=file.blob,
            commit=file.commit,
            author=author,
            steps=tuple(steps),
            names=tuple(names.items()),
            refused=tuple(refused),
        )

    def _id_of(self, name: str, names: dict[str, str]) -> str:
        """Return the id of the record that a name means, and note it."""
        id = self._stores.patches.record(self._pool, name) or playbook_id(self._pool, self._mark, name)
        names[name] = id
        return id

    def _why_not_here(self, operation: PatchOperation, id: str, arriving: Arriving) -> str:
        if not isinstance(operation, AddRecord | PromoteRecord):
            return ""
        if self._stores.forgotten.among([(self._document, operation.record.id)]):
            return FORGOTTEN
        known = self._stores.records.get(id)
        if known is None:
            return "" if id == playbook_id(self._pool, self._mark, operation.record.id) else FORGOTTEN
        fresh = record_of(operation.record, arriving)
        if known.provenance.source != self._document:
            return "" if fresh.content in (known.content, known.description) else OWN
        is_changed = known.pinned or is_edited(known) or known.is_confirmed
        return CHANGED if is_changed and not says_the_same(known, fresh) else ""

    def _step(self, operation: PatchOperation, id: str, names: dict[str, str]) -> PatchStep | None:
        match operation:
            case AddRecord(record=record) | PromoteRecord(record=record):
                op = "add" if isinstance(operation, AddRecord) else "promote"
                past = record.status if record.status in PAST else ""
                by = self._id_of(record.superseded_by[0], names) if past and record.superseded_by else ""
                return PatchStep(op, id, to=by, layer="L2", confidence=round(record.confidence, 2), reason=past)
            case SupersedeRecord(to=to):
                other = self._id_of(to, names)
                return PatchStep("supersede", id, to=other) if other != id else None
            case DeprecateRecord(reason=reason):
                return PatchStep("deprecate", id, reason=reason)
            case ReviewRecord(at=at, confidence=confidence, next_review=following):
                following = following if len(following) == 10 and following.count("-") == 2 else ""
                return PatchStep("review", id, day=at, confidence=round(confidence or 0.0, 2), next_review=following)

    # --- all patches ---------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Find what the records become."""
        before = believed(self._belief.counted())
        after = believed(self._belief.counted(self.gone, self._new.values()))
        changes = self._changes
        for id in sorted({id for _, id in self._words}):
            if changes.get(id) is None and after[id].stated_in:
                first = self._words.get((after[id].stated_in, id))
                if first is not None:
                    changes.state(self._with_replaced(first), after[id], after[id].stated_in)
        changes.move(before, after, self._words)
        revisions = {key: self._revision(*key, after) for key in sorted(self._words)}
        for patch, entry in self._new.items():
            steps = tuple(
                msgspec.structs.replace(step, rev=revisions[patch, step.id])
                if step.op in ADDS and (patch, step.id) in revisions
                else step
                for step in entry.steps
            )
            self._new[patch] = msgspec.structs.replace(entry, steps=steps)
        self._ask()

    def _with_replaced(self, record: Record) -> Record:
        """Return a record that names what it replaces here."""
        new = [step for entry in self._new.values() for step in entry.steps]
        replaced = dict.fromkeys(step.id for step in new if step.op == "supersede" and step.to == record.id)
        return msgspec.structs.replace(record, supersedes=tuple(replaced))

    def _revision(self, patch: str, id: str, after: dict[str, Believed]) -> int:
        """Return the revision with the words of a patch; another patch that came first keeps its own."""
        words, now = self._words[patch, id], self._changes.get(id)
        if now is None or not now.is_from_patch:
            return now.rev if now else 0
        first = after[id]
        if first.stated_in == patch:
            return now.rev
        said = self._words.get((first.stated_in, id)) or now
        if says_the_same(said, words):
            return now.rev
        rev = self._changes.restate(words, first, patch)
        self._changes.restate(said, first, first.stated_in)
        return rev

    def _ask(self) -> None:
        """Propose what only the user decides: a pin for identity, a record over the cap."""
        fresh = [record for id in self._changes.added if (record := self._changes.get(id)) and record.status in LIVE]
        for (_, id), record in self._words.items():
            if record.status == "quarantined" and not record.flags and any(each.id == id for each in fresh):
                self._propose_pin(id)
        held = self._stores.records.many(self._stores.inbox.held([self._pool])).values()
        retired = set(self._changes.retired)
        many = sum(record.layer == "L2" and record.id not in retired for record in held)
        room = max(0, self._most - many)
        for record in fresh[room:]:
            reason = f"the playbook has {many + len(fresh)} records, of at most {self._most}: accept to retire this one"
            self._changes.propose(record.id, "", self._patch_of(record.id), reason, "cap")
        self.conflicts = self._changes.conflicts

    def _propose_pin(self, id: str) -> None:
        proposal = proposal_id(id, PIN)
        if self._stores.inbox.get(proposal) is None:
            step = PatchStep("promote", id, layer="L2")
            by, reason = self._authors.get(self._patch_of(id), ""), "the repository has it as identity (L1)"
            self._changes.conflicts.append(
                ChangeProposed(id=proposal, what="patch", record=id, by=by, label=PIN, reason=reason, steps=(step,))
            )

    def _patch_of(self, id: str) -> str:
        return next((patch for patch, entry in self._new.items() if id in records_of(entry.steps)), "")

    def contradicting(self, contradictions: Sequence[tuple[str, str, str]]) -> None:
        """Propose what new records contradict of the user's pins: both stay (T13)."""
        for pin, fresh, reason in contradictions:
            if fresh in self._changes.added:
                self._changes.propose(pin, fresh, self._patch_of(fresh), reason, "contradicts")

    @property
    def fresh(self) -> list[Record]:
        """The records that become live."""
        records = map(self._changes.get, self._changes.added)
        return [record for record in records if record is not None and record.status == "active"]

    # --- the outcome ---------------------------------------------------------------------------------------------
    def operations(self) -> list[AnyOperation]:
        """Return the commit: the patches with the new states of known records, then the rest."""
        about: list[PatchGone | PatchTaken] = [PatchGone(pool=self._pool, patch=patch) for patch in self.gone]
        about += [_taken(self._new[patch]) for patch in sorted(self._new)]
        if not about:
            return []
        after: dict[int, list[Shift]] = {}
        for id in sorted(self._changes.after):
            after.setdefault(self._place_of(id, about), []).append(self._changes.after[id])
        placed = [msgspec.structs.replace(each, after=tuple(after.get(n, ()))) for n, each in enumerate(about)]
        return [*self._opening(), *placed, *self._changes.operations, *self._changes.conflicts]

    def _place_of(self, id: str, about: Sequence[PatchGone | PatchTaken]) -> int:
        """Return which of these operations names a record, the first one for none."""
        for number, each in enumerate(about):
            entry = self._new.get(each.patch) or self._known.get(each.patch)
            if entry is not None and id in records_of(entry.steps):
                return number
        return 0

    def _opening(self) -> list[AnyOperation]:
        if self._stores.sources.session(self._document) is not None:
            return []
        origin = Origin(
            host=PLAYBOOK_HOST, session=self._mark, live=False, title="patches of the repository", visibility="shared"
        )
        at = from_micros(self._now)
        return [SessionOpened(document=self._document, origin=origin, project=self._pool, at=at)]

    def reply(self, dry_run: bool) -> PatchesTaken:
        """Return what was taken, or would be."""
        return PatchesTaken(
            taken=tuple(self.taken),
            known=self.known,
            gone=tuple(self.gone),
            back=tuple(self.back),
            added=len(self._changes.added),
            retired=len(self._changes.retired),
            refused=(*self.refused, *self._unknown()),
            conflicts=len(self._changes.conflicts),
            lines=tuple(self._lines()),
            dry_run=dry_run,
        )

    def _unknown(self) -> list[tuple[str, str]]:
        """Return the names in new patches that no patch states yet."""
        stated = {id for _, id in self._words}
        names = {name: id for patch in self.taken for name, id in self._new[patch].names}
        return [
            (name, UNKNOWN_NAME)
            for name, id in sorted(names.items())
            if id not in stated and self._changes.get(id) is None and all(name != other for other, _ in self.refused)
        ]

    def _lines(self) -> Iterable[str]:
        for patch in (*self.taken, *self.back):
            entry = self._new[patch]
            by = f" by {entry.author}" if entry.author else ""
            words = {id: record for (name, id), record in self._words.items() if name == patch}
            yield from (f"{patch}{by}: {line}" for line in lines_of(self._stores, entry.steps, words))
        yield from (f"{patch} is gone" for patch in self.gone)


def _taken(entry: PatchEntry) -> PatchTaken:
    """Return the operation about a patch. Why it retires a record stands with that record, which may be forgotten."""
    steps = (step if step.op in ADDS else msgspec.structs.replace(step, reason="") for step in entry.steps)
    return PatchTaken(
        pool=entry.pool,
        patch=entry.patch,
        blob=entry.blob,
        commit=entry.commit,
        author=entry.author,
        day=entry.day,
        generated_by=entry.generated_by,
        steps=tuple(steps),
        names=entry.names,
        refused=entry.refused,
    )
