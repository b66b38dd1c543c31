"""The user's judgement of records: right, wrong, or taken back (T1, T8). No text changes and nothing is pinned.

A right record is believed and has the judgement as evidence; a wrong one is retired as never valid. To take a judgement
back restores the state before it.
"""

from __future__ import annotations

from ....protocol.corrections import Confirm, JudgedRecord, Judgement
from ....protocol.errors import InvalidRequest
from ....protocol.instant import from_micros
from ....protocol.operation import RecordJudged, Shift
from ....protocol.record import LIVE, Record
from ...projections.stores import Stores
from ...world import World
from ..record_history import entries
from .hiding import fitting
from .undo import standing


class Judge:
    """Judges records. On the write thread."""

    def __init__(self, stores: Stores, world: World) -> None:
        self._stores, self._world = stores, world

    def judge(self, request: Confirm) -> Judgement:
        """Judge all named records, or none. Raises NotFound, InvalidRequest."""
        if not request.ids:
            raise InvalidRequest("no record was named", hint="`memd list` and `memd recall` show ids")
        records = {(record := self._stores.records.named(id)).id: record for id in request.ids}
        at = from_micros(self._world.now())
        judged = [
            self._taken_back(record, at) if request.undo else self._judged(record, request.right, at)
            for record in records.values()
        ]
        known = {id for id, record in records.items() if record.status == "active" and record.is_confirmed}
        changes = [each for each in judged if each.verdict != "right" or each.id not in known]
        if changes and not request.dry_run:
            self._stores.commit(changes)
        rows = [
            JudgedRecord(id=id, description=record.description, before=each.before.status, after=each.after.status)
            for (id, record), each in zip(records.items(), judged, strict=True)
        ]
        return Judgement(records=tuple(rows), dry_run=request.dry_run)

    def _judged(self, record: Record, right: bool, at: str) -> RecordJudged:
        was = standing(record)
        if right:
            _require(record, "confirm", flagged=False)
            after = standing(record, "active")
        else:
            _require(record, "reject", flagged=True)
            after = Shift(record.id, "retired", record.valid_from, self._world.now(), "")
        return RecordJudged(id=record.id, verdict="right" if right else "wrong", at=at, before=was, after=after)

    def _taken_back(self, record: Record, at: str) -> RecordJudged:
        """Return the operation that restores the state before the last judgement, unless the record changed since."""
        operations = (entry.operation for entry in entries(self._stores, record.id, newest_first=True))
        last = next((each for each in operations if isinstance(each, RecordJudged)), None)
        if last and last.verdict != "undone" and last.after == standing(record):
            after = fitting(self._stores, record, last.before)
            return RecordJudged(id=record.id, verdict="undone", at=at, before=last.after, after=after)
        raise InvalidRequest(
            f"{record.id[:8]} was not judged, or it changed since", hint=f"`memd show {record.id[:8]} --history` tells"
        )


def _require(record: Record, verb: str, *, flagged: bool) -> None:
    if record.status not in LIVE:
        raise InvalidRequest(f"{record.id[:8]} is {record.status}", hint=f"memd can only {verb} what it may still tell")
    if record.flags and not flagged:
        raise InvalidRequest(
            f"{record.id[:8]} is marked {', '.join(record.flags)}",
            hint=f"`memd edit {record.id[:8]} …` replaces its text with your own words",
        )
