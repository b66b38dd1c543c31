"""The user's decision on a proposed patch: its effects, and how they are taken back (G2, G7).

Invariants: the decision, the patch and its effects are one commit; a proposal whose records were reworded, retired or
moved since is moot; memd takes a decision back only while the records are as it left them, and the repository does not
have the patch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import dropwhile, takewhile

import msgspec

from ....protocol.corrections import PlaybookChange
from ....protocol.curation import Thresholds
from ....protocol.errors import InvalidRequest
from ....protocol.fading import Reviewed
from ....protocol.instant import from_micros, micros
from ....protocol.operation import (
    AnyOperation,
    ChangeDecided,
    ChangeProposed,
    ChangeReopened,
    Decision,
    Invalidated,
    PatchApplied,
    PatchGone,
    PatchStep,
    Pinned,
    Shift,
    Step,
    Updated,
)
from ....protocol.patch_file import file_hash
from ....protocol.record import LIVE, Layer, Record
from ....protocol.reply import Logged
from ....stages.batch import PERSONAL
from ...projections.inbox import PendingProposal
from ...projections.patches import PatchEntry, records_of
from ...projections.stores import Stores
from ..playbook_belief import ADDS, RETIRES, revision_of, statement
from ..record_history import entries, versions
from .patch_records import instant
from .patch_rendering import (
    PatchGate,
    Rendered,
    WordsForgotten,
    changes_of,
    frozen,
    reason_refused,
    rendered,
)
from .patch_taking import PIN
from .record_changes import RecordChanges

LAYERS: tuple[Layer, ...] = ("L1", "L2")
ROLE = "curator"
"""Author of a patch whose proposal names none."""


class PatchDecisions:
    """Decides proposals of patches. On the write thread, but for what is shown."""

    def __init__(
        self, stores: Stores, gate: PatchGate, now: Callable[[], int], thresholds: Callable[[str], Thresholds]
    ) -> None:
        self._stores, self._gate, self._now, self._thresholds = stores, gate, now, thresholds

    # --- what is shown -------------------------------------------------------------------------------------------
    def stands(self, proposal: ChangeProposed) -> bool:
        """Whether the records of a proposal are such that the user can still decide it."""
        steps = proposal.steps
        records = self._stores.records.many(records_of(steps))
        return bool(steps) and all(self._fits(step, records) for step in steps)

    def _fits(self, step: PatchStep, records: dict[str, Record]) -> bool:
        record = records.get(step.id)
        if record is None or record.status not in LIVE:
            return False
        if step.op == "supersede":
            other = records.get(step.to)
            return other is not None and other.status in LIVE and other.pool == record.pool
        if step.op not in ADDS or not step.rev or step.rev == record.rev:
            return True
        then = revision_of(self._stores, step.id, step.rev)
        return then is not None and (then.pool, statement(then)) == (record.pool, statement(record))

    def changes(self, proposal: ChangeProposed) -> tuple[PlaybookChange, ...]:
        """Return what a proposal would change, with what proves it."""
        return changes_of(self._stores, proposal.steps)

    def name(self, pending: PendingProposal) -> str:
        """Return the name of the patch that a proposal would become, "" for none."""
        if pending.what.label == PIN:
            return ""
        try:
            return self.rendered(pending).id
        except (WordsForgotten, InvalidRequest):
            return ""

    def rendered(self, pending: PendingProposal) -> Rendered:
        """Return the patch that a proposal would become. Raises WordsForgotten, InvalidRequest."""
        return rendered(
            self._stores, self.pool(pending.what), self._steps(pending.what), _role(pending.what), _day(pending)
        )

    def pool(self, proposal: ChangeProposed) -> str:
        """Return the pool of a proposal's records. Raises InvalidRequest if they are of several, or gone."""
        pools = {record.pool for record in self._stores.records.many(records_of(proposal.steps)).values()}
        if len(pools) != 1:
            raise InvalidRequest(
                f"the records of {proposal.id[:8]} are not in one pool any more",
                hint=f"`memd inbox reject {proposal.id[:8]}` removes it from the list",
            )
        return pools.pop()

    def _steps(self, proposal: ChangeProposed) -> tuple[PatchStep, ...]:
        return frozen(self._stores, proposal.steps)

    # --- accepting -----------------------------------------------------------------------------------------------
    def accepted(self, pending: PendingProposal, *, sent: bool = False) -> list[AnyOperation]:
        """Return the decision with its patch and its effects; no effects if others decide it (`sent`). Raises
        InvalidRequest."""
        proposal = pending.what
        if not self.stands(proposal):
            raise InvalidRequest(
                f"one of the records of {proposal.id[:8]} changed since, so it cannot be accepted",
                hint=f"`memd inbox reject {proposal.id[:8]}` removes it from the list",
            )
        decided = ChangeDecided(id=proposal.id, accepted=True)
        if proposal.label == PIN:
            if sent:
                raise InvalidRequest("a pin is yours alone: it is in no patch", hint="memd inbox accept")
            return [decided, *self._pinned(proposal)]
        pool, steps = self.pool(proposal), self._steps(proposal)
        self._check(proposal, pool, steps, _day(pending))
        made = self.rendered(pending)
        applied = PatchApplied(
            pool=pool,
            patch=made.id,
            day=_day(pending),
            generated_by=_role(proposal),
            steps=steps,
            names=made.names,
            proposal=proposal.id,
            sent=sent,
            hash=file_hash(made.data),
        )
        return [decided, applied, *(() if sent else self._effects(proposal, made.id, steps, _day(pending)))]

    def _check(self, proposal: ChangeProposed, pool: str, steps: Sequence[PatchStep], on: str) -> None:
        """Raise InvalidRequest for records that may not leave, and for a layer that would be too full."""
        records = self._stores.records.many(records_of(steps))
        for step in steps:
            record = records[step.id]
            if step.layer == "L1" and pool != PERSONAL:
                raise InvalidRequest("identity (L1) is personal", hint="`memd pin` pins it in its project (L2)")
            why = self._gate.why_not(record, step, pool, on) if step.op in ADDS else reason_refused(step)
            if why:
                raise InvalidRequest(
                    f"{record.id[:8]} can't go into a patch: {why}",
                    hint=f"`memd inbox reject {proposal.id[:8]}`; `memd pin {record.id[:8]}` keeps it here alone",
                )
        self._check_caps(pool, steps)

    def _check_caps(self, pool: str, steps: Sequence[PatchStep]) -> None:
        held = self._stores.records.many(self._stores.inbox.held([pool])).values()
        retired = {step.id for step in steps if step.op in RETIRES}
        for layer in LAYERS:
            most = self._thresholds(pool).of(layer).most
            there = {record.id for record in held if record.layer == layer} - retired
            coming = {step.id for step in steps if step.op in ADDS and (step.layer or "L2") == layer} - there - retired
            if coming and len(there) + len(coming) > most:
                weakest = min(
                    (record for record in held if record.id in there),
                    key=lambda record: (record.signal.importance * record.confidence, record.learned_at, record.id),
                )
                raise InvalidRequest(
                    f"{layer} of this pool is full: it holds {len(there)} of at most {most} records",
                    hint=f"`memd reject {weakest.id[:8]}` retires one that matters less: {weakest.description[:80]}",
                )

    def _effects(self, proposal: ChangeProposed, patch: str, steps: Sequence[PatchStep], on: str) -> list[AnyOperation]:
        changes, reason = RecordChanges(self._stores, self._now(), {}), f"{patch} accepted by the user"
        for step in steps:
            record = changes.get(step.id)
            assert record is not None
            match step.op:
                case "add" | "promote":
                    changes.promote(record, step, reason, _mark(proposal))
                case "review":
                    confidence = round(step.confidence or record.confidence, 4)
                    following = instant(step.next_review) if step.next_review else ""
                    changes.emit(
                        Reviewed(id=record.id, confidence=confidence, next=following, why=_why(proposal, patch))
                    )
                case "supersede" | "deprecate":
                    self._retire(changes, proposal, patch, step, on)
        return changes.operations

    def _retire(self, changes: RecordChanges, proposal: ChangeProposed, patch: str, step: PatchStep, on: str) -> None:
        record, other = changes.get(step.id), changes.get(step.to) if step.to else None
        assert record is not None
        until, since = instant(on), record.valid_from
        until = since if since and micros(since) > micros(until) else until
        changes.emit(Invalidated(id=record.id, valid_to=until, reason=_why(proposal, patch, step.reason), by=step.to))
        if other is not None and record.id not in other.supersedes:
            after = msgspec.structs.replace(other, rev=other.rev + 1, supersedes=(*other.supersedes, record.id))
            decision = Decision(action="update", reason=f"{patch} accepted by the user", steps=(_mark(proposal),))
            changes.emit(Updated(record=after, decision=decision))

    def _pinned(self, proposal: ChangeProposed) -> list[AnyOperation]:
        record = self._stores.records.get(proposal.record)
        if record is None or record.flags:
            raise InvalidRequest(
                f"{proposal.record[:8]} has a warning: a pinned record goes to every agent",
                hint=f"`memd inbox reject {proposal.id[:8]}`",
            )
        return [Pinned(id=record.id, pinned=True, layer="L2")]

    # --- taking back ---------------------------------------------------------------------------------------------
    def taken_back(self, pending: PendingProposal) -> list[AnyOperation]:
        """Return the operations that open a decided proposal again, with its records as before. Raises
        InvalidRequest."""
        proposal = pending.what
        if pending.state == "rejected":
            if not self.stands(proposal):
                raise _changed(proposal, proposal.record)
            return [ChangeReopened(id=proposal.id)]
        if proposal.label == PIN:
            return self._unpinned(proposal)
        entry = next((entry for entry in self._of(proposal) if entry.proposal == proposal.id), None)
        if entry is None:
            raise _changed(proposal, proposal.record)
        if entry.blob and entry.standing == "taken":
            raise InvalidRequest(
                f"the repository has {entry.patch}, so its commit decides",
                hint="revert the commit in git, then run `memd pi sync`",
            )
        back: list[AnyOperation] = []
        shifts: list[Shift] = []
        for id in dict.fromkeys(records_of(entry.steps)) if entry.standing == "applied" else ():
            self._back(proposal, id, back, shifts)
        return [
            *back,
            ChangeReopened(id=proposal.id, after=tuple(shifts)),
            PatchGone(pool=entry.pool, patch=entry.patch),
        ]

    def _of(self, proposal: ChangeProposed) -> list[PatchEntry]:
        found = {
            entry.patch: entry for id in records_of(proposal.steps) for entry in self._stores.patches.of_record(id)
        }
        return list(found.values())

    def _unpinned(self, proposal: ChangeProposed) -> list[AnyOperation]:
        record = self._stores.records.get(proposal.record)
        if record is None or not record.pinned:
            raise _changed(proposal, proposal.record)
        before = Shift(record.id, "quarantined", record.valid_to, record.retired_at, record.superseded_by)
        unpinned = Pinned(id=record.id, pinned=False, layer=record.layer)
        return [unpinned, ChangeReopened(id=proposal.id, after=(before,))]

    def _back(self, proposal: ChangeProposed, id: str, back: list[AnyOperation], shifts: list[Shift]) -> None:
        """Restore one record as it was before the decision. Raises InvalidRequest if it changed since."""
        seqs = self._accepted_at(proposal, id)
        if not seqs:
            return  # the patch only names it
        now, before, after = self._stores.records.get(id), None, None
        for entry, version in versions(self._stores, id):
            before = version if entry.seq < seqs[0] else before
            after = version if entry.seq == seqs[-1] else after
        if now is None or before is None or after is None or _compared(now) != _compared(after):
            raise _changed(proposal, id)
        holder = self._stores.records.holding_key(now.pool, before.key) if before.key else ""
        if holder not in ("", id):
            raise _changed(proposal, holder)
        if now.status == "retired":
            shifts.append(Shift(id, before.status, before.valid_to, before.retired_at, before.superseded_by))
        if _compared(before, status="") != _compared(now, status="") or before.review != now.review:
            record = msgspec.structs.replace(before, rev=now.rev + 1, status=now.status, valid_to=now.valid_to)
            record = msgspec.structs.replace(record, superseded_by=now.superseded_by, retired_at=now.retired_at)
            if now.status != "retired":
                record = msgspec.structs.replace(before, rev=now.rev + 1)
            reason = "the user took the decision on a proposal back"
            back.append(Updated(record=record, decision=Decision(action="update", reason=reason)))

    def _accepted_at(self, proposal: ChangeProposed, id: str) -> list[int]:
        """Return the seqs of the entries by which the last acceptance of a proposal changed a record, in order."""
        newest = entries(self._stores, id, newest_first=True)
        since = dropwhile(lambda entry: not _is_of(entry, proposal, id), newest)
        return sorted(entry.seq for entry in takewhile(lambda entry: _is_of(entry, proposal, id), since))


