"""What the user adds to a record beside its text: its review (R5), and what it teaches under a perspective (R7)."""

from __future__ import annotations

from msgspec.structs import replace

from ....protocol.corrections import Learn, PlanReview
from ....protocol.errors import InvalidRequest
from ....protocol.instant import from_micros
from ....protocol.operation import Decision, Updated
from ....protocol.record import LIVE, Record, Review
from ....protocol.reply import Remembered
from ...projections.stores import Stores
from ...projections.strength import DAY
from ...world import World

LEARNINGS = 12
"""Most perspectives under which a record teaches something."""


class Annotations:
    """Adds to records. On the write thread."""

    def __init__(self, stores: Stores, world: World) -> None:
        self._stores, self._world = stores, world

    def plan_review(self, request: PlanReview) -> Remembered:
        """Set the review of a record; without a new value only return it. Raises NotFound, InvalidRequest."""
        record = self._live(request.id)
        review = record.review or Review()
        if request.every_days is not None:
            next = from_micros(self._world.now() + request.every_days * DAY) if request.every_days else ""
            review = replace(review, cadence_days=request.every_days, next=next)
        if request.change_condition is not None:
            review = replace(review, change_condition=" ".join(request.change_condition.split()), against=0)
        after = replace(record, review=review if review != Review() else None)
        return self._changed(record, after, "review planned by the user")

    def learn(self, request: Learn) -> Remembered:
        """Set or remove a learning of a record. Raises NotFound, InvalidRequest."""
        record, words = self._live(request.id), " ".join(request.text.split())
        perspective = request.perspective.strip()
        if not perspective:
            raise InvalidRequest("the perspective is empty", hint="`memd agent` shows the perspectives of agents")
        learnings = {name: text for name, text in record.learnings.items() if name != perspective}
        if words:
            learnings[perspective] = words
        if len(learnings) > LEARNINGS:
            raise InvalidRequest(
                f"{record.id[:8]} has learnings for {LEARNINGS} perspectives", hint="remove one with --remove"
            )
        why = f"the user {'told' if words else 'removed'} what it teaches for {perspective}"
        return self._changed(record, replace(record, learnings=learnings), why)

    def _live(self, id: str) -> Record:
        record = self._stores.records.named(id)
        if record.status not in LIVE:
            successor = self._stores.records.successor(record)
            hint = f"name {successor[:8]}, which replaced it" if successor else "`memd list` shows live records"
            raise InvalidRequest(f"{record.id[:8]} is {record.status}", hint=hint)
        return record

    def _changed(self, before: Record, after: Record, why: str) -> Remembered:
        if after == before:
            return Remembered(record=before, duplicate=True)
        after = replace(after, rev=before.rev + 1)
        self._stores.commit([Updated(record=after, decision=Decision(action="update", reason=why))])
        return Remembered(record=self._stores.records.get(before.id) or after)
