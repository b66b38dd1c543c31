"""The next state of a record after an operation: the step that live operation, replay and reads of the past share
(T1, R3).

Invariants: no clock, randomness or disk; every projection uses `touched` to learn which records an operation changes.
"""

from __future__ import annotations

import msgspec

from ...protocol.fading import Archived, Released, Restored, Reviewed
from ...protocol.operation import (
    Added,
    AnyOperation,
    Arrived,
    AuthorJudged,
    ChangeReopened,
    Erased,
    Hidden,
    Invalidated,
    Merged,
    Moved,
    PatchGone,
    PatchTaken,
    Pinned,
    PiTrusted,
    Rebased,
    RecordJudged,
    Redacted,
    Retirement,
    Shift,
    Unhidden,
    Updated,
)
from ...protocol.record import LIVE, PRINCIPLE, Evidence, Record, Review, Status
from ...protocol.reply import Logged
from ...stages.batch import PERSONAL

VERDICTS = {"right": "confirmed by the user", "wrong": "rejected by the user", "undone": "judgement taken back"}
"""Why a judged record changed."""

TAKEN_BACK = "the user took the decision on a proposal back"
"""Why a record of a reopened proposal changed."""

STANDINGS = {
    "new": "the user neither trusts nor mutes its author",
    "trusted": "the user trusts its author",
    "muted": "the user muted its author",
}
"""Why a shared record changed, or one that its author invalidated."""

WITHHELD = "the hub's lease ended, or the hub shows its author to nobody"

ANOTHER_LINE = "another shared line changes it"
"""Why a shared record changed when other lines came."""

PATCHES = {PatchTaken: "another patch changes it", PatchGone: "its patch was reverted"}
"""Why a record changed when patches came, or went."""

_ARCHIVED, _QUARANTINED = frozenset({"archived"}), frozenset({"quarantined"})


def touched(operation: AnyOperation) -> tuple[str, ...]:
    """Return the ids of the records that an operation may change, in order."""
    match operation:
        case Added() | Updated():
            retired = (retirement.id for retirement in operation.retires if retirement.id != operation.record.id)
            return (*retired, operation.record.id)
        case Merged() | Invalidated() | Pinned() | Reviewed() | RecordJudged():
            return (operation.id,)
        case Rebased():
            return (operation.record.id,)
        case Redacted():
            return operation.records
        case Erased():
            return tuple(dict.fromkeys((*(retirement.id for retirement in operation.retires), *operation.ids)))
        case Moved() | Archived() | Restored() | Released():
            return operation.ids
        case Hidden() | Unhidden() | ChangeReopened() | PatchTaken() | PatchGone() | PiTrusted():
            return tuple(shift.id for shift in operation.after)
        case Arrived() | AuthorJudged():
            return tuple(dict.fromkeys((*(shift.id for shift in operation.after), *(id for id, _ in operation.review))))
        case _:
            return ()


def apply(before: Record | None, id: str, entry: Logged) -> Record | None:
    """Return the record `id` after `entry`; `before` itself if nothing changes."""
    match operation := entry.operation:
        case Added() | Updated() | Invalidated() | Erased():
            return _stated(before, id, operation, entry.at)
        case Merged():
            return _merged(before, operation)
        case Pinned():
            return before and after_pin(before, operation)
        case Rebased():
            return operation.record
        case Redacted():
            return None
        case Hidden() | Unhidden() | ChangeReopened() | PatchTaken() | PatchGone() | PiTrusted():
            return _shifted(before, next(shift for shift in operation.after if shift.id == id))
        case Arrived() | AuthorJudged():
            return _shared(before, id, operation)
        case RecordJudged():
            return _judged(before, operation)
        case Moved():
            return _moved(before, operation)
        case Archived() | Restored() | Released() | Reviewed():
            return _aged(before, id, operation)
        case _:
            return before


def _stated(
    before: Record | None, id: str, operation: Added | Updated | Invalidated | Erased, at: int
) -> Record | None:
    """Apply an operation that states a record, or retires it."""
    if isinstance(operation, Invalidated):
        return _retired(before, Retirement(id, operation.valid_to, operation.reason), at, operation.by)
    if isinstance(operation, Erased):
        by = operation.by
    elif operation.record.id == id:
        return _stamped(operation.record, at, before)
    else:
        by = operation.record.id
    retirement = next((retirement for retirement in operation.retires if retirement.id == id), None)
    return _retired(before, retirement, at, by) if retirement else before


def _aged(before: Record | None, id: str, operation: Archived | Restored | Released | Reviewed) -> Record | None:
    """Apply an operation of the lifecycle: archive, restore, release, review."""
    match operation:
        case Archived():
            return _with_status(before, LIVE, "archived", operation.by)
        case Restored():
            return _with_status(before, _ARCHIVED, "quarantined" if id in operation.quarantined else "active")
        case Released():
            return _with_status(before, _QUARANTINED, "active")
        case Reviewed():
            return _reviewed(before, operation)


