"""What the user adds to a record beside its text: its review and evidence (R5), and what it teaches under a perspective
(R7)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ....protocol.corrections import AddEvidence, Learn, PlanReview
from ....protocol.errors import InvalidRequest
from ....protocol.instant import from_micros
from ....protocol.operation import Decision, Updated
from ....protocol.record import LEARNINGS, LIVE, Artifact, Record, Review
from ....protocol.reply import Remembered
from ...projections.stores import Stores
from ...projections.strength import DAY
from ...world import World
from ..outgoing_screen import flags_in

ARTIFACTS = 20
"""Most artifacts of a record."""

_URL, _COMMIT = re.compile(r"https?://\S+"), re.compile(r"[0-9a-f]{7,64}")


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
        told = "told" if request.text.strip() else "removed"
        return self.teach(request.id, request.perspective, request.text, f"the user {told} what it teaches")

    def teach(self, id: str, perspective: str, text: str, why: str) -> Remembered:
        """Set or remove what a record teaches under a perspective. Raises NotFound, InvalidRequest."""
        record, words, perspective = self._live(id), " ".join(text.split()), perspective.strip()
        if not perspective:
            raise InvalidRequest("the perspective is empty", hint="`memd agent` shows the perspectives of agents")
        learnings = {name: text for name, text in record.learnings.items() if name != perspective}
        if words:
            learnings[perspective] = words
        if len(learnings) > LEARNINGS:
            raise InvalidRequest(
                f"{record.id[:8]} has learnings for {LEARNINGS} perspectives", hint="remove one with --remove"
            )
        if "injection" in flags_in(words):
            raise InvalidRequest("the text reads as an order to an agent", hint="say what the record teaches")
        return self._changed(record, replace(record, learnings=learnings), f"{why} for {perspective}")

    def add_evidence(self, request: AddEvidence, artifacts: Sequence[Artifact]) -> Remembered:
        """Add artifacts to a record, or remove them. Raises NotFound, InvalidRequest."""
        record = self._live(request.id)
        named = {each.ref: each for each in artifacts}
        others = {each.ref: each for each in record.artifacts if not (request.remove and each.ref in named)}
        kept = others if request.remove else {**others, **named}
        if len(kept) > ARTIFACTS:
            raise InvalidRequest(f"{record.id[:8]} has {ARTIFACTS} artifacts", hint="remove one with --remove")
        why = f"evidence {'removed' if request.remove else 'added'} by the user"
        return self._changed(record, replace(record, artifacts=tuple(kept.values())), why)

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


def artifacts_of(request: AddEvidence) -> list[Artifact]:
    """Return the artifacts that a request names. Raises InvalidRequest."""
    if not request.refs:
        raise InvalidRequest("no artifact was named", hint="name a file, an address or a commit")
    note = " ".join(request.note.split())
    return [artifact(ref.strip(), note) for ref in request.refs]


def artifact(ref: str, note: str) -> Artifact:
    """Return the artifact of an address, a commit or an absolute path. Raises InvalidRequest for any other text."""
    if _URL.fullmatch(ref):
        return Artifact(type="url", ref=ref, note=note)
    if _COMMIT.fullmatch(ref):
        return Artifact(type="commit", ref=ref, note=note)
    if ref.startswith("/"):
        return Artifact(type="file", ref=ref, note=note)
    raise InvalidRequest(
        f"{ref!r} is no address, commit or absolute path",
        hint="write https://…, the hash of a commit, or the path of a file",
    )
