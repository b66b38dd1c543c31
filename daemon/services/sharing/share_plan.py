"""What a shared project has to tell the others next: the difference between the records and the own lines (W7, G7).

Invariants: the plan follows from the stores alone; it holds only lines that add and lines that invalidate; a record
leaves only after the user's word, for it or for its session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple

import msgspec

from ....protocol.fading import Archived, Counted, FeedbackGiven, Released, Restored, Reviewed, Slept
from ....protocol.operation import (
    Added,
    AnyOperation,
    Arrived,
    AuthorJudged,
    ChangeDecided,
    ChangeProposed,
    Checkpoint,
    Delivered,
    Distilled,
    Invalidated,
    Merged,
    Moved,
    Offered,
    Pinned,
    PoolOpened,
    RecordJudged,
    RemoteConsented,
    RemoteReserved,
    RemoteSettled,
    Retried,
    SessionClosed,
    SessionOpened,
    SessionResumed,
    ShareChosen,
    ShareLeased,
    Updated,
)
from ....protocol.record import LIVE, Record, is_team_document, learning_order
from ....protocol.share import OUTBOX_HOURS
from ....protocol.shared_lines import line_name
from ...projections.record_reducer import touched
from ...projections.sharing import LineRef, ShareEntry
from ...projections.stores import Stores
from ..shared_belief import name_of
from .gate import ShareGate, is_from_team
from .rendering import revision, says_the_same

OUTBOX_MICROS = OUTBOX_HOURS * 3600 * 1_000_000
FEW = 1_000
"""Operations after which a plan of few records is made anew: reading them takes longer."""


class PlannedLine(NamedTuple):
    """A line to come. `record`: the one that an `add` is rendered from; `ref`: the line that an `inv` names; `due`:
    microseconds, 0 for the next push; `why_not`: why it stays here all the same."""

    what: Literal["add", "inv"]
    id: str
    record: Record | None = None
    ref: str = ""
    of: tuple[str, ...] = ()
    until: str = ""
    due: int = 0
    why_not: str = ""


class _Place(NamedTuple):
    """Where the lines of a record stand in the plan: those that follow a line of its come first."""

    is_new: bool
    first: int
    second: int | str


class _Undecided(NamedTuple):
    learned_at: int
    why_not: str


class _PoolPlan:
    """The plan of one pool as of operation `seq`, by the id of the record. `frame`: what of the share it holds for."""

    def __init__(self, seq: int, frame: bytes) -> None:
        self.seq, self.frame = seq, frame
        self.ids: set[str] = set()
        self.steps: dict[str, tuple[_Place, tuple[PlannedLine, ...]]] = {}
        self.undecided: dict[str, _Undecided] = {}
        self.forgotten: tuple[tuple[int, int], int] | None = None
        """The lines that become gone, for a count of lines delivered and gone; forgetting makes the plan anew."""


_WITHOUT_EFFECT = (
    *(Checkpoint, ChangeProposed, ChangeDecided, Counted, Delivered, Distilled, FeedbackGiven, PoolOpened),
    *(RemoteConsented, RemoteReserved, RemoteSettled, Retried, SessionClosed, SessionResumed, ShareLeased, Slept),
)
_OF_RECORDS = (
    *(Added, Archived, Arrived, AuthorJudged, Invalidated, Merged, Moved, Pinned, RecordJudged, Released, Restored),
    *(Reviewed, Updated),
)


class SharePlan:
    """Computes the plan of a project: at first from all records, later from those that an operation changed."""

    def __init__(self, stores: Stores, gate: ShareGate) -> None:
        self._stores, self._gate = stores, gate
        self._plans: dict[str, _PoolPlan] = {}

    def steps(self, entry: ShareEntry) -> tuple[PlannedLine, ...]:
        """Return all lines to come, due or not, and those that are held."""
        if not entry.is_open:
            return ()
        return tuple(step for _, steps in sorted(self._plan(entry).steps.values(), key=_place_of) for step in steps)

    def waiting(self, entry: ShareEntry) -> int:
        """Return the number of records that have lines to come."""
        return len(self._plan(entry).steps) if entry.is_open else 0

    def undecided(self, entry: ShareEntry) -> tuple[tuple[str, str], ...]:
        """Return the ids of the live records that the user has not decided on, newest first, each with why it may not
        go."""
        if not entry.is_open:
            return ()
        plan = self._plan(entry).undecided
        newest = sorted(plan, key=lambda id: (plan[id].learned_at, id), reverse=True)
        return tuple((id, plan[id].why_not) for id in newest)

    def forgotten(self, entry: ShareEntry) -> int:
        """Return the number of lines that the others have and that become gone with the next push."""
        delivered = entry.delivered
        if delivered is None:
            return 0
        if not entry.is_open:
            return self._forgotten(entry, delivered)
        plan, key = self._plan(entry), (delivered.count, delivered.gone)
        if plan.forgotten is None or plan.forgotten[0] != key:
            plan.forgotten = key, self._forgotten(entry, delivered)
        return plan.forgotten[1]

    def _forgotten(self, entry: ShareEntry, delivered: Delivered) -> int:
        lines, records = self._stores.sharing.own_lines(entry.opened.partition)[: delivered.count], self._stores.records
        absent = (entry.withdraw or (line.what == "add" and records.get(line.id) is None) for line in lines)
        return max(0, sum(absent) - delivered.gone)

    # --- keeping up --------------------------------------------------------------------------------------------------
    def _plan(self, entry: ShareEntry) -> _PoolPlan:
        pool, seq = entry.opened.pool, self._stores.tables.applied_seq
        frame = msgspec.msgpack.encode((entry.opened, entry.partitions, entry.first, entry.past, entry.whole_since))
        plan = self._plans.get(pool)
        changed = self._changed(plan, entry, seq) if plan is not None and plan.frame == frame else None
        if plan is None or changed is None:
            plan = self._plans[pool] = _PoolPlan(seq, frame)
            changed = self._all(entry)
        for id in changed:
            self._settle(plan, entry, id)
        plan.seq = seq
        return plan

    def _all(self, entry: ShareEntry) -> Iterable[str]:
        sharing, pool = self._stores.sharing, entry.opened.pool
        told = [line.id for name in entry.told for line in sharing.own_lines(name) if line.what == "add"]
        return dict.fromkeys((*told, *sharing.choices(entry), *self._stores.records.own_in_pool(pool)))

    def _changed(self, plan: _PoolPlan, entry: ShareEntry, seq: int) -> set[str] | None:
        """Return the records whose lines may have changed since the plan was made, None for all."""
        if seq - plan.seq > max(FEW, len(plan.ids)):
            return None
        ids: set[str] = set()
        for logged in islice(self._stores.journal.read(plan.seq), seq - plan.seq):
            some = self._touched(entry, logged.operation)
            if some is None:
                return None
            ids.update(some)
        return ids

    def _touched(self, entry: ShareEntry, operation: AnyOperation) -> Iterable[str] | None:
        """Return the records whose lines an operation may change, None for all."""
        match operation:
            case Added(record=record) if record.is_team:
                return ()
            case _ if isinstance(operation, _OF_RECORDS):
                return touched(operation)
            case SessionOpened(document=document):
                return () if is_team_document(document) else self._stores.records.citing(document)
            case ShareChosen(ids=ids):
                return ids
            case Offered(what="add", id=id):
                return (id,)
            case Offered(ref=ref):
                return self._told_by(entry, (ref,))
            case _:
                return () if isinstance(operation, _WITHOUT_EFFECT) else None

    def _told_by(self, entry: ShareEntry, refs: Iterable[str]) -> Iterator[str]:
        """Yield the records that own lines with these names add."""
        for ref in refs:
            partition, _, number = ref.partition("/")
            if partition in entry.partitions and (line := self._stores.sharing.own_line(partition, int(number))):
                yield line.id

    # --- one record --------------------------------------------------------------------------------------------------
    def _settle(self, plan: _PoolPlan, entry: ShareEntry, id: str) -> None:
        """Plan the lines of a record anew."""
        plan.steps.pop(id, None)
        plan.undecided.pop(id, None)
        plan.ids.discard(id)
        record, pool = self._stores.records.get(id), entry.opened.pool
        choice, told = self._stores.sharing.choice(entry, id), self._told(entry, id)
        if told:
            place, steps = told[0][0], tuple(self._after(entry, told[-1][1], record, choice is not False))
        elif record is not None and record.pool == pool:
            place, steps = _Place(True, *learning_order(record)), tuple(self._first(entry, record, choice))
            is_open = record.status in LIVE and choice is None
            if is_open and not (is_from_team(record) or self._goes_by_itself(entry, record)):
                plan.undecided[id] = _Undecided(record.learned_at, self._gate.why_not(record, pool))
        else:
            return
        plan.ids.add(id)
        if steps:
            plan.steps[id] = place, steps

    def _told(self, entry: ShareEntry, id: str) -> list[tuple[_Place, Offered]]:
        """Return the own lines that add a record and that the others have, or get with the next push, in order."""
        told: list[tuple[_Place, Offered]] = []
        for line in self._stores.sharing.lines_of(id):
            if self._is_told(entry, line) and (offered := self._stores.sharing.own_line(line.partition, line.n)):
                told.append((_Place(False, entry.partitions.index(line.partition), line.n), offered))
        return sorted(told, key=_place_of)

    def _is_told(self, entry: ShareEntry, line: LineRef) -> bool:
        """Whether an own line is of the present partition, or was delivered with an earlier one."""
        partition = line.partition
        is_present = partition == entry.opened.partition
        return partition in entry.told and (is_present or line.n < entry.past.get(partition, 0))

    def _after(
        self, entry: ShareEntry, offered: Offered, record: Record | None, is_wanted: bool
    ) -> Iterator[PlannedLine]:
        """Yield the lines that follow one that the others have; a forgotten record needs none."""
        if record is None:
            return
        ref = line_name(offered.partition, offered.n)
        lines = self._stores.sharing.invalidating(entry.opened.pool, ref)
        is_invalidated = any(self._is_told(entry, line) for line in lines)
        is_archived = record.status == "archived"  # by its age, which concerns this home alone
        judged = msgspec.structs.replace(record, status="active") if is_archived else record
        if not is_wanted or self._gate.why_not(judged, entry.opened.pool):
            if not is_invalidated:
                yield PlannedLine("inv", record.id, ref=ref, until=_until(record))
        elif not is_archived:
            yield from self._anew(offered, record, ref, is_invalidated)

    def _anew(self, offered: Offered, record: Record, ref: str, is_invalidated: bool) -> Iterator[PlannedLine]:
        """Yield the lines that tell a changed record, or one that came back, anew."""
        if record.rev == offered.rev and not is_invalidated:
            return
        before = revision(self._stores, offered)
        if before is None:
            yield PlannedLine("add", record.id, record)
        elif is_invalidated:
            yield PlannedLine("add", record.id, record, of=(ref,))
        elif not says_the_same(before, record):
            yield PlannedLine("inv", record.id, ref=ref)
            yield PlannedLine("add", record.id, record, of=(ref,))

    def _first(self, entry: ShareEntry, record: Record, choice: bool | None) -> Iterator[PlannedLine]:
        """Yield the line of a record that the others do not have."""
        if choice is False or record.status == "retired":
            return
        if choice is None and not (record.status == "active" and self._goes_by_itself(entry, record)):
            return
        why_not = self._gate.why_not(record, entry.opened.pool)
        if why_not and not choice:
            return
        due = 0 if choice else record.learned_at + OUTBOX_MICROS
        right = tuple(self._put_right(entry, record))
        for ref in right:
            lines = self._stores.sharing.invalidating(entry.opened.pool, ref)
            if not (why_not or any(self._is_told(entry, line) for line in lines)):
                yield PlannedLine("inv", record.id, ref=ref, due=due)
        yield PlannedLine("add", record.id, record, of=right, due=due, why_not=why_not)

    def _put_right(self, entry: ShareEntry, record: Record) -> Iterator[str]:
        """Yield the names of the lines of other authors whose records the user corrected with this one."""
        for before in self._stores.records.many(record.supersedes).values():
            if before.pool == entry.opened.pool and before.is_shared and self._is_heard_there(entry, before):
                yield name_of(before)

    def _is_heard_there(self, entry: ShareEntry, record: Record) -> bool:
        """Whether the record of another author came the way by which it would go."""
        partner = self._stores.sharing.partner(record.pool, record.provenance.source.partition(":")[2])
        return partner is not None and partner.hub == entry.hub

    def _goes_by_itself(self, entry: ShareEntry, record: Record) -> bool:
        """Whether a record is of sessions that are shared as a whole, and memd learnt it since the user said so."""
        return 0 < entry.whole_since <= record.learned_at and self._gate.is_shared_whole(record)


def _until(record: Record) -> str:
    return record.valid_to if record.status == "retired" else ""


def _place_of(row: tuple[_Place, object]) -> _Place:
    return row[0]