def reason(entry: Logged, id: str) -> str:
    """Return the reason that an operation gives for changing a record, "" for none."""
    match entry.operation:
        case Added() | Updated() as operation if operation.record.id != id:
            return next((retirement.reason for retirement in operation.retires if retirement.id == id), "")
        case Added() | Updated() | Merged() as operation:
            return operation.decision.reason
        case Invalidated() as operation:
            return operation.reason
        case RecordJudged() as operation:
            return VERDICTS[operation.verdict]
        case ChangeReopened():
            return TAKEN_BACK
        case Archived() | Restored() | Reviewed() as operation:
            return operation.why
        case AuthorJudged() as operation:
            if operation.withheld:
                return WITHHELD
            return STANDINGS[operation.standing]
        case Arrived():
            return ANOTHER_LINE
        case PatchTaken() | PatchGone() | PiTrusted() as operation:
            return _why_patched(operation)
        case _:
            return ""


def _why_patched(operation: PatchTaken | PatchGone | PiTrusted) -> str:
    if isinstance(operation, PiTrusted):
        return "the user lets memd read the project's .pi folder" if operation.trusted else "the user took that back"
    return f"{PATCHES[type(operation)]}: {operation.patch}"


def _stamped(record: Record, at: int, before: Record | None) -> Record:
    """Return `record` with its system times: learnt when first added, retired now if it arrives retired.

    A record from an export keeps the times of its store, none later than now.
    """
    learned_at = before.learned_at if before else min(record.learned_at or at, at)
    retired_at = min(record.retired_at or at, at) if record.status == "retired" else 0
    held = record if before is None or not before.pinned else before  # a pin of the user stays
    return msgspec.structs.replace(
        record,
        learned_at=learned_at,
        retired_at=retired_at,
        pinned=held.pinned,
        layer=held.layer,
        tags=_tagged(record.tags, held.pinned and PRINCIPLE in held.tags),
    )


def _tagged(tags: tuple[str, ...], principle: bool) -> tuple[str, ...]:
    """Return tags with or without `principle`, which only the user sets (Q8)."""
    if principle == (PRINCIPLE in tags):
        return tags
    return (*tags, PRINCIPLE) if principle else tuple(tag for tag in tags if tag != PRINCIPLE)


def after_pin(before: Record, operation: Pinned) -> Record:
    """Return a record as it is after it was pinned or unpinned."""
    tags = before.tags if operation.principle is None else _tagged(before.tags, operation.principle)
    changed = msgspec.structs.replace(before, pinned=operation.pinned, tags=tags, rev=before.rev + 1)
    if not operation.layer:
        return changed
    freed = operation.pinned and before.status == "quarantined"
    return msgspec.structs.replace(changed, layer=operation.layer, status="active" if freed else before.status)


def _retired(before: Record | None, retirement: Retirement, at: int, by: str) -> Record | None:
    if before is None or before.status == "retired":
        return before
    return msgspec.structs.replace(
        before, status="retired", valid_to=retirement.valid_to, retired_at=at, superseded_by=by, rev=before.rev + 1
    )


def _merged(before: Record | None, merged: Merged) -> Record | None:
    if before is None:
        return None
    evidence = (*before.provenance.evidence, merged.evidence)
    provenance = msgspec.structs.replace(before.provenance, evidence=evidence)
    return msgspec.structs.replace(before, provenance=provenance, rev=before.rev + 1)


def _shifted(before: Record | None, shift: Shift) -> Record | None:
    if before is None:
        return None
    return msgspec.structs.replace(
        before,
        status=shift.status,
        valid_to=shift.valid_to,
        retired_at=shift.retired_at,
        superseded_by=shift.superseded_by,
        rev=before.rev + 1,
    )


def _shared(before: Record | None, id: str, operation: Arrived | AuthorJudged) -> Record | None:
    """Apply the consequences of other authors' lines for a record."""
    shift = next((shift for shift in operation.after if shift.id == id), None)
    record = _shifted(before, shift) if shift else before
    needs_review = dict(operation.review).get(id)
    if record is None or needs_review is None or record.needs_review == needs_review:
        return record
    return msgspec.structs.replace(record, needs_review=needs_review, rev=record.rev + 1)


def _judged(before: Record | None, judged: RecordJudged) -> Record | None:
    record = _shifted(before, judged.after)
    if record is None or judged.verdict == "wrong":
        return record
    evidence = tuple(item for item in record.provenance.evidence if item.kind != "confirmed")
    if judged.verdict == "right":
        evidence += (Evidence(kind="confirmed", span=record.provenance.spans[0], trust="user", at=judged.at),)
    return msgspec.structs.replace(record, provenance=msgspec.structs.replace(record.provenance, evidence=evidence))


def _moved(before: Record | None, moved: Moved) -> Record | None:
    if before is None:
        return None
    layer = "L2" if before.layer == "L1" and moved.pool != PERSONAL else before.layer  # identity is personal (R9)
    changed = msgspec.structs.replace(before, pool=moved.pool, layer=layer, placed=True, rev=before.rev + 1)
    return msgspec.structs.replace(changed, key="", needs_review=True) if before.id in moved.unkeyed else changed


def _with_status(before: Record | None, among: frozenset[str], status: Status, by: str = "") -> Record | None:
    """Return the record with another status, if its status is one of `among`."""
    if before is None or before.status not in among:
        return before
    return msgspec.structs.replace(before, status=status, superseded_by=by, rev=before.rev + 1)


def _reviewed(before: Record | None, reviewed: Reviewed) -> Record | None:
    if before is None:
        return None
    known = before.review or Review()
    against = max(known.against, reviewed.against)
    review = msgspec.structs.replace(known, next=reviewed.next or known.next, against=against)
    return msgspec.structs.replace(before, confidence=reviewed.confidence, review=review, rev=before.rev + 1)
