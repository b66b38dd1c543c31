"""Takes the new lines of a partition that memd accepted: groups of lines, then those that became gone (H2, T10)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import msgspec

from ....protocol.errors import Unavailable
from ....protocol.operation import AnyOperation, Arrived, Shift
from ....protocol.partition_acceptance import Accepted
from ....protocol.record import Record
from ....protocol.share import LineRefusal, PartitionTaken
from ....protocol.shared_lines import SEGMENT, ShareHead, line_hash, segment_hash
from ...failpoint import reach
from ...projections.sharing import PartnerEntry, TakenLine
from ...projections.stores import Stores
from ...world import World
from ..shared_belief import SharedBelief, is_invalidated, shared_id
from ..write_thread import Writer
from .line_groups import Author, LineGroup, reviews, turns_of
from .shared_records import ReadLine, read_line
from .standings import revived

FEW = 16
"""Lines of the first commit, and of those while captures arrive, because these wait; else each has twice as many."""

REST = 2
"""Pause after a commit while captures arrive, as a multiple of the commit: p99 of a capture 3.2 → 1.9 x that without a
pull, lines a second 990 → 450."""

ForgetLines = Callable[[frozenset[tuple[str, str]], Sequence[AnyOperation]], None]
"""Forgets turns, in one commit with operations."""


class Taking:
    """One request's part of a partition."""

    def __init__(
        self,
        stores: Stores,
        world: World,
        author: Author,
        head: ShareHead,
        partner: PartnerEntry | None,
        accepted: Accepted,
        hashes: Sequence[bytes] = (),
    ) -> None:
        """`hashes`: of the segments before, as far as they are known."""
        self._stores, self._now, self._author, self._head = stores, world.now(), author, head
        self._monotonic = world.monotonic
        self._before = partner or PartnerEntry(pool=author.pool, partition=author.partition, epoch=head.epoch)
        self._is_known, self._accepted, self._hashes = partner is not None, accepted, hashes
        self._reads = [
            read_line(raw, number, head.lamport) for number, raw in enumerate(accepted.fresh, self._before.count)
        ]

    def tried(self) -> PartitionTaken:
        """Return what `run` would do."""
        group = self._group(self._reads)
        return self._reply([group])

    def run(self, writer: Writer, forget: ForgetLines) -> PartitionTaken:
        """Commit everything. Raises StorageFull, Unavailable."""
        groups: list[LineGroup] = []
        reads, size, captured = self._reads, FEW, self._stores.archive.last
        while reads:
            size = min(size, SEGMENT - reads[0].n % SEGMENT)  # a group counts the lines of one segment
            group, reads = reads[:size], reads[size:]
            began = self._monotonic()
            groups.append(writer.run(lambda group=group: self._commit(group)).result())
            before, captured = captured, self._stores.archive.last
            size = FEW if captured > before else 2 * size
            if captured > before:
                threading.Event().wait(REST * (self._monotonic() - began))
        self._finish(writer, forget)
        return self._reply(groups)

    def _reply(self, groups: Sequence[LineGroup]) -> PartitionTaken:
        refused: list[LineRefusal] = [refusal for group in groups for refusal in group.refused]
        return PartitionTaken(
            partition=self._author.partition,
            name=self._author.name,
            standing=self._author.standing,
            added=sum(group.added for group in groups),
            retired=sum(group.retired for group in groups),
            proposed=sum(group.proposed for group in groups),
            forgotten=len(self._accepted.gone),
            waiting=sum(group.waiting for group in groups),
            refused=tuple(refused),
            left=self._accepted.left,
            wanted=self._accepted.wanted,
            closed=self._head.closed,
        )

    # --- lines ---------------------------------------------------------------------------------------------------
    def _group(self, reads: Sequence[ReadLine]) -> LineGroup:
        group = LineGroup(self._stores, self._belief(), self._author, self._now)
        group.take(reads)
        return group

    def _belief(self) -> SharedBelief:
        return SharedBelief(self._stores, self._author.pool)

    def _commit(self, reads: Sequence[ReadLine]) -> LineGroup:
        """Commit a group with the count of its lines. On the write thread."""
        now = self._stores.sharing.partner(self._author.pool, self._author.partition)
        if (now.count if now else self._before.count) != reads[0].n:
            raise Unavailable("another request takes this partition", hint="pull again")
        group, end = self._group(reads), reads[-1].n + 1
        place = reads[0].n // SEGMENT
        lines = self._accepted.lines[place][: end - place * SEGMENT]
        arrived = Arrived(
            pool=self._author.pool,
            partition=self._author.partition,
            name=self._author.name,
            epoch=self._before.epoch,
            count=end,
            lamport=max((line.lamport for line in group.lines), default=0),
            closed=self._before.closed,
            segments=(*self._earlier(now, place), (place, segment_hash(map(line_hash, lines)))),
            lines=tuple(group.lines),
            gone=tuple(group.gone),
            refused=tuple((refusal.n, refusal.why) for refusal in group.refused),
            after=tuple(group.after),
            review=group.review,
        )
        self._stores.commit([*group.operations, arrived])
        reach("share:journalled")
        return group

    def _earlier(self, now: PartnerEntry | None, place: int) -> tuple[tuple[int, bytes], ...]:
        """Return the first segments, up to a number, if nothing of the partition was taken: this home wrote them."""
        return () if now else tuple(enumerate(self._hashes[:place]))

    # --- what became gone ----------------------------------------------------------------------------------------
    def _finish(self, writer: Writer, forget: ForgetLines) -> None:
        """Forget the lines that became gone, and note the head's state once all of it is read."""
        accepted, before, head, author = self._accepted, self._before, self._head, self._author
        after, review = self._without_gone() if accepted.gone else ((), ())
        arrived = Arrived(
            pool=author.pool,
            partition=author.partition,
            name=author.name,
            epoch=head.epoch if accepted.is_whole else before.epoch,
            count=before.count + len(accepted.fresh),
            closed=before.closed if accepted.left else head.closed,
            segments=self._earlier(self._stores.sharing.partner(author.pool, author.partition), len(self._hashes)),
            gone=accepted.gone,
            after=after,
            review=review,
        )
        if accepted.gone:
            forget(turns_of(author.partition, accepted.gone), [arrived])
            reach("share:journalled")
            return
        noted = (before.epoch, before.closed, before.name if not accepted.fresh else author.name)
        is_same = noted == (arrived.epoch, arrived.closed, author.name) and not (before.problem and not accepted.fresh)
        if not is_same or not (self._is_known or accepted.fresh):
            writer.run(lambda: self._stores.commit([arrived])).result()

    def _without_gone(self) -> tuple[tuple[Shift, ...], tuple[tuple[str, bool], ...]]:
        """Return the states and marks for review of records that change because lines become gone."""
        pool, partition = self._author.pool, self._author.partition
        belief, less = self._belief(), {(partition, number) for number in self._accepted.gone}
        refs = {taken.line.ref for number in self._accepted.gone if (taken := self._taken(number)) and taken.line.ref}
        changed: dict[str, Record | None] = {shared_id(pool, partition, number): None for number in self._accepted.gone}
        shifts: list[Shift] = []
        for ref in sorted(refs):
            record = self._stores.records.get(belief.id_of(ref))
            if record is None or record.id in changed or belief.invalidation(ref, less=less) is not None:
                continue
            if is_invalidated(self._stores, record):
                shift = revived(self._stores, record, belief)
                changed[record.id] = msgspec.structs.replace(record, status=shift.status)
                shifts.append(shift)
        return tuple(shifts), reviews(self._stores, belief, changed)

    def _taken(self, number: int) -> TakenLine | None:
        return self._stores.sharing.taken(self._author.pool, self._author.partition, number)
