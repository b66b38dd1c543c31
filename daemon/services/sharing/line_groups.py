"""The operations that a group of another author's lines leads to (H2).

Invariants: nothing is written here; called on the write thread; the state of all shared records afterwards follows from
the set of lines, whatever their order and however they are split into groups; a record of this home is retired only by
an author whom the user trusts, else a proposal waits for the user; what an author who is not trusted says of a third
author's line waits until the user trusts him.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ....protocol.event import Origin
from ....protocol.instant import from_micros, micros
from ....protocol.operation import (
    Added,
    AnyOperation,
    ArrivedLine,
    ChangeProposed,
    Decision,
    Invalidated,
    SessionOpened,
    Shift,
)
from ....protocol.record import LIVE, TEAM, Record
from ....protocol.share import LineRefusal, Standing
from ....protocol.shared_lines import AddLine, GoneLine, InvLine, OtherLine, line_name
from ...projections.inbox import proposal_id
from ...projections.stores import Stores
from ..shared_belief import Invalidation, SharedBelief, document_of, is_invalidated, shared_id
from .rendering import revision, says_the_same
from .shared_records import ReadLine, record_of, status_of

INVALIDATED = "invalidated"
"""Label of a proposal to retire a record of this home because another author says so."""


class Author(msgspec.Struct, frozen=True):
    """The author of a partition, as memd shows him."""

    pool: str
    partition: str
    name: str
    standing: Standing


class LineGroup:
    """Some lines of one partition, and what follows from them. `now` in microseconds."""

    def __init__(self, stores: Stores, belief: SharedBelief, author: Author, now: int) -> None:
        self._stores, self._belief, self._author, self._now = stores, belief, author, now
        self._document = document_of(author.partition)
        self.operations: list[AnyOperation] = []
        self.lines: list[ArrivedLine] = []
        self.gone: list[int] = []
        self.refused: list[LineRefusal] = []
        self.after: list[Shift] = []
        self.review: tuple[tuple[str, bool], ...] = ()
        self.added = self.retired = self.proposed = self.waiting = 0
        self._records: dict[str, Record] = {}
        """Records as they are after this group, by id."""
        self._adds: dict[str, AddLine] = {}
        self._ids: dict[str, str] = {}
        """By name of a line: the id of the record that it adds."""
        self._invalidations: dict[str, list[Invalidation]] = {}

    def take(self, reads: Sequence[ReadLine]) -> None:
        """Find what follows from these lines."""
        self._open_session()
        tombstones = self._stores.forgotten.among((self._document, str(read.n)) for read in reads)
        for read in reads:
            self._sort(read, (self._document, str(read.n)) in tombstones)
        pool, partition = self._author.pool, self._author.partition
        self._ids = {name: shared_id(pool, partition, line.n) for name, line in self._adds.items()}
        known = self._stores.records.many(self._ids.values())
        for name, line in self._adds.items():
            self._add(line, known.get(self._ids[name]))
        for ref in dict.fromkeys((*self._stores.sharing.invalidated(pool, self._adds), *self._invalidations)):
            self._invalidate(ref)
        self.review = reviews(self._stores, self._belief, self._records, self._lamports())

    def _open_session(self) -> None:
        if self._stores.sources.session(self._document) is None:
            origin = Origin(
                host=TEAM,
                session=self._author.partition,
                live=False,
                title=f"shared by {self._author.name}",
                visibility="shared",
            )
            at = from_micros(self._now)
            self.operations.append(
                SessionOpened(document=self._document, origin=origin, project=self._author.pool, at=at)
            )

    def _sort(self, read: ReadLine, is_forgotten: bool) -> None:
        line = read.line
        match line:
            case None:
                self.refused.append(LineRefusal(read.n, read.why_not))
            case GoneLine():
                self.gone.append(read.n)
            case OtherLine():
                self.lines.append(ArrivedLine(read.n, 0, "other"))
            case InvLine():
                place = Invalidation(line.l, self._author.partition, line.n, line.until, line.why)
                self._invalidations.setdefault(line.id, []).append(place)
                self.lines.append(ArrivedLine(line.n, line.l, "inv", line.id, line.until, line.why))
            case AddLine():
                if is_forgotten:
                    self.lines.append(ArrivedLine(line.n, line.l, "other"))
                else:
                    self._adds[line_name(self._author.partition, line.n)] = line

    def _add(self, line: AddLine, known: Record | None) -> None:
        author = self._author
        supersedes = tuple(id for ref in line.of if (id := self._belief.id_of(ref)))
        record = record_of(line, author.pool, author.partition, author.name, self._now, supersedes)
        if known is not None and known.provenance.source != self._document:
            self.refused.append(LineRefusal(line.n, f"line {line.n} has the id of another record"))
            return
        self.lines.append(ArrivedLine(line.n, line.l, "add"))
        if known is None:
            record = msgspec.structs.replace(record, status=status_of(record, author.standing))
            decision = Decision(action="add", reason=f"shared by {author.name}")
            self.operations.append(Added(record=record, decision=decision))
            self.added += 1
        self._records[record.id] = known or record

    def _invalidate(self, ref: str) -> None:
        """Retire the record of a named line if a line invalidates it."""
        line = self._belief.invalidation(ref, self._invalidations.get(ref, ()))
        id = self._belief.id_of(ref)
        record = self._records.get(id) or (self._stores.records.get(id) if id else None)
        if record is None:
            self.waiting += ref in self._invalidations
        elif not record.is_team:
            self._invalidate_own(record, line, ref)
        elif line is None:
            return
        elif record.status == "retired" and record.valid_to != line.until and is_invalidated(self._stores, record):
            self.after.append(Shift(record.id, "retired", line.until, record.retired_at))
        elif record.status in LIVE or record.status == "archived":
            self._retire(record, line)

    def _retire(self, record: Record, line: Invalidation) -> None:
        self.operations.append(Invalidated(id=record.id, valid_to=line.until, reason=self._reason(line)))
        self._records[record.id] = msgspec.structs.replace(record, status="retired")
        self.retired += 1

    def _invalidate_own(self, record: Record, line: Invalidation | None, ref: str) -> None:
        if record.pool != self._author.pool:
            return
        if line is not None and may_retire(self._stores, self._belief, record, ref):
            self._retire(record, line)
            return
        against = next((self._belief.id_of(other) for other, add in self._adds.items() if ref in add.of), "")
        more = self._invalidations.get(ref, ())
        if proposal := proposed(self._stores, self._belief, record, ref, more, against, self._author):
            self.proposed += 1
            self.operations.append(proposal)

    def _reason(self, line: Invalidation) -> str:
        return self._belief.reason(line, self._author.name if line.partition == self._author.partition else "")

    def _lamports(self) -> dict[str, tuple[int, str, int]]:
        """Return the places of the lines of this group, by the id of their record."""
        partition = self._author.partition
        return {self._ids[name]: (line.l, partition, line.n) for name, line in self._adds.items()}


def may_retire(stores: Stores, belief: SharedBelief, record: Record, ref: str) -> bool:
    """Whether a trusted author's line retires a record of this home, which was shared as the line `ref`: not one that
    the user holds, or changed since; not after this home told the others that the line no longer holds."""
    if record.status not in LIVE or record.held or belief.is_taken_back(ref):
        return False
    return not _is_reworded(stores, record, ref)


def proposed(
    stores: Stores,
    belief: SharedBelief,
    record: Record,
    ref: str,
    more: Sequence[Invalidation] = (),
    against: str = "",
    author: Author | None = None,
) -> ChangeProposed | None:
    """Return the proposal to retire a record of this home, which was shared as the line `ref`, because another author's
    line invalidates it; None if there is no such line, or the user had the proposal already. `more`: lines of `author`
    that are not in the tables yet; `against`: the record that takes its place."""
    if record.status not in LIVE or belief.is_taken_back(ref):
        return None
    line = belief.invalidation(ref, more) or belief.untrusted(ref, more)
    if line is None:
        return None
    coming = author.name if author and author.partition == line.partition else ""
    id = proposal_id(record.id, against or line_name(line.partition, line.n))
    if stores.inbox.get(id) is not None:
        return None
    partner = belief.partners.get(line.partition)
    return ChangeProposed(
        id=id,
        what="conflict",
        record=record.id,
        against=against,
        document=document_of(line.partition),
        by=coming or (partner.name if partner else line.partition[:8]),
        label=INVALIDATED,
        reason=belief.reason(line, coming),
    )


def _is_reworded(stores: Stores, record: Record, ref: str) -> bool:
    """Whether the user changed a record since it was offered as a line: who invalidates the line did not know."""
    partition, _, number = ref.partition("/")
    offered = stores.sharing.own_line(partition, int(number))
    before = revision(stores, offered) if offered and offered.rev != record.rev else None
    return before is not None and not says_the_same(before, record)


def reviews(
    stores: Stores,
    belief: SharedBelief,
    changed: Mapping[str, Record | None],
    lamports: Mapping[str, tuple[int, str, int]] | None = None,
) -> tuple[tuple[str, bool], ...]:
    """Return the shared records whose mark for review changes, because a live record has their key with another value:
    one of this home, or else the latest by world time if all name theirs, by Lamport time, by partition.

    `changed`: records as the coming operations leave them, None for one that goes; `lamports`: the places of new lines.
    """
    marks: dict[str, bool] = {}
    keys = {(record.pool, record.key) for record in changed.values() if record and record.key and record.is_team}
    keys |= {(now.pool, now.key) for now in stores.records.many(changed).values() if now.key and now.is_team}
    for pool, key in keys:
        known: dict[str, Record | None] = {**stores.records.many(stores.records.ever(pool, key)), **changed}
        live = [r for r in known.values() if r and r.is_team and (r.pool, r.key) == (pool, key) and r.status in LIVE]
        holder = stores.records.get(stores.records.holding_key(pool, key))
        if holder is None and live:
            places = {record.id: (lamports or {}).get(record.id) or belief.lamport_of(record) for record in live}
            is_dated = all(record.valid_from for record in live)
            holder = max(live, key=lambda r: (micros(r.valid_from) if is_dated else 0, places[r.id]))
        for record in live:
            is_beaten = holder is not None and _said(record) != _said(holder)
            if record.needs_review != is_beaten:
                marks[record.id] = is_beaten
    return tuple(sorted(marks.items()))


def _said(record: Record) -> str:
    return (record.value or record.content).casefold()


def turns_of(partition: str, numbers: Iterable[int]) -> frozenset[tuple[str, str]]:
    """Return the turns that lines are."""
    return frozenset((document_of(partition), str(number)) for number in numbers)
