"""What other authors of a shared project say: their lines become operations of the journal (H2).

Invariants: lines are committed in groups, each with the `arrived` operation that counts them, so that a kill between
two groups loses nothing and takes nothing twice; a partition that memd refuses changes nothing but its problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.instant import from_micros
from ....protocol.operation import Arrived, Invalidated
from ....protocol.partition_acceptance import KnownPartition, accept
from ....protocol.record import LIVE, TEAM, Record
from ....protocol.share import (
    AuthorState,
    DisputeRecords,
    GetShareLog,
    JudgeAuthor,
    Outbox,
    OutboxItem,
    PartitionTaken,
    ShareEvent,
    ShareLog,
    TakePartition,
)
from ....protocol.shared_lines import MalformedShare, ShareHead, decode_head, verified_head
from ...projections.sharing import PartnerEntry, ShareEntry
from ..core import Core
from ..outgoing_screen import without_secrets
from ..shared_belief import SharedBelief, document_of, name_of, shared_id
from ..write_thread import Writer
from .line_groups import Author
from .rendering import segment_hashes
from .shared_records import author_name
from .standings import judged
from .taking import ForgetLines, Taking

PARTITIONS, HUB_PARTITIONS = 64, 1_000
"""Most partitions of other authors in a pool; more where a hub grants who may write."""

OTHER_COPY = "you, other copy"
"""Name of a device that goes on under the key of this home, because one is a copy of the other."""

OWN = "it is your own partition: there is nothing to take"
REVOKED = "you revoked this author as a source: `memd grant --back --source` shows the records again"
ELSEWHERE = "memd takes this partition into another project"
WITHHELD = "the hub's lease has ended, or the hub shows this author to nobody: `memd hub sync`"
FORGOTTEN = "you forgot everything of this author"
TOO_MANY = "the project has {:,} partitions already"

SayInvalid = Callable[[str, str, str, str], None]
"""Says with the next push that a line does not hold: pool, name of the line, until when it did, why."""


class Arrivals:
    """Checks partitions, and commits what they say. Called on the slow lane, so one request at a time."""

    def __init__(self, core: Core, writer: Writer, forget: ForgetLines, say_invalid: SayInvalid) -> None:
        self._stores, self._directory, self._world = core.stores, core.directory, core.world
        self._writer, self._forget, self._say_invalid = writer, forget, say_invalid
        self._seen: dict[tuple[str, str], tuple[int, frozenset[int]]] = {}
        """By pool and partition: the segments that memd has read in an epoch whose gone lines it looks for."""
        self._problems: dict[tuple[str, str], AuthorState] = {}
        """By pool and partition: those that memd refused and has nothing of."""

    # --- taking --------------------------------------------------------------------------------------------------
    def take(self, request: TakePartition) -> PartitionTaken:
        """Take what is new in a partition, as far as it came. Raises NotFound, InvalidRequest, Unavailable."""
        share = self._share(request.pool)
        try:
            head = decode_head(request.head)
        except MalformedShare as error:
            return PartitionTaken(partition="", problem=str(error))
        pool, partition = share.opened.pool, head.partition
        partner = self._stores.sharing.partner(pool, partition)
        if ignored := self._ignored(share, head, request.hashes, partner):
            return PartitionTaken(partition=partition, problem=ignored)
        try:
            verified_head(request.head)
            known = self._known(share, head, partner)
            accepted = accept(known, head, request.hashes, request.segments, self._marks(share))
        except MalformedShare as error:
            return self._refuse(pool, head, partner, str(error), request.dry_run)
        self._problems.pop((pool, partition), None)
        name, standing = author_name(head.name, partition), partner.standing if partner else "new"
        if partition in share.partitions:
            name = OTHER_COPY
            partner = partner or PartnerEntry(pool=pool, partition=partition, epoch=known.epoch, count=known.count)
        author = Author(pool, partition, name, standing)
        taking = Taking(self._stores, self._world, author, head, partner, accepted, known.hashes)
        if request.dry_run:
            return taking.tried()
        reply = taking.run(self._writer, self._forget)
        if accepted.is_whole:
            self._seen.pop((pool, partition), None)
        else:
            self._seen[pool, partition] = (head.epoch, accepted.seen)
        return reply

    def _share(self, name: str) -> ShareEntry:
        pool = self._directory.named(name)
        share = self._stores.sharing.share(pool)
        if share is None or not share.is_open:
            raise InvalidRequest(f"{self._directory.title(pool) or pool} is not shared", hint="memd share on")
        return share

    def _ignored(
        self, share: ShareEntry, head: ShareHead, hashes: Sequence[bytes], partner: PartnerEntry | None
    ) -> str:
        """Return why memd takes nothing of a partition, whatever it says; "" if it does."""
        pool, document = share.opened.pool, document_of(head.partition)
        if self._is_own(share, head, hashes):
            return OWN
        if {TEAM, document} & {entry.source for entry in self._stores.grants.sources()}:
            return REVOKED
        if self._stores.forgotten.names(document):
            return FORGOTTEN
        if partner is not None and partner.withheld:
            return WITHHELD
        session = self._stores.sources.session(document)
        if session is not None and session.opened.project != pool:
            return ELSEWHERE
        most = HUB_PARTITIONS if share.hub else PARTITIONS
        is_full = partner is None and len(self._stores.sharing.partners(pool)) >= most
        return TOO_MANY.format(most) if is_full else ""

    def _is_own(self, share: ShareEntry, head: ShareHead, hashes: Sequence[bytes]) -> bool:
        """Whether this home wrote a partition, or all of its lines: another device may go on under the key of an
        earlier one."""
        partition = head.partition
        if partition not in share.partitions:
            return any(partition in entry.partitions for entry in self._stores.sharing.shares())
        if partition == share.opened.partition:
            return True
        lines = self._stores.sharing.own_lines(partition)
        return head.count <= len(lines) and segment_hashes(lines[: head.count]) == [*hashes]

    def _known(self, share: ShareEntry, head: ShareHead, partner: PartnerEntry | None) -> KnownPartition:
        sharing, pool, partition = self._stores.sharing, share.opened.pool, head.partition
        own = share.past.get(partition, 0)
        if partner is None:
            return KnownPartition(count=own, hashes=segment_hashes(sharing.own_lines(partition)[:own]), own=own)

        def was_gone(number: int) -> bool:
            taken = sharing.taken(pool, partition, number)
            return taken is not None and taken.gone

        epoch, seen = self._seen.get((pool, partition), (0, frozenset[int]()))
        read = seen if epoch == head.epoch else frozenset[int]()
        return KnownPartition(partner.epoch, partner.count, sharing.segments(pool, partition), was_gone, read, own)

    def _marks(self, share: ShareEntry) -> frozenset[str]:
        """Return the names of a project's repository; of a pool that a hub carries its name there alone: who wrote for
        the repository did not write for the hub."""
        opened = share.opened
        if share.hub:
            return frozenset({share.audience})
        pools = self._stores.aliases.joined(opened.pool)
        names = {alias.name for pool in pools for alias in self._stores.aliases.of_pool(pool)}
        return frozenset({*names, share.audience})

    def _refuse(
        self, pool: str, head: ShareHead, partner: PartnerEntry | None, problem: str, dry_run: bool
    ) -> PartitionTaken:
        """Note a refused partition: in the journal if memd has lines of it, once for each problem."""
        partition = head.partition
        if partner is None:
            if len(self._problems) >= PARTITIONS:
                self._problems.clear()
            name = author_name(head.name, partition)
            self._problems[pool, partition] = AuthorState(partition=partition, name=name, problem=problem)
            return PartitionTaken(partition=partition, name=name, problem=problem)
        if partner.problem != problem and not dry_run:
            noted = Arrived(
                pool=pool,
                partition=partition,
                name=partner.name,
                epoch=partner.epoch,
                count=partner.count,
                problem=problem,
            )
            self._writer.run(lambda: self._stores.commit([noted])).result()
        return PartitionTaken(partition=partition, name=partner.name, standing=partner.standing, problem=problem)

    # --- what the user says ----------------------------------------------------------------------------------------
    def judge(self, request: JudgeAuthor) -> ShareEntry:
        """Trust or mute an author, or take that back. Raises NotFound, InvalidRequest."""
        share = self._share(request.pool)
        partner = self._named(share.opened.pool, request.author)

        def work() -> None:
            now = self._stores.sharing.partner(partner.pool, partner.partition) or partner
            if now.standing != request.standing:
                self._stores.commit(judged(self._stores, now, request.standing, self._world.now()))

        self._writer.run(work).result()
        return self._stores.sharing.share(share.opened.pool) or share

    def _named(self, pool: str, author: str) -> PartnerEntry:
        partners, name = self._stores.sharing.partners(pool), author.strip()
        exact = [partner for partner in partners if partner.name.casefold() == name.casefold()]
        matches = exact or [partner for partner in partners if name and partner.partition.startswith(name.lower())]
        if len(matches) == 1:
            return matches[0]
        if matches:
            few = ", ".join(partner.partition[:8] for partner in matches[:10])
            raise NotFound(f"several authors match {author!r}", hint=f"give the beginning of a partition: {few}")
        names = ", ".join(f"{partner.name} ({partner.partition[:8]})" for partner in partners[:10])
        raise NotFound(f"no author {author!r}", hint=f"there are: {names}" if names else "memd share pull")

    def dispute(self, request: DisputeRecords) -> Outbox:
        """Retire other authors' records, and tell everybody. Raises NotFound, InvalidRequest."""
        records = {record.id: record for record in map(self._stores.records.named, request.ids)}
        for record in records.values():
            if record.is_from_patch:
                raise InvalidRequest(
                    f"{record.id[:8]} came with a patch", hint="a patch that deprecates it tells everybody"
                )
            if not record.is_team:
                raise InvalidRequest(f"{record.id[:8]} is your own record", hint=f"memd reject {record.id[:8]}")
        why = without_secrets(" ".join(request.why.split()))
        before = {record.id: self._why_no_change(record) for record in records.values()}
        live = [record for record in records.values() if record.status in LIVE]
        reason = f"you told everybody that it is wrong{f': {why}' if why else ''}"
        operations = [Invalidated(id=record.id, valid_to="", reason=reason) for record in live]
        if operations:
            self._writer.run(lambda: self._stores.commit(operations)).result()
        for record in records.values():
            self._say_invalid(record.pool, name_of(record), "", why)
        lines = {record.id: {"id": name_of(record), "op": "inv", "why": why} for record in records.values()}
        return Outbox(
            items=tuple(
                OutboxItem(id=id, line=msgspec.json.encode(line).decode(), why_not=before[id])
                for id, line in lines.items()
            )
        )

    def _why_no_change(self, record: Record) -> str:
        """Return why a dispute changes nothing here, "" if it does."""
        if SharedBelief(self._stores, record.pool).is_taken_back(name_of(record)):
            return "you told everybody before"
        if record.status == "retired":
            return "it was retired here before; others learn it with your next push all the same"
        return "" if record.status in LIVE else f"it is {record.status} here; others learn it with your next push"

    # --- reads ---------------------------------------------------------------------------------------------------
    def authors(self, entry: ShareEntry) -> tuple[AuthorState, ...]:
        """Return the own partition, those of the others, and the own ones of earlier: nothing of them is taken."""
        opened, pool = entry.opened, entry.opened.pool
        own = AuthorState(partition=opened.partition, name=opened.name, standing="trusted", lines=entry.count, own=True)
        belief, invalidations = SharedBelief(self._stores, pool), self._stores.sharing.invalidations(pool)
        others = [
            self._state(partner, *self._waiting(belief, partner, invalidations.get(partner.partition, ())))
            for partner in belief.partners.values()
        ]
        refused = [state for (place, _), state in self._problems.items() if place == pool]
        earlier = [
            AuthorState(partition=name, name=opened.name, standing="trusted", lines=entry.past.get(name, 0), own=True)
            for name in entry.partitions
            if name != opened.partition and name not in belief.partners
        ]
        return (own, *earlier, *sorted((*others, *refused), key=lambda state: (state.name.casefold(), state.partition)))

    def _waiting(self, belief: SharedBelief, partner: PartnerEntry, numbers: Iterable[int]) -> tuple[int, int]:
        """Return how many lines that an author invalidates have not come, and how many live records of other authors
        the user's trust would retire."""
        taken = (self._stores.sharing.taken(partner.pool, partner.partition, number) for number in numbers)
        refs = dict.fromkeys(row.line.ref for row in taken if row is not None and not row.gone)
        ids = {ref: id for ref in refs if (id := belief.id_of(ref))}
        records = self._stores.records.many(set(ids.values()))
        waiting = sum(id not in records for id in ids.values())
        if partner.standing != "new":
            return waiting, 0
        others = (records.get(id) for ref, id in ids.items() if ref.partition("/")[0] != partner.partition)
        return waiting, sum(record is not None and record.is_team and record.status in LIVE for record in others)

    def _state(self, partner: PartnerEntry, waiting: int, untrusted: int) -> AuthorState:
        return AuthorState(
            partition=partner.partition,
            name=partner.name,
            standing=partner.standing,
            epoch=partner.epoch,
            lines=partner.count,
            live=self._stores.records.live_of(document_of(partner.partition)),
            waiting=waiting,
            untrusted=untrusted,
            refused=partner.refused,
            problem=partner.problem,
            taken_at=partner.taken_at,
            closed=partner.closed,
        )

    def log(self, request: GetShareLog) -> ShareLog:
        """Return the lines that came and that were sent, newest first. Raises NotFound, InvalidRequest."""
        pool = self._directory.named(request.pool)
        share = self._stores.sharing.share(pool)
        if share is None:
            raise InvalidRequest(f"{self._directory.title(pool) or pool} is not shared", hint="memd share on")
        partition = self._author(share, request.author) if request.author else ""
        events = [event for event in self._events(share) if partition in ("", event.partition)]
        events.sort(key=lambda event: (event.at, event.partition, event.n), reverse=True)
        shown = tuple(self._with_text(event) for event in events[: request.limit])
        return ShareLog(events=shown, left=len(events) - len(shown))

    def _author(self, share: ShareEntry, author: str) -> str:
        opened = share.opened
        is_own = opened.name.casefold() == author.strip().casefold() or opened.partition.startswith(author.strip())
        return opened.partition if is_own else self._named(opened.pool, author).partition

    def _events(self, share: ShareEntry) -> list[ShareEvent]:
        sharing, pool = self._stores.sharing, share.opened.pool
        events: list[ShareEvent] = []
        belief, name = SharedBelief(self._stores, pool), share.opened.name
        for partition in share.partitions:
            for own in sharing.own_lines(partition):
                id, why = own.id or belief.id_of(own.ref), without_secrets(own.why)
                events.append(
                    ShareEvent(
                        at=from_micros(own.at), author=name, partition=partition, n=own.n, what=own.what, id=id, why=why
                    )
                )
        for partner in sharing.partners(pool):
            partition = partner.partition
            for taken in sharing.all_taken(pool, partition):
                line = taken.line
                if line.what == "other" and not taken.gone:
                    continue
                what = "gone" if taken.gone or line.what == "other" else line.what
                line = msgspec.structs.replace(line, why="") if partner.withheld else line
                id = belief.id_of(line.ref) if line.what == "inv" else shared_id(pool, partition, line.n)
                why = without_secrets(line.why) if what == "inv" else ""
                at = from_micros(taken.at)
                events.append(
                    ShareEvent(at=at, author=partner.name, partition=partition, n=line.n, what=what, id=id, why=why)
                )
        return events

    def _with_text(self, event: ShareEvent) -> ShareEvent:
        record = self._stores.records.get(event.id)
        if record is None or record.status == "hidden" or event.what == "gone":
            return event
        return msgspec.structs.replace(event, text=without_secrets(record.content))
