"""Corrections of single records and sessions: edit, correct, restore, pin, undo, redo.

A correction retires the wrong record in the same entry that adds the right one. A pinned personal record becomes L1, a
project's record L2; each layer has a cap, and no flagged record is promoted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

import msgspec

from ....protocol.corrections import (
    AddEvidence,
    Confirm,
    Correct,
    Learn,
    Pin,
    PlanReview,
    RecordList,
    Restore,
    SetPersona,
)
from ....protocol.errors import InvalidRequest
from ....protocol.event import Origin, Reworded, text
from ....protocol.fading import Released
from ....protocol.instant import micros
from ....protocol.operation import (
    Added,
    AnyOperation,
    Decision,
    Pinned,
    Retirement,
    SessionClosed,
    SessionOpened,
    Updated,
)
from ....protocol.record import LIVE, OPEN_QUESTION, PRINCIPLE, Artifact, Layer, Record, record_id
from ....protocol.reply import Remembered
from ....protocol.request import Edit, Redo, Undo
from ....stages.batch import PERSONAL
from ...projections.record_reducer import after_pin
from ...projections.stores import Stores
from ..admission import admit
from ..core import Core
from ..events import CapturesCommitted
from ..outgoing_screen import shown
from ..service import Handlers, Service, owner
from ..statements import is_on_probation, restated, reworded
from ..write_thread import Writer
from .annotations import Annotations, artifacts_of
from .judgement import Judge
from .persona import PersonaBlocks
from .undo import SessionUndo

CAPS: dict[Layer, int] = {"L1": 40, "L2": 300}
"""Records of a layer in one pool, at most (R9)."""

PRINCIPLES = 20
"""Principles of one pool, at most (Q8)."""

NAMES: dict[Layer, str] = {"L1": "identity (L1)", "L2": "the playbook of this pool (L2)"}


def pinned(
    stores: Stores,
    before: Record,
    wanted: bool,
    principle: bool = False,
    *,
    playbook: bool = False,
    dry_run: bool = False,
) -> Remembered:
    """Pin or unpin a record. Raises InvalidRequest with the way out."""
    layer: Layer = "L3"
    if wanted:
        layer = "L1" if before.pool == PERSONAL and not playbook else "L2"
        _check(stores, before, layer, principle)
    if principle and not wanted:
        raise InvalidRequest("a principle must be pinned", hint="`memd unpin` removes the pin and the principle")
    is_principle = PRINCIPLE in before.tags
    if (before.pinned, before.layer) == (wanted, layer) and is_principle in (principle, wanted):
        return Remembered(record=before, duplicate=True, dry_run=dry_run)
    released = [Released(ids=(before.id,), why="pinned")] if wanted and is_on_probation(before) else []
    marked = wanted and (principle or is_principle)
    operation = Pinned(id=before.id, pinned=wanted, layer=layer, principle=marked)
    if dry_run:
        return Remembered(record=after_pin(before, operation), dry_run=True)
    stores.commit([operation, *released])
    after = stores.records.get(before.id)
    assert after is not None
    return Remembered(record=after)


def _check(stores: Stores, before: Record, layer: Layer, principle: bool) -> None:
    if before.status not in LIVE:
        raise InvalidRequest(f"{before.id[:8]} is {before.status}", hint="only active records can be pinned")
    if before.flags:
        raise InvalidRequest(
            f"{before.id[:8]} is marked {', '.join(before.flags)}: a pinned record goes to every agent",
            hint=f"`memd edit {before.id[:8]} …` replaces its text with your own words; pin it after that",
        )
    held = stores.records.many(stores.inbox.held([before.pool])).values()
    others = [record for record in held if record.layer == layer and record.id != before.id]
    if principle and sum(PRINCIPLE in record.tags for record in others) >= PRINCIPLES:
        raise InvalidRequest(
            f"there are already {PRINCIPLES} principles, the maximum",
            hint="`memd unpin` one of them, or pin this record without --principle",
        )
    if len(others) >= CAPS[layer]:
        weakest = min(
            others, key=lambda record: (record.signal.importance * record.confidence, record.learned_at, record.id)
        )
        raise InvalidRequest(
            f"{NAMES[layer]} is full: it holds {len(others)} of at most {CAPS[layer]} records",
            hint=f"`memd unpin` one that matters less, such as {weakest.id[:8]}: {weakest.description[:80]}",
        )


class CorrectionsService(Service):
    """Changes of single records and of whole sessions that the user asks for."""

    name = "corrections"

    def __init__(
        self,
        core: Core,
        writer: Writer,
        *,
        reactivate: Callable[[Sequence[str], Literal["asked", "recalled"]], tuple[str, ...]],
        distil: Callable[[], None],
        link: Callable[[Artifact], Artifact],
    ) -> None:
        """`reactivate`: brings archived records back, on the write thread; `distil`: wakes the distiller; `link`: adds
        to the artifact of a file what tells later whether it changed."""
        self._stores, self._captures, self._gate = core.stores, core.captures, core.gate
        self.judge = Judge(core.stores, core.world)
        self.annotations = Annotations(core.stores, core.world)
        self.persona = PersonaBlocks(core.stores, core.gate, core.world.token)
        self.sessions = SessionUndo(core.stores, writer, core.jobs, distil)
        self._writer, self._reactivate, self._distil, self._link = writer, reactivate, distil, link

    @property
    def handlers(self) -> Handlers:
        """Single records on the write lane, evidence after its files were read; sessions by a job."""
        return {
            Edit: owner("write", self.edit),
            Correct: owner("write", self.correct),
            Confirm: owner("write", self.judge.judge),
            Restore: owner("write", self.restore),
            Pin: owner("write", self.pin),
            PlanReview: owner("write", self.annotations.plan_review),
            Learn: owner("write", self.annotations.learn),
            SetPersona: owner("write", self.persona.set),
            AddEvidence: owner("slow", self.add_evidence),
            Undo: owner("slow", lambda request: self.sessions.undo(request.names)),
            Redo: owner("slow", lambda request: self.sessions.redo(request.names)),
        }

    def pin(self, request: Pin) -> Remembered:
        """Pin or unpin a record. Raises NotFound, InvalidRequest."""
        before = self._stores.records.named(request.id)
        return pinned(
            self._stores,
            before,
            request.pinned,
            request.principle,
            playbook=request.playbook,
            dry_run=request.dry_run,
        )

    def add_evidence(self, request: AddEvidence) -> Remembered:
        """Add artifacts to a record, or remove them. Raises NotFound, InvalidRequest, also for a heading that a
        document lacks."""
        artifacts = artifacts_of(request)
        if not request.remove:  # the write thread reads no files of the user
            artifacts = [self._link(each) for each in artifacts]
        return self._writer.run(lambda: self.annotations.add_evidence(request, artifacts)).result()

    def restore(self, request: Restore) -> RecordList:
        """Make archived records active again, by ids or their beginnings. Raises NotFound, InvalidRequest."""
        if not request.ids:
            raise InvalidRequest("no record was named", hint="`memd list --status archived` lists archived records")
        wanted = list(dict.fromkeys(self._stores.records.named(id).id for id in request.ids))
        back = self._reactivate(wanted, "asked")
        records = tuple(shown(record).record for record in self._stores.records.many(back).values())
        if not records:
            raise InvalidRequest(
                "none of these records is archived",
                hint="`memd list --status archived` lists them; `memd show ID --history` shows versions",
            )
        return RecordList(records=records, left=len(wanted) - len(records))

    def correct(self, request: Correct) -> Remembered:
        """Retire a record as wrong and add the user's statement in its place. Raises NotFound, InvalidRequest,
        TooLarge."""
        before = self._stores.records.named(request.id)
        self._require(before, (*LIVE, "archived"), "correct")
        is_open = before.type == OPEN_QUESTION
        until = request.since or (request.at if is_open else "")
        if until and before.valid_from and micros(until) < micros(before.valid_from):
            raise InvalidRequest(
                f"{before.id[:8]} only became valid at {before.valid_from}", hint="omit the time or give a later one"
            )
        origin = Origin(host="memd", session=f"corrections/{before.id}", live=False)
        event = Reworded(turn=f"{before.id}:{before.rev}", at=request.at, record=before.id, text=request.text)
        captured = admit(self._gate, origin, event)
        id = record_id(before.pool, captured.document, captured.event.turn, 0, 0)
        right = msgspec.structs.replace(
            (restated if before.is_team else reworded)(before, captured),
            id=id,
            rev=1,
            learned_at=0,
            supersedes=(before.id,),
            superseded_by="",
            valid_from=until or before.valid_from,
            needs_review=False,
        )
        # a record that was never true ends at its beginning
        retired = Retirement(before.id, until or before.valid_from, "corrected by the user")
        decision = Decision(action="add", reason="the user said that the record before is wrong")
        if before.type == OPEN_QUESTION != right.type:
            retired = Retirement(before.id, right.valid_from, f"decided: {id}")
            decision = Decision(action="add", reason="the user decided the open question")
        if request.dry_run:
            return Remembered(record=right, dry_run=True)
        self._stores.take([captured])
        operations = self._opening(origin, before, request.at)
        if operations:
            operations.append(SessionClosed(document=origin.document, at=request.at))
        self._stores.commit([*operations, Added(record=right, retires=(retired,), decision=decision)])
        self._distil()
        corrected = self._stores.records.get(id)
        assert corrected is not None
        return Remembered(record=corrected)

    def edit(self, request: Edit) -> Remembered:
        """Replace a record's text by the user's. Raises NotFound, InvalidRequest, TooLarge."""
        before = self._stores.records.named(request.id)
        self._require(before, LIVE, "edit")
        if before.is_team:
            raise InvalidRequest(
                f"{before.id[:8]} has the words of {before.provenance.author}",
                hint=f"`memd correct {before.id[:8]} TEXT` puts your own statement in its place",
            )
        origin = Origin(host="memd", session=f"edits/{before.id}")
        event = Reworded(turn=f"{before.id}:{before.rev + 1}", at=request.at, record=before.id, text=request.text)
        captured = admit(self._gate, origin, event)
        if text(captured.event) == before.content:  # the same edit again, because its answer was lost
            return Remembered(record=before, duplicate=True, dry_run=request.dry_run)
        if request.dry_run:
            return Remembered(record=reworded(before, captured), dry_run=True)
        self._stores.take([captured])
        decision = Decision(action="update", reason="edited by the user")
        updated = Updated(record=reworded(before, captured), decision=decision)
        self._stores.commit([*self._opening(origin, before, request.at), updated])
        self._captures.publish(CapturesCommitted({origin.document: False}, urgent=True))
        edited = self._stores.records.get(before.id)
        assert edited is not None
        return Remembered(record=edited)

    def _require(self, record: Record, statuses: Collection[str], verb: str) -> None:
        """Raise InvalidRequest for a record of another status, with the record to change instead."""
        if record.status not in statuses:
            successor = self._stores.records.successor(record)
            hint = f"{verb} {successor[:8]}, which replaced it" if successor else "remember it anew"
            raise InvalidRequest(f"{record.id[:8]} is {record.status}", hint=hint)

    def _opening(self, origin: Origin, record: Record, at: str) -> list[AnyOperation]:
        """Open the session of a correction in the pool of its record, if it is new."""
        if self._stores.sources.session(origin.document) is not None:
            return []
        project = "" if record.pool == PERSONAL else record.pool
        return [SessionOpened(document=origin.document, origin=origin, project=project, at=at)]
