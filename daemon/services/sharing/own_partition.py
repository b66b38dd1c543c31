"""The own partition of a shared project: what may leave, what leaves, and what the others have of it (H1, W5, A2).

Invariants: a line is in the journal before anyone can carry it; the lines are rendered from the journal, so that a lost
copy of the partition can be made again; a partition is written by one home, and another one follows if it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ....protocol.errors import InvalidRequest, NotFound, StoreError
from ....protocol.instant import from_micros
from ....protocol.operation import AnyOperation, Delivered, Offered, ShareChosen, ShareClosed, ShareOpened
from ....protocol.record import Record
from ....protocol.share import (
    HUB_SCHEMES,
    TAKEN_SEGMENTS,
    CloseShare,
    EarlierRemote,
    GetOutbox,
    NoteDelivered,
    OfferRecords,
    OpenShare,
    Outbox,
    OutboxItem,
    PreparedShare,
    PrepareShare,
    RenewPartition,
    ReviewShare,
    SegmentData,
    ShareCandidate,
    ShareReview,
    is_hub,
)
from ....protocol.shared_lines import (
    MOST_LINES,
    SEGMENT,
    MalformedShare,
    ShareHead,
    ShareMark,
    check_hashes,
    chosen_name,
    line_hash,
    parts_of,
    segments_of,
    tip_of,
    verified_head,
)
from ...failpoint import reach
from ...projections.placement import PROJECT
from ...projections.sharing import ShareEntry
from ..core import Core
from ..outgoing_screen import secrets_in
from ..shared_belief import SharedBelief, name_of
from ..write_thread import Writer
from .gate import ShareGate
from .partition_key import SEED_BYTES, PartitionKey, load_key, make_key
from .rendering import gone, is_gone, line_bytes, preview, preview_inv, rendered, revision, segment_hashes, texts_of
from .share_plan import PlannedLine, SharePlan

GROUP = 256
"""Most lines of one commit: captures wait for the write thread meanwhile."""

BLIND_BYTES = 16
REPLY_BYTES = 3_000_000
"""Most bytes of segments in one reply."""

SHOWN_IDS = 5
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _Sent(NamedTuple):
    """What the last rendering of a partition had."""

    epoch: int
    lines: int
    gone: int


class _OwnLines(NamedTuple):
    """The lines of a partition, which of them are gone, and the hashes of its segments."""

    lines: list[Offered]
    is_absent: list[bool]
    hashes: list[bytes]


class OwnPartition:
    """Offers, renders and signs the user's lines."""

    def __init__(self, core: Core, writer: Writer) -> None:
        self._core, self._writer, self._stores = core, writer, core.stores
        self._gate = ShareGate(core.stores)
        self._plan = SharePlan(core.stores, self._gate)
        self._sent: dict[str, list[_Sent]] = {}
        self._paged: tuple[tuple[int, str, bool], _OwnLines] | None = None
        """The lines of a partition that a client reads page by page, and what they were read for."""

    # --- opening and closing -----------------------------------------------------------------------------------------
    def open(self, request: OpenShare) -> ShareEntry:
        """Share a project, or change how. Raises NotFound, and InvalidRequest for a pool that no project has."""
        pool = self._project(request)
        before = self._stores.sharing.share(pool)
        mark = self._mark(pool, request, before)
        opened = before.opened if before else ShareOpened(pool=pool, partition="")
        is_same = before is not None and (opened.root, opened.remote) == (mark.root, mark.remote)
        whole = opened.new_sessions if request.new_sessions is None else request.new_sessions
        address = request.address or opened.address
        if secrets_in(address):
            raise InvalidRequest("the address holds a password", hint="let git's credential helper keep the password")
        if before is not None and not (before.is_open and is_same):
            whole = bool(request.new_sessions)
        opened = msgspec.structs.replace(
            opened,
            root=mark.root,
            remote=mark.remote,
            address=address,
            name=chosen_name(request.name or opened.name),
            new_sessions=whole,
        )
        is_new = before is None or (before.withdraw and self._has_left(before))
        if before is not None and not is_same:
            is_new = self._has_left_audience(before)
        if request.dry_run:
            at = before.at if before else from_micros(self._core.world.now())
            known = before or ShareEntry(opened=opened, at=at)
            if not is_same:
                known = msgspec.structs.replace(known, first=len(known.partitions), count=0, delivered=None)
            return msgspec.structs.replace(known, opened=opened, is_open=True, withdraw=False)
        if is_new:
            return self._begin(opened)
        assert before is not None
        if opened != before.opened or not before.is_open:
            self._commit([opened])
        return self._entry_of(pool)

    def _project(self, request: OpenShare) -> str:
        """Return the full name of a project's pool."""
        pool = self._stores.aliases.home(self._core.directory.named(request.pool))
        if not pool.startswith(PROJECT):
            raise self._unshareable(pool, "" if is_hub(request.address) else " with a git repository")
        return pool

    def _unshareable(self, pool: str, kind: str) -> InvalidRequest:
        return InvalidRequest(
            f"{self._core.directory.title(pool) or pool} is not a project{kind}",
            hint="git carries the memory of a repository's project, a hub that of any project; `memd scope move` moves "
            "records there",
        )

    def _mark(self, pool: str, request: OpenShare, before: ShareEntry | None) -> ShareMark:
        """Return the mark of a share: the hub's name of the pool, that of before, or the repository's."""
        address = request.address or (before.opened.address if before else "")
        if is_hub(address):
            mark = request.mark or (before.hub if before and address == before.opened.address else "")
            _check_hub(address, mark)
            return ShareMark(remote=mark)
        if request.mark:
            raise InvalidRequest(f"{address or 'git'} is no hub", hint="a git remote knows a project by its repository")
        if before is not None and not before.hub:
            return ShareMark(root=before.opened.root, remote=before.opened.remote)
        names = self._stores.aliases.of_pool(pool)
        marks = [(*parts_of(alias.name), alias.at) for alias in names if any(parts_of(alias.name))]
        if not marks:
            raise self._unshareable(pool, " with a git repository")
        root, remote, _ = max(marks, key=lambda mark: (bool(mark[0]) + bool(mark[1]), -mark[2]))
        return ShareMark(root=root, remote=remote)

    def _has_left_audience(self, entry: ShareEntry) -> bool:
        """Whether no remote has a line of the present partition that is not gone. Raises InvalidRequest otherwise:
        those who have one mark and those who have another are two audiences, and forgetting must reach both."""
        sent = [has for has in entry.remotes.values() if has.partition == entry.opened.partition]
        if any(has.gone < has.count for has in sent):
            raise InvalidRequest(
                f"others have the lines that {entry.opened.address} carries",
                hint="`memd share off --withdraw`, `memd share push`, then share anew: another hub or repository is "
                "another audience, and you choose for it again what it gets",
            )
        return True

    def _has_left(self, entry: ShareEntry) -> bool:
        """Whether nothing of a withdrawn partition is left at the remote. Raises InvalidRequest otherwise."""
        delivered = entry.delivered
        if delivered is not None and delivered.gone < delivered.count:
            raise InvalidRequest("the lines are not withdrawn yet", hint="`memd share push` first, then share anew")
        return True

    def _begin(self, opened: ShareOpened) -> ShareEntry:
        """Begin a partition with a new key."""
        key = make_key(self._core.places.share, self._core.world.token(SEED_BYTES))
        self._commit([msgspec.structs.replace(opened, partition=key.partition)])
        return self._entry_of(opened.pool)

    def close(self, request: CloseShare) -> ShareEntry:
        """End sharing a project. Raises NotFound."""
        entry = self._entry(request.pool)
        if entry.is_open or (request.withdraw and not entry.withdraw):
            self._commit([ShareClosed(pool=entry.opened.pool, withdraw=request.withdraw)])
        return self._entry_of(entry.opened.pool)

    def _entry(self, name: str) -> ShareEntry:
        pool = self._stores.aliases.home(self._core.directory.named(name))
        entry = self._stores.sharing.share(pool)
        if entry is None:
            title = self._core.directory.title(pool) or pool
            raise NotFound(f"the memory of {title} is not shared", hint="`memd share on` shares a project's memory")
        return entry

    def _open_entry(self, name: str) -> ShareEntry:
        entry = self._entry(name)
        if not entry.is_open:
            raise InvalidRequest("this project is not shared any more", hint="`memd share on` shares it again")
        return entry

    def _entry_of(self, pool: str) -> ShareEntry:
        entry = self._stores.sharing.share(pool)
        assert entry is not None
        return entry

    def _commit(self, operations: Sequence[AnyOperation]) -> None:
        if operations:
            self._writer.run(lambda: self._stores.commit(operations)).result()

    # --- the user's word ---------------------------------------------------------------------------------------------
    def review(self, request: ReviewShare) -> ShareReview:
        """List the records that the user has not decided on. Raises NotFound, InvalidRequest."""
        undecided = self._plan.undecided(self._open_entry(request.pool))
        reasons = dict(undecided[: request.limit])
        records = self._stores.records.many(reasons).values()
        listed = tuple(ShareCandidate(record=record, why_not=reasons[record.id]) for record in records)
        return ShareReview(candidates=listed, left=len(undecided) - len(reasons))

    def choose(self, request: OfferRecords) -> Outbox:
        """Note which records the user shares or keeps. Raises NotFound, and InvalidRequest for one of another pool."""
        entry = self._open_entry(request.pool)
        pool = entry.opened.pool
        shared = [self._in_pool(id, pool).id for id in request.ids]
        kept = [self._in_pool(id, pool).id for id in request.keep]
        if request.all:
            shared += [id for id, why_not in self._plan.undecided(entry) if not why_not]
        shared = [id for id in dict.fromkeys(shared) if id not in kept]
        choices = self._stores.sharing.choices(entry)
        wanted = {False: [id for id in shared if choices.get(id) is not True]}
        wanted[True] = [id for id in dict.fromkeys(kept) if choices.get(id) is not False]
        self._commit([ShareChosen(pool=pool, ids=tuple(ids), keep=keep) for keep, ids in wanted.items() if ids])
        return self.outbox(GetOutbox(pool=pool))

    def _in_pool(self, id: str, pool: str) -> Record:
        record = self._stores.records.named(id)
        if record.pool != pool:
            raise InvalidRequest(
                f"{record.id[:8]} is not in this project", hint="`memd scope move ID POOL` moves a record there"
            )
        return record

    def outbox(self, request: GetOutbox) -> Outbox:
        """List all lines to come, and those that are held. Raises NotFound, InvalidRequest."""
        entry = self._open_entry(request.pool)
        return Outbox(items=(*self._written(entry), *map(_item, self._plan.steps(entry))))

    def _written(self, entry: ShareEntry) -> Iterator[OutboxItem]:
        """Yield the lines that are in the journal and not at the remote, such as what the user said is wrong."""
        belief = SharedBelief(self._stores, entry.opened.pool)
        for line in self._stores.sharing.own_lines(entry.opened.partition, _known(entry).lines):
            if not is_gone(self._stores, line):
                id = line.id or belief.id_of(line.ref)
                yield OutboxItem(id=id, line=line_bytes(self._stores, line).decode())

    def waiting(self, entry: ShareEntry) -> int:
        """Return the number of records in the outbox."""
        return self._plan.waiting(entry)

    def forgotten(self, entry: ShareEntry) -> int:
        """Return the number of lines that are forgotten here and still at the remote."""
        return self._plan.forgotten(entry)

    def undecided(self, entry: ShareEntry) -> int:
        """Return the number of records that the user may share and has not decided on."""
        return sum(not why_not for _, why_not in self._plan.undecided(entry))

    # --- the lines ---------------------------------------------------------------------------------------------------
    def prepare(self, request: PrepareShare) -> PreparedShare:
        """Offer what is due, unless a later page is asked for, and render the partition.

        Raises NotFound, StoreError, and InvalidRequest if it is not shared or a line holds a secret by today's rules.
        """
        entry = self._entry(request.pool)
        if not (entry.is_open or entry.withdraw):
            raise InvalidRequest("this project is not shared any more", hint="`memd share on` shares it again")
        key = load_key(self._core.places.share, entry.opened.partition)
        if request.earlier:
            return self._for_earlier(entry, key, request)
        if request.dry_run:
            return self._foreseen(entry)
        if key is None:
            if entry.withdraw:
                raise StoreError(
                    "the key of the own lines is lost, so memd can't withdraw them",
                    hint=f"delete the ref refs/memd/v1/{entry.opened.partition} on the remote",
                )
            entry = self._follow(entry)
            key = load_key(self._core.places.share, entry.opened.partition)
        if key is None:
            raise StoreError("memd can't read the key that it has just written", hint="check the disk")
        if not request.first:
            self._offer(entry)
        return self._rendered(self._entry_of(entry.opened.pool), key, request.first)

    def _offer(self, entry: ShareEntry) -> None:
        due = [step for step in self._plan.steps(entry) if _is_due(step, self._core.world.now())]
        if entry.count + len(due) > MOST_LINES:
            raise InvalidRequest(
                f"a partition has at most {MOST_LINES:,} lines",
                hint="`memd share off --withdraw`, then `memd share on`, begins a new one",
            )
        for start in range(0, len(due), GROUP):
            group = due[start : start + GROUP]
            self._writer.run(partial(self._commit_offers, entry.opened, group)).result()
        if due:
            reach("share:offered")

    def _commit_offers(self, opened: ShareOpened, steps: Sequence[PlannedLine]) -> None:
        """Commit lines, on the write thread, but for records that changed since they were planned."""
        entry = self._entry_of(opened.pool)
        if entry.opened.partition != opened.partition or not entry.is_open:
            return
        lines: list[Offered] = []
        for step in steps:
            record = self._stores.records.get(step.id)
            if step.what == "add":
                if record is None or record != step.record or self._gate.why_not(record, opened.pool):
                    continue
                line = self._line(entry, len(lines), what="add", id=record.id, rev=record.rev, of=step.of)
                lines.append(msgspec.structs.replace(line, hash=line_hash(rendered(line, record))))
            else:
                line = self._line(entry, len(lines), what="inv", ref=step.ref, until=step.until)
                lines.append(msgspec.structs.replace(line, hash=line_hash(rendered(line, None))))
        if lines:
            self._stores.commit(lines)

    def _line(self, entry: ShareEntry, after: int, **fields: Any) -> Offered:
        """Return a line without its hash, the one so many lines after the last one of the partition."""
        return Offered(
            pool=entry.opened.pool,
            partition=entry.opened.partition,
            n=entry.count + after,
            lamport=entry.lamport + 1 + after,
            at=self._core.world.now(),
            blind=self._core.world.token(BLIND_BYTES),
            hash=b"",
            **fields,
        )

    def invalidate(self, pool: str, ref: str, until: str = "", why: str = "") -> None:
        """Tell everybody with the next push that a line is wrong. Called on the write thread; once more is nothing."""
        if lines := self._invalidations(pool, (ref,), until, why):
            self._stores.commit(lines)

    def retractions(self, records: Sequence[Record]) -> list[Offered]:
        """Return the lines that tell everybody with the next push that other authors' records do not hold. On the write
        thread, which commits them."""
        refs: dict[str, list[str]] = {}
        for record in records:
            refs.setdefault(record.pool, []).append(name_of(record))
        return [line for pool, names in refs.items() for line in self._invalidations(pool, names)]

    def _invalidations(self, pool: str, refs: Sequence[str], until: str = "", why: str = "") -> list[Offered]:
        """Return the lines that invalidate these, none for what the present partition says already, and none for what
        came from another audience."""
        entry = self._stores.sharing.share(pool)
        if entry is None or not entry.is_open:
            return []
        lines: list[Offered] = []
        for ref in dict.fromkeys(refs):
            partner = self._stores.sharing.partner(pool, ref.partition("/")[0])
            if partner is not None and partner.hub != entry.hub:
                continue
            own = self._stores.sharing.invalidating(pool, ref)
            if all(line.partition != entry.opened.partition for line in own):
                line = self._line(entry, len(lines), what="inv", ref=ref, until=until, why=why)
                lines.append(msgspec.structs.replace(line, hash=line_hash(rendered(line, None))))
        return lines

    def _rendered(self, entry: ShareEntry, key: PartitionKey, first: int) -> PreparedShare:
        return self._signed(entry, key, first, None)

    def _signed(self, entry: ShareEntry, key: PartitionKey, first: int, has: Delivered | None) -> PreparedShare:
        """Return the partition as it is now. `has`: what an earlier remote has, which gets no line more. The epoch
        there is that of the present remote: readers may come from one to the other."""
        opened, known = entry.opened, _known(entry)
        lines, is_absent, hashes = self._own_lines(entry, first)
        epoch = known.epoch + (sum(is_absent) > known.gone)
        if has is not None:
            known = _Sent(has.epoch, has.count, has.gone)
            lines, is_absent = lines[: has.count], is_absent[: has.count]
            hashes = segment_hashes(lines)
            epoch = max(epoch, has.epoch + 1) if sum(is_absent) > has.gone else has.epoch
        self._note_sent(opened.partition, _Sent(epoch, len(lines), sum(is_absent)))
        head = ShareHead(
            share=ShareMark(root=opened.root, remote=opened.remote),
            partition=opened.partition,
            key="",
            name=opened.name,
            epoch=epoch,
            count=len(lines),
            tip=tip_of(hashes),
            lamport=max((offered.lamport for offered in lines), default=0),
            closed=entry.withdraw,
            at=max((offered.at for offered in lines), default=0),
        )
        segments = self._segments(lines, is_absent, first)
        last = first + len(segments)
        if last >= segments_of(len(lines)):
            self._paged = None
        new = lines[known.lines :]
        return PreparedShare(
            pool=opened.pool,
            partition=opened.partition,
            address=has.address if has else opened.address,
            epoch=epoch,
            count=len(lines),
            head=key.signed(msgspec.structs.replace(head, key=key.public.hex())),
            hashes=tuple(hashes),
            segments=segments,
            next=last if last < segments_of(len(lines)) else 0,
            added=sum(offered.what == "add" and not is_absent[offered.n] for offered in new),
            retired=sum(offered.what == "inv" and not is_absent[offered.n] for offered in new),
            gone=max(0, sum(is_absent) - known.gone),
            held=() if has else self._held(entry),
        )

    def _for_earlier(self, entry: ShareEntry, key: PartitionKey | None, request: PrepareShare) -> PreparedShare:
        """Render the partition as far as an earlier remote has it. Raises NotFound, InvalidRequest, StoreError."""
        has = _earlier(entry, request.earlier)
        if key is None:
            raise StoreError(
                f"the key of the own lines is lost, so memd can't take them back from {has.address}",
                hint=f"delete the ref refs/memd/v1/{has.partition} there",
            )
        return self._signed(entry, key, request.first, has)

    def earlier(self, entry: ShareEntry) -> tuple[EarlierRemote, ...]:
        """Return the remotes before the present one, with the lines that are forgotten here and still there."""
        rows: list[EarlierRemote] = []
        for has in entry.earlier:
            lines = self._stores.sharing.own_lines(has.partition)[: has.count]
            absent = sum(entry.withdraw or self._is_forgotten(line) for line in lines)
            rows.append(EarlierRemote(address=has.address, lines=has.count, forgotten=max(0, absent - has.gone)))
        return tuple(rows)

    def _is_forgotten(self, line: Offered) -> bool:
        return line.what == "add" and self._stores.records.get(line.id) is None

    def _own_lines(self, entry: ShareEntry, first: int) -> _OwnLines:
        """Return the lines of the partition; for a later page those of the page before, if no operation came since."""
        key = self._stores.tables.applied_seq, entry.opened.partition, entry.withdraw
        if first and self._paged is not None and self._paged[0] == key:
            return self._paged[1]
        lines = self._stores.sharing.own_lines(entry.opened.partition)
        is_absent = [entry.withdraw or is_gone(self._stores, offered) for offered in lines]
        own = _OwnLines(lines, is_absent, segment_hashes(lines))
        self._paged = key, own
        return own

    def _segments(self, lines: Sequence[Offered], is_absent: Sequence[bool], first: int) -> tuple[SegmentData, ...]:
        """Return the segments from number `first` on that one reply can hold, at least one if there is one."""
        segments: list[SegmentData] = []
        size = 0
        for number in range(first, min(first + TAKEN_SEGMENTS, segments_of(len(lines)))):
            part = slice(number * SEGMENT, (number + 1) * SEGMENT)
            data = b"".join(self._bytes(lines[part], is_absent[part]))
            size += len(data)
            if segments and size > REPLY_BYTES:
                break
            segments.append(SegmentData(number, data))
        return tuple(segments)

    def _bytes(self, lines: Sequence[Offered], is_absent: Sequence[bool]) -> list[bytes]:
        """Return the lines' bytes with their newlines. Raises InvalidRequest if the rules of today find a secret."""
        holding: list[str] = []
        data: list[bytes] = []
        for offered, absent in zip(lines, is_absent, strict=True):
            record = None if absent or offered.what == "inv" else revision(self._stores, offered)
            if absent or (record is None and offered.what == "add"):
                data.append(gone(offered) + b"\n")
                continue
            texts = texts_of(record) if record else (offered.until, offered.why)
            if any(secrets_in(words) for words in texts):
                holding.append(offered.id)
            data.append((rendered(offered, record) if record else line_bytes(self._stores, offered)) + b"\n")
        if holding:
            ids = ", ".join(id[:8] for id in holding[:SHOWN_IDS])
            raise InvalidRequest(
                f"the rules of today find a secret in {len(holding)} shared records ({ids}): memd sends nothing",
                hint="`memd forget ID` or `memd scan` removes it, then push again; the others may have it already",
            )
        return data

    def _foreseen(self, entry: ShareEntry) -> PreparedShare:
        """Return what the next push would send, without a head or segments: nothing is offered or signed."""
        known, opened = _known(entry), entry.opened
        lines = self._stores.sharing.own_lines(opened.partition)
        absent = sum(entry.withdraw or is_gone(self._stores, offered) for offered in lines)
        due = [step for step in self._plan.steps(entry) if _is_due(step, self._core.world.now())]
        coming = [step.what for step in due]
        if not entry.withdraw:
            coming += [line.what for line in lines[known.lines :] if not is_gone(self._stores, line)]
        return PreparedShare(
            pool=opened.pool,
            partition=opened.partition,
            address=opened.address,
            epoch=known.epoch + (absent > known.gone),
            count=len(lines) + len(due),
            head=b"",
            added=coming.count("add"),
            retired=coming.count("inv"),
            gone=max(0, absent - known.gone),
            held=self._held(entry),
        )

    def _held(self, entry: ShareEntry) -> tuple[OutboxItem, ...]:
        return tuple(_item(step) for step in self._plan.steps(entry) if step.why_not)

    # --- what the others have ----------------------------------------------------------------------------------------
    def delivered(self, request: NoteDelivered) -> ShareEntry:
        """Note what the remote has. Raises NotFound, and InvalidRequest for lines that this home did not write."""
        entry = self._entry(request.pool)
        known = _known(entry)
        if request.partition != entry.opened.partition:
            raise InvalidRequest("this is not the present own partition", hint="prepare the share again")
        if request.earlier:
            return self._delivered_earlier(entry, request)
        is_impossible = not (0 <= request.count <= entry.count and 0 <= request.epoch <= known.epoch + 1)
        if is_impossible or (request.epoch, request.count) < (known.epoch, known.lines):
            raise InvalidRequest(
                f"the remote can't have {request.count} lines in epoch {request.epoch} of this partition",
                hint="another device may write it too: `memd share push` begins a new one",
            )
        has = entry.remotes.get(entry.opened.address)
        is_noted = has is not None and (has.epoch, has.count) == (request.epoch, request.count)
        if (request.epoch, request.count) != (known.epoch, known.lines) or entry.delivered is None or not is_noted:
            absent = self._gone_then(request, known)
            delivered = Delivered(
                pool=entry.opened.pool,
                partition=request.partition,
                epoch=request.epoch,
                count=request.count,
                gone=absent,
                commit=request.commit,
            )
            self._commit([delivered])
        return self._entry_of(entry.opened.pool)

    def _delivered_earlier(self, entry: ShareEntry, request: NoteDelivered) -> ShareEntry:
        has = _earlier(entry, request.earlier)
        if request.count != has.count or request.epoch < has.epoch:
            raise InvalidRequest(f"{has.address} can't have {request.count} lines in epoch {request.epoch}")
        absent = self._gone_then(request, _Sent(has.epoch, has.count, has.gone))
        if (request.epoch, absent) != (has.epoch, has.gone):
            replace = msgspec.structs.replace
            self._commit([replace(has, epoch=request.epoch, gone=absent, commit=request.commit)])
        return self._entry_of(entry.opened.pool)

    def _note_sent(self, partition: str, sent: _Sent) -> None:
        """Remember the fewest lines that were gone in a rendering of this epoch and count."""
        others = [other for other in self._sent.get(partition, []) if other[:2] != sent[:2]]
        before = [other for other in self._sent.get(partition, []) if other[:2] == sent[:2]]
        self._sent[partition] = [*others[-SHOWN_IDS:], min([*before, sent])]

    def _gone_then(self, request: NoteDelivered, known: _Sent) -> int:
        """Return how many lines were gone in what the remote has, at least: fewer only cost an epoch more."""
        sent = self._sent.get(request.partition, [])
        return next((other.gone for other in sent if other[:2] == (request.epoch, request.count)), known.gone)

    def renew(self, request: RenewPartition) -> ShareEntry:
        """Begin a new partition because another home writes the present one too. Raises NotFound, InvalidRequest."""
        entry = self._open_entry(request.pool)
        try:
            head = verified_head(request.head)
            check_hashes(request.hashes, head)
        except MalformedShare as error:
            raise InvalidRequest(
                f"the remote's head proves nothing: {error}", hint="push again: memd repairs it"
            ) from error
        if head.partition != entry.opened.partition:
            raise InvalidRequest("the head is that of another partition", hint="`memd share pull` takes it")
        lines = self._stores.sharing.own_lines(head.partition)
        if head.count <= len(lines) and segment_hashes(lines[: head.count]) == list(request.hashes):
            raise InvalidRequest("this home wrote all these lines", hint="push again")
        return self._follow(entry)

    def _follow(self, entry: ShareEntry) -> ShareEntry:
        """Begin a new partition; what the others do not have of the last one is planned anew, and disputes follow."""
        pool, last = entry.opened.pool, entry.opened.partition
        delivered = entry.delivered.count if entry.delivered else 0
        following = self._begin(entry.opened)
        for offered in self._stores.sharing.own_lines(last, delivered):
            if offered.what == "inv" and offered.ref.partition("/")[0] not in entry.partitions:
                again = partial(self.invalidate, pool, offered.ref, offered.until, offered.why)
                self._writer.run(again).result()
        return following