def _is_of(entry: Logged, proposal: ChangeProposed, id: str) -> bool:
    """Whether a journal entry changed a record because the user accepted a proposal."""
    match entry.operation:
        case Updated(record=record, decision=decision):
            return record.id == id and _mark(proposal) in decision.steps
        case Invalidated(reason=reason) | Reviewed(why=reason):
            return reason.startswith(_ACCEPTED) and reason.endswith(f"proposal {proposal.id}")
        case _:
            return False


_ACCEPTED = "accepted by the user: "


def _mark(proposal: ChangeProposed) -> Step:
    """Return the step by which the change of an accepted proposal is found again."""
    return Step("inbox", f"{_ACCEPTED}proposal {proposal.id}")


def _why(proposal: ChangeProposed, patch: str, reason: str = "") -> str:
    return f"{_ACCEPTED}{patch}{f': {reason}' if reason else ''}; proposal {proposal.id}"


def _compared(record: Record, status: str | None = None) -> Record:
    """Return a record without what memd's own reviews change."""
    same = msgspec.structs.replace(record, rev=0, confidence=0.0, review=None)
    if status is None:
        return same
    return msgspec.structs.replace(same, status="active", valid_to="", retired_at=0, superseded_by="")


def _role(proposal: ChangeProposed) -> str:
    return proposal.by[:80] or ROLE


def _day(pending: PendingProposal) -> str:
    """Return the day of a proposal, which is that of its patch: the same whenever the user decides."""
    return from_micros(pending.at)[:10]


def _changed(proposal: ChangeProposed, id: str) -> InvalidRequest:
    return InvalidRequest(
        f"{id[:8]} changed since {proposal.id[:8]} was decided, so memd cannot take that back",
        hint=f"`memd show {id[:8]} --history` tells what changed; `memd edit` and `memd correct` still work",
    )
