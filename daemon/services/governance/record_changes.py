"""What the records of a pool become when another set of patches counts (G2, T13).

Invariants: nothing is written here; the state of a record follows from the set of patches, whatever their order and
however they are split; a record that the user pinned is not retired, a proposal waits instead; what the user changed
since stays as the user left it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ....protocol.fading import Reviewed
from ....protocol.instant import micros
from ....protocol.operation import (
    Added,
    AnyOperation,
    ChangeProposed,
    Decision,
    Invalidated,
    PatchGone,
    PatchStep,
    Shift,
    Step,
    Updated,
)
from ....protocol.record import LIVE, Record, Review
from ....protocol.reply import Logged
from ...projections.inbox import proposal_id
from ...projections.record_reducer import apply, touched
from ...projections.stores import Stores
from ..playbook_belief import NOTHING, Believed, is_as, last_live, revision_of
from ..statements import is_edited
from .patch_records import instant, says_the_same
from .patch_rendering import CHANGE_CONDITION

Beliefs = Mapping[str, Believed]


class RecordChanges:
    """The operations that a change of patches leads to. `now` in microseconds; `authors`: by name of a patch."""

    def __init__(self, stores: Stores, now: int, authors: Mapping[str, str]) -> None:
        self._stores, self._now, self._authors = stores, now, authors
        self.operations: list[AnyOperation] = []
        self.after: dict[str, Shift] = {}
        """New states of known records, which the operation about the patches carries: it is committed first."""
        self.added: list[str] = []
        self.retired: list[str] = []
        self.conflicts: list[ChangeProposed] = []
        self._records: dict[str, Record | None] = {}

    def get(self, id: str) -> Record | None:
        """Return a record as these changes leave it."""
        if id not in self._records:
            self._records[id] = self._stores.records.get(id)
        return self._records[id]

    def emit(self, operation: AnyOperation) -> None:
        """Add an operation."""
        self._apply(operation)
        self.operations.append(operation)

    def _apply(self, operation: AnyOperation) -> None:
        entry = Logged(seq=0, at=self._now, operation=operation)
        for id in touched(operation):
            self._records[id] = apply(self.get(id), id, entry)

    def _shift(self, shift: Shift) -> None:
        self._apply(PatchGone(pool="", patch="", after=(shift,)))
        self.after[shift.id] = shift

    # --- what is stated ------------------------------------------------------------------------------------------
    def state(self, record: Record, belief: Believed, patch: str) -> None:
        """Add a record that no patch stated before, as its patches leave it."""
        fresh = reviewed(record, belief)
        self.emit(Added(record=fresh, decision=Decision(action="add", reason=self._source(patch))))
        self.added.append(record.id)
        if belief.is_retired:
            self._retire(fresh, belief)

    def restate(self, record: Record, belief: Believed, patch: str) -> int:
        """Give a record other words, and return its revision."""
        before = self.get(record.id)
        assert before is not None
        after = msgspec.structs.replace(
            reviewed(record, belief),
            rev=before.rev + 1,
            status=before.status,
            valid_to=before.valid_to,
            retired_at=before.retired_at,
            superseded_by=before.superseded_by,
            supersedes=before.supersedes,
            provenance=msgspec.structs.replace(record.provenance, evidence=before.provenance.evidence),
        )
        self.emit(Updated(record=after, decision=Decision(action="update", reason=self._source(patch))))
        return after.rev

    def _source(self, patch: str) -> str:
        author = self._authors.get(patch, "")
        return f"{patch} by {author}" if author else patch

    # --- what changes --------------------------------------------------------------------------------------------
    def move(self, before: Beliefs, after: Beliefs, words: Mapping[tuple[str, str], Record] | None = None) -> None:
        """Change the records whose patches say something else than before. `words`: the records that new patches
        state, by name of the patch and id."""
        for id in sorted({*before, *after}):
            was, will = before.get(id, NOTHING), after.get(id, NOTHING)
            record = self.get(id) if was != will else None
            if record is None or id in self.added:
                continue
            if is_as(record, was):
                self._settle(record, was, will)
            if record.is_from_patch:
                self._reword(record, was, will, words or {})
            else:
                self._restate_own(record.id, was, will)
            self._review(record.id, was, will)

    def _settle(self, record: Record, was: Believed, will: Believed) -> None:
        """Give a record the state that its patches say now."""
        if will.stated is None and record.is_from_patch:
            if was.stated and not (record.pinned or is_edited(record)):
                self._shift(Shift(record.id, "hidden"))
        elif will.is_retired:
            self._retire(record, will)
        elif record.status in ("retired", "hidden"):
            self._shift(self._live_again(record))

    def _retire(self, record: Record, will: Believed) -> None:
        until = self._until(record, will)
        if record.status in ("retired", "hidden"):
            self._shift(Shift(record.id, "retired", until, record.retired_at or self._now, will.by))
        elif record.pinned or (record.is_from_patch and (is_edited(record) or record.is_confirmed)):
            self._propose(record, will)
        else:
            self.emit(Invalidated(id=record.id, valid_to=until, reason=self._reason(will), by=will.by))
            self.retired.append(record.id)

    def _until(self, record: Record, will: Believed) -> str:
        until, since = instant(will.until), record.valid_from
        return since if since and micros(since) > micros(until) else until

    def _reason(self, will: Believed) -> str:
        return f"{self._source(will.retired_in)} retires it{f': {will.reason}' if will.reason else ''}"

    def _live_again(self, record: Record) -> Shift:
        """Return the state in which a record was last believed; retired if another one holds its key by now."""
        last = last_live(self._stores, record)
        holder = self._stores.records.holding_key(record.pool, record.key) if record.key else ""
        if holder not in ("", record.id):
            other = self._stores.records.get(holder)
            return Shift(record.id, "retired", other.valid_from if other else "", self._now, holder)
        status = last.status if last.status in LIVE else "active"
        return Shift(record.id, status, last.valid_to if last.status in LIVE else "")

    def _propose(self, record: Record, will: Believed) -> None:
        """Let the user decide whether a patch retires what they pinned, edited or confirmed (T13)."""
        other = self.get(will.by) if will.by else None
        against = will.by if other is not None and other.status in LIVE else ""
        self.propose(record.id, against, will.retired_in, self._reason(will))

    def propose(self, record: str, against: str, patch: str, reason: str, label: str = "patch") -> None:
        """Add a proposal, once."""
        id = proposal_id(record, against or f"{label} {patch}")
        if self._stores.inbox.get(id) is None and all(each.id != id for each in self.conflicts):
            self.conflicts.append(
                ChangeProposed(
                    id=id,
                    what="conflict",
                    record=record,
                    against=against,
                    by=self._authors.get(patch, ""),
                    label=label,
                    reason=reason,
                )
            )

    def _reword(self, record: Record, was: Believed, will: Believed, words: Mapping[tuple[str, str], Record]) -> None:
        """Give a record the words of the patch that states it now."""
        if will.stated is None or was.stated == will.stated or is_edited(record):
            return
        now = words.get((will.stated_in, record.id)) or revision_of(self._stores, record.id, will.stated.rev)
        then = revision_of(self._stores, record.id, was.stated.rev) if was.stated else record
        if now is not None and then is not None and not says_the_same(now, then):
            self.restate(now, will, will.stated_in)

    def _restate_own(self, id: str, was: Believed, will: Believed) -> None:
        """Move a record of this home into the playbook, or out of it."""
        record = self.get(id)
        if record is None or record.status not in (*LIVE, "retired", "archived"):
            return
        if will.stated and not was.stated:
            self.promote(record, will.stated, self._source(will.stated_in))
        elif was.stated and not will.stated and not record.pinned and record.layer != "L3":
            before = revision_of(self._stores, id, was.stated.rev) or record
            layer = before.layer if before.layer == "L3" else "L3"
            after = msgspec.structs.replace(
                record, rev=record.rev + 1, layer=layer, confidence=before.confidence, review=before.review
            )
            reason = "no patch states it any more"
            self.emit(Updated(record=after, decision=Decision(action="update", reason=reason)))

    def promote(self, record: Record, step: PatchStep, reason: str, *marks: Step) -> None:
        """Move a record into a layer, with the confidence and the change condition of a step."""
        review, layer = record.review or Review(), step.layer or "L2"
        condition = step.change_condition or review.change_condition or CHANGE_CONDITION
        following = instant(step.next_review) if step.next_review else review.next
        after = msgspec.structs.replace(
            record,
            rev=record.rev + 1,
            layer=layer,
            status="active" if record.status in LIVE and not record.flags else record.status,
            confidence=round(step.confidence or record.confidence, 4),
            review=msgspec.structs.replace(review, change_condition=condition, next=following),
        )
        decision = Decision(action="update", reason=reason, steps=tuple(marks))
        self.emit(Updated(record=after, decision=decision))

    def _review(self, id: str, was: Believed, will: Believed) -> None:
        """Give a record the confidence and the day of its last review."""
        record = self.get(id)
        said = (was.confidence, was.next_review), (will.confidence, will.next_review)
        if record is None or said[0] == said[1]:
            return
        stated = will.stated and revision_of(self._stores, id, will.stated.rev)
        base = reviewed(stated or record, will)
        following = base.review.next if base.review else ""
        why = "its patches name another review"
        self.emit(Reviewed(id=id, confidence=base.confidence, next=following, why=why))


def reviewed(record: Record, belief: Believed) -> Record:
    """Return a record with what its last reviews say."""
    if not (belief.confidence or belief.next_review):
        return record
    review = record.review or Review()
    if belief.next_review:
        review = msgspec.structs.replace(review, next=instant(belief.next_review))
    return msgspec.structs.replace(record, confidence=belief.confidence or record.confidence, review=review)
