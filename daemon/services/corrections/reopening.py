"""Taking the user's decision on a proposal back: the proposal is open again, and its records are as before (G7).

Invariants: memd takes a replacement back only while both records are as the decision left them, apart from memd's own
reviews of them; an accepted deletion has no way back.
"""

from __future__ import annotations

import msgspec

from ....protocol.errors import InvalidRequest
from ....protocol.operation import (
    AnyOperation,
    ChangeDecided,
    ChangeProposed,
    ChangeReopened,
    Decision,
    Hidden,
    Invalidated,
    Shift,
    Step,
    Unhidden,
    Updated,
)
from ....protocol.record import LIVE, Record
from ....protocol.reply import Logged
from ....protocol.skills import SKILL_COMMANDS
from ...projections.inbox import PendingProposal
from ...projections.record_reducer import TAKEN_BACK
from ...projections.stores import Stores
from ..record_history import entries, versions
from .hiding import hide, may_hide
from .undo import standing


def stands(proposal: ChangeProposed, old: Record | None, new: Record | None) -> bool:
    """Return whether the records of a proposal are such that the user can still decide it."""
    if proposal.what == "forget":
        return old is not None
    if proposal.what in SKILL_COMMANDS:
        return False
    if not proposal.against:  # another author said that it no longer holds, and nothing instead
        return old is not None and old.status in LIVE
    return old is not None and new is not None and old.status in LIVE and new.status in LIVE


def step_of(proposal: ChangeProposed) -> Step:
    """Return the step by which the change of an accepted proposal is found again."""
    return Step("inbox", f"accepted by the user: proposal {proposal.id}")


def why_retired(proposal: ChangeProposed) -> str:
    """Return the reason of the retirement by an accepted proposal without a replacement."""
    return f"accepted by the user: {proposal.reason}; proposal {proposal.id}"


def taken_back(stores: Stores, asked: PendingProposal) -> list[AnyOperation]:
    """Return the operations that open a decided proposal again. Raises InvalidRequest."""
    proposal, id = asked.what, asked.what.id[:8]
    if asked.state == "open":
        raise InvalidRequest(f"{id} is open already", hint=f"`memd inbox accept {id}` or `memd inbox reject {id}`")
    if proposal.what in SKILL_COMMANDS:
        if asked.state == "accepted":
            raise InvalidRequest(f"{id} is about a file", hint="`memd skill retire NAME`, or put the file back")
        return [ChangeReopened(id=proposal.id)]
    if asked.state == "rejected":
        return _unrejected(stores, proposal)
    if proposal.what == "forget":
        raise InvalidRequest(
            f"memd deleted the record of {id} permanently, so it cannot be reopened",
            hint="`memd remember` takes the statement anew",
        )
    return _unaccepted(stores, proposal) if proposal.against else [_unretired(stores, proposal)]


def _unretired(stores: Stores, proposal: ChangeProposed) -> ChangeReopened:
    """Open an accepted proposal without a replacement again, with its record as before. Raises InvalidRequest."""
    for entry in entries(stores, proposal.record, newest_first=True):
        if isinstance(entry.operation, Invalidated) and entry.operation.reason == why_retired(proposal):
            old, before = _as_before(stores, proposal.record, entry, proposal)
            holder = stores.records.holding_key(old.pool, old.key) if old.key else ""
            if holder not in ("", old.id):
                raise _changed(proposal, holder)
            return ChangeReopened(id=proposal.id, after=(standing(before),))
    raise _changed(proposal, proposal.record)


def _unrejected(stores: Stores, proposal: ChangeProposed) -> list[AnyOperation]:
    """Open a rejected proposal again, and hide the record again that the rejection showed."""
    records = stores.records.many(filter(None, (proposal.record, proposal.against)))
    old = records.get(proposal.record)
    if old is None or not stands(proposal, old, records.get(proposal.against)):
        raise InvalidRequest(
            f"one of the two records of {proposal.id[:8]} is no longer active, so there is nothing to decide",
            hint=f"`memd show {proposal.record[:8]} --history` tells what changed",
        )
    hidden = _hidden_again(stores, proposal, old) if proposal.what == "forget" and may_hide(old) else None
    return [ChangeReopened(id=proposal.id), *([hidden] if hidden else [])]


def _hidden_again(stores: Stores, proposal: ChangeProposed, record: Record) -> Hidden | None:
    """Return the operation that hides a record again that the rejection showed; None if it did not, or if the record
    changed since. A provisional record that the worker refined meanwhile counts as unchanged."""
    for entry in entries(stores, record.id, newest_first=True):
        shown = entry.operation
        if not isinstance(shown, Unhidden) or shown.documents:
            continue
        decision, first = stores.journal.get(entry.seq - 1), stores.journal.get(shown.hidden)
        if decision is None or decision.operation != ChangeDecided(id=proposal.id, accepted=False):
            return None
        if first is None or not isinstance(first.operation, Hidden) or not _is_as(record, shown.after):
            return None
        return hide([record])
    return None


def _is_as(record: Record, shifts: tuple[Shift, ...]) -> bool:
    """Return whether a record still has the state of one of these shifts, refined or not."""
    unrefined = standing(record, "provisional") if record.status == "active" else None
    return standing(record) in shifts or unrefined in shifts


def _unaccepted(stores: Stores, proposal: ChangeProposed) -> list[AnyOperation]:
    """Open an accepted proposal again, and take the replacement back. Raises InvalidRequest."""
    accepted = _acceptance(stores, proposal)
    old, old_before = _as_before(stores, proposal.record, accepted, proposal)
    new, new_before = _as_before(stores, proposal.against, accepted, proposal)
    holder = stores.records.holding_key(old.pool, old.key) if old.key and old_before.status in LIVE else ""
    if holder not in ("", old.id, new.id):
        raise _changed(proposal, holder)
    record = msgspec.structs.replace(new_before, rev=new.rev + 1, confidence=new.confidence, review=new.review)
    return [  # in this order: the key of `old` is free before `old` is live
        Updated(record=record, decision=Decision(action="update", reason=TAKEN_BACK)),
        ChangeReopened(id=proposal.id, after=(standing(old_before),)),
    ]


def _acceptance(stores: Stores, proposal: ChangeProposed) -> Logged:
    """Return the journal entry of the replacement that the user accepted. Raises InvalidRequest."""
    step = step_of(proposal)
    for entry in entries(stores, proposal.against, newest_first=True):
        if isinstance(entry.operation, Updated) and step in entry.operation.decision.steps:
            return entry
    raise _changed(proposal, proposal.against)


def _as_before(stores: Stores, id: str, accepted: Logged, proposal: ChangeProposed) -> tuple[Record, Record]:
    """Return a record as it is and as it was before the user accepted. Raises InvalidRequest if it changed since."""
    now, before, after = stores.records.get(id), None, None
    for entry, version in versions(stores, id, accepted.seq + 1):
        before, after = (before, version) if entry.seq == accepted.seq else (version, after)
    if now is None or before is None or after is None or _compared(now) != _compared(after):
        raise _changed(proposal, id)
    return now, before


def _compared(record: Record) -> Record:
    """Return a record without what memd's own reviews change."""
    return msgspec.structs.replace(record, rev=0, confidence=0.0, review=None)


def _changed(proposal: ChangeProposed, id: str) -> InvalidRequest:
    return InvalidRequest(
        f"{id[:8]} changed since {proposal.id[:8]} was accepted, so memd cannot take that back",
        hint=f"`memd show {id[:8]} --history` tells what changed; `memd edit` and `memd correct` still work",
    )
