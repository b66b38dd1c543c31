"""The user's hand on time: how a record and a subject changed, what is right, what comes back (T1, T7).

Comes in: requests. Goes out: replies; `correct` and `restore` write, on the committer's thread. Invariants: a version
is the fold of the operations up to it, by the same step as everywhere; what is forgotten or hidden is in no version;
a correction retires the wrong record in the same entry that adds the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ....protocol.errors import InvalidRequest
from ....protocol.event import Origin, Reworded
from ....protocol.fading import Archived, Restored
from ....protocol.instant import micros
from ....protocol.lifetime import Correct, GetTimeline, History, RecordList, Version
from ....protocol.operation import Added, AnyOperation, Decision, Retirement, SessionClosed, SessionOpened, Updated
from ....protocol.record import LIVE, Record, record_id
from ....protocol.reply import Remembered
from ....stages.batch import PERSONAL
from ...forgetting_rules import Rules
from ...projections.record_reducer import apply, reason
from ...projections.stores import Stores
from ..access.access import ReadScope
from ..admission import admit
from ..outgoing_screen import shown
from ..statements import reworded

ALIKE = 0.3
"""The share of a subject's words that a record must hold to be in its timeline."""


class RecordHistory:
    """Reads and writes of one record's, or one subject's, history."""

    def __init__(self, stores: Stores, access: ReadScope, rules: Callable[[], Rules]) -> None:
        self._stores, self._access, self._rules = stores, access, rules

    def history(self, id: str) -> History:
        """Every version of a record. Raises NotFound."""
        now = self._stores.records.named(id)
        versions: list[Version] = []
        then: Record | None = None
        for seq in self._stores.sources.history(now.id):
            entry = self._stores.journal.get(seq)
            if entry is None:
                continue
            then = apply(then, now.id, entry)
            kind = str(entry.operation.__struct_config__.tag)
            if isinstance(entry.operation, Added | Updated) and entry.operation.record.id != now.id:
                kind = "retired"
            row = None if then is None or then.status == "hidden" else shown(then).record
            versions.append(Version(seq=seq, at=entry.at, kind=kind, why=reason(entry, now.id), record=row))
        return History(record=shown(self._stores.counters.with_signal(now)).record, versions=tuple(versions))

    def timeline(self, request: GetTimeline) -> RecordList:
        """What was true of a subject when. Raises InvalidRequest, NotFound."""
        subject = request.subject.strip()
        if not subject:
            raise InvalidRequest("a timeline of what?", hint='name a key or words: memd timeline "editor"')
        scope = self._access.scope(request.cwd, request.pools, request.repository)
        words, possible = self._stores.keywords.search(subject, scope, 4 * request.limit, past=True)
        ids = [id for id, score in words.items() if possible and score / possible >= ALIKE]
        keyed = [id for pool in scope for id in self._stores.records.ever(pool, subject)]
        found = self._stores.records.many(dict.fromkeys((*keyed, *ids))).values()
        rows = sorted((each for each in found if each.status != "hidden" and each.pool in scope), key=_began)
        kept = rows[: request.limit]
        records = tuple(shown(self._stores.counters.with_signal(each)).record for each in kept)
        return RecordList(records=records, left=len(rows) - len(kept))

    # --- on the committer's thread -----------------------------------------------------------------------------------
    def restore(self, ids: Sequence[str]) -> RecordList:
        """Archived records, by ids or beginnings, are believed again. Raises NotFound, InvalidRequest."""
        if not ids:
            raise InvalidRequest("restore what?", hint="`memd list --status archived` shows what there is")
        wanted = list(dict.fromkeys(self._stores.records.named(id).id for id in ids))
        back = self.reactivate(wanted, "asked")
        records = tuple(shown(each).record for each in self._stores.records.many(back).values())
        if not records:
            raise InvalidRequest(
                "nothing of that is archived", hint="`memd list --status archived` shows what is; see `memd history ID`"
            )
        return RecordList(records=records, left=len(wanted) - len(records))

    def reactivate(self, ids: Iterable[str], why: str = "recalled") -> tuple[str, ...]:
        """Those of these records that are archived come back (T7), unless a live record holds their key or stands for
        them; which ones did."""
        rules, stores = self._rules(), self._stores
        back: list[str] = []
        quarantined: list[str] = []
        for record in stores.records.many(ids).values():
            if record.status != "archived":
                continue
            holder = stores.keys.get(record.pool, record.key) if record.key else ""
            if holder and holder != record.id:
                continue
            back.append(record.id)
            if self._was_quarantined(record):
                quarantined.append(record.id)
        if back:
            restored = Restored(
                ids=tuple(back),
                why="recalled" if why == "recalled" else "asked",
                quarantined=tuple(quarantined),
                strength=rules.restored_strength,
                levels_down=rules.restored_levels_down,
                level_uses=rules.level_uses,
            )
            stores.commit([restored])
        return tuple(back)

    def _was_quarantined(self, record: Record) -> bool:
        """Whether a record was in quarantine when it was archived."""
        then: Record | None = None
        quarantined = False
        for seq in self._stores.sources.history(record.id):
            entry = self._stores.journal.get(seq)
            if entry is not None:
                if isinstance(entry.operation, Archived):
                    quarantined = then is not None and then.status == "quarantined"
                then = apply(then, record.id, entry)
        return quarantined

    def correct(self, request: Correct) -> Remembered:
        """The user's word against a record: it is retired, and what is right takes its place. Raises NotFound,
        InvalidRequest, TooLarge."""
        before = self._stores.records.named(request.id)
        if before.status not in (*LIVE, "archived"):
            by = self._stores.records.successor(before)
            hint = f"correct {by[:8]}, which replaced it" if by else "remember it anew"
            raise InvalidRequest(f"{before.id[:8]} is {before.status}", hint=hint)
        until = request.since
        if until and before.valid_from and micros(until) < micros(before.valid_from):
            raise InvalidRequest(
                f"{before.id[:8]} is only said to be true from {before.valid_from}", hint="give no time, or a later one"
            )
        origin = Origin(host="memd", session=f"corrections/{before.id}", live=False)
        event = Reworded(turn=f"{before.id}:{before.rev}", at=request.at, record=before.id, text=request.text)
        captured = admit(origin, event)
        id = record_id(before.pool, captured.document, captured.event.turn, 0, 0)
        self._stores.take([captured])
        operations: list[AnyOperation] = []
        if self._stores.sources.session(origin.document) is None:
            project = "" if before.pool == PERSONAL else before.pool
            opened = SessionOpened(document=origin.document, origin=origin, project=project, at=request.at)
            operations += [opened, SessionClosed(document=origin.document, at=request.at)]
        right = msgspec.structs.replace(
            reworded(before, captured),
            id=id,
            rev=1,
            learned_at=0,
            supersedes=(before.id,),
            superseded_by="",
            valid_from=until or before.valid_from,
            needs_review=False,
        )
        # one that was never true ends where it began
        retired = Retirement(before.id, until or before.valid_from, "corrected by the user")
        decision = Decision(action="add", reason="the user said that the record before is wrong")
        self._stores.commit([*operations, Added(record=right, retires=(retired,), decision=decision)])
        found = self._stores.records.get(id)
        assert found is not None
        return Remembered(record=found)


def _began(record: Record) -> tuple[int, int]:
    return micros(record.valid_from or record.provenance.said_at), record.learned_at