def _check_hub(address: str, mark: str) -> None:
    """Raise InvalidRequest for an address that is not a hub's, or a pool without a name there."""
    parts = urlsplit(address.removeprefix("hub+"))
    if not parts.hostname or not parts.path.strip("/") or parts.username is not None or not address.isprintable():
        raise InvalidRequest("this is not the address of a pool at a hub", hint="hub+https://HOST[:PORT]/POOL")
    if address.startswith(HUB_SCHEMES[1]) and parts.hostname not in LOOPBACK:
        raise InvalidRequest("a hub on another machine needs TLS", hint="hub+https://HOST[:PORT]/POOL")
    if not mark or mark != mark.strip() or not mark.isprintable():
        raise InvalidRequest("the pool has no name at the hub", hint="name the pool as the hub does")


def _is_due(step: PlannedLine, now: int) -> bool:
    return not step.why_not and step.due <= now


def _item(step: PlannedLine) -> OutboxItem:
    if step.what == "inv":
        line = preview_inv(step.ref, step.until)
    else:
        assert step.record is not None
        is_shown = not step.why_not
        line = preview(step.record, step.of) if is_shown else ""
    return OutboxItem(id=step.id, line=line, due=from_micros(step.due) if step.due else "", why_not=step.why_not)


def _earlier(entry: ShareEntry, address: str) -> Delivered:
    """Return what an earlier remote has. Raises NotFound."""
    has = next((each for each in entry.earlier if each.address == address), None)
    if has is None:
        raise NotFound(f"{address} is no earlier remote of this project", hint="`memd share status` names the remote")
    return has


def _known(entry: ShareEntry) -> _Sent:
    """Return what the others have of the present partition."""
    delivered = entry.delivered
    return _Sent(delivered.epoch, delivered.count, delivered.gone) if delivered else _Sent(0, 0, 0)
