"""Pushes the own partition of a shared project and pulls those of the others (H1, H2).

Invariants: each step can be done again, so that after a kill at any point the next push or pull ends as it would have
without; a push has succeeded when the remote's ref reads back, and only then the daemon hears of it; the ref that says
what the daemon took moves last.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from ...protocol.errors import InvalidRequest, MemdError, RemoteRefusal, Unavailable
from ...protocol.exchange import Exchange, LostLines, SharedTree, StaleRemote
from ...protocol.share import (
    FIRST_LINES,
    NEW_LINES,
    TAKEN_SEGMENTS,
    OutboxItem,
    PartitionTaken,
    PreparedShare,
    SegmentData,
    ShareList,
    ShareState,
    is_hub,
)
from ...protocol.shared_lines import MalformedShare, line_hash, segment_hash, split_segment
from .git_exchange import MANY_SEGMENTS, GitExchange, exchange_folder

if TYPE_CHECKING:
    from ..python.client import Client

BATCH_BYTES = 3_000_000
"""Bytes of segments in one request, below the limit of a message."""

TRIES = 4
KILL_POINT = "SHARE_KILL_POINT"
"""The variable by which tests kill this process at a point of `POINTS`."""

POINTS = ("offered", "objects", "pushed", "delivered", "fetched", "journalled", "moved")


class SharingDaemon(Protocol):
    """The requests of a client that carrying needs."""

    def prepare_share(
        self, pool: str, *, first: int = 0, dry_run: bool = False, earlier: str = ""
    ) -> PreparedShare: ...
    def note_delivered(
        self, pool: str, partition: str, epoch: int, count: int, commit: str = "", earlier: str = ""
    ) -> ShareState: ...
    def renew_partition(self, pool: str, head: bytes, hashes: Sequence[bytes] = ()) -> ShareState: ...
    def shares(self, pools: Sequence[str] = ()) -> ShareList: ...
    def take_partition(
        self,
        pool: str,
        head: bytes,
        hashes: Sequence[bytes] = (),
        segments: Sequence[SegmentData] = (),
        *,
        dry_run: bool = False,
    ) -> PartitionTaken: ...


class EarlierPushed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a push did at an earlier remote. `gone`: lines that were forgotten since; `problem`: why they still lie
    there: the next push tries again."""

    address: str
    gone: int
    problem: str = ""


class Pushed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a push did. `count`: lines that the remote has; `added`, `retired`, `gone`: those that it did not have;
    `renewed`: another device wrote the partition, this home began a new one; `restored`: partitions that the remote had
    lost, which went back; `held`: records that the user chose and that stay, each with why; `earlier`: the remotes
    before the present one that had lines which are forgotten."""

    partition: str
    epoch: int
    count: int
    added: int = 0
    retired: int = 0
    gone: int = 0
    commit: str = ""
    renewed: bool = False
    restored: tuple[str, ...] = ()
    held: tuple[OutboxItem, ...] = ()
    earlier: tuple[EarlierPushed, ...] = ()


class RefusedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that can't be read, and why."""

    partition: str
    why: str


class Pulled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a pull did. `partitions`: those that changed; `unchanged`: how many did not; `refused`: those that the
    daemon never saw."""

    partitions: tuple[PartitionTaken, ...] = ()
    unchanged: int = 0
    refused: tuple[RefusedPartition, ...] = ()


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """A pull, then a push."""

    pulled: Pulled
    pushed: Pushed


def exchange_for(client: Client, state: ShareState, checkout: Path | None, interactive: bool) -> Exchange:
    """Return the exchange of a shared project. `checkout`: the folder whose git settings lead to the remote. Raises
    Denied for a hub without a pass."""
    return _exchange(
        client, state.pool, state.address, exchange_folder(client.places.share, state.pool), checkout, interactive
    )


def _exchange(
    client: Client, pool: str, address: str, folder: Path, checkout: Path | None, interactive: bool
) -> Exchange:
    if not is_hub(address):
        return GitExchange(folder, checkout, address, interactive=interactive)
    from .hub_client import HubClient, joined_hub, split_address
    from .hub_exchange import HubExchange

    hub = HubClient(joined_hub(client.places, split_address(address)[0]))
    return HubExchange(folder.with_suffix(".hub"), address, hub, client, pool)


def _ignore(text: str) -> None:
    pass


Progress = Callable[[str], object]


# --- push ------------------------------------------------------------------------------------------------------------
def push(
    client: Client | SharingDaemon,
    pool: str,
    exchange: Exchange,
    *,
    dry_run: bool = False,
    progress: Progress = _ignore,
) -> Pushed:
    """Push the own partition, and put back what the remote lost of the others. With `dry_run` nothing is offered and
    nothing leaves. Raises RemoteUnreachable, RemoteRefusal, StorageFull, NotFound."""
    with exchange.exclusive():
        renewed = False
        for _ in range(TRIES):
            prepared, segments = _prepared(client, pool, exchange, dry_run)
            if dry_run:
                return _pushed(prepared, "")
            _reach("offered")
            commit = exchange.write(prepared.head, segments)
            _reach("objects")
            progress(f"{prepared.count} lines")
            try:
                remote = _delivered(client, pool, exchange, prepared, many=len(segments) > MANY_SEGMENTS)
            except LostLines:
                progress("the remote lost lines: sending all again")
                continue
            if remote is not None:
                break
            renewed = True
        else:
            raise RemoteRefusal("the remote's partition changes again and again", hint="try again later")
        _reach("pushed")
        client.note_delivered(pool, prepared.partition, prepared.epoch, prepared.count, commit)
        _reach("delivered")
        restored = exchange.restore(remote)
        exchange.collect(forgotten=prepared.gone > 0)
        done = _pushed(prepared, commit)
        return msgspec.structs.replace(done, renewed=renewed, restored=restored)


def _pushed(prepared: PreparedShare, commit: str) -> Pushed:
    return Pushed(
        partition=prepared.partition,
        epoch=prepared.epoch,
        count=prepared.count,
        added=prepared.added,
        retired=prepared.retired,
        gone=prepared.gone,
        commit=commit,
        held=prepared.held,
    )


def _prepared(
    client: Client | SharingDaemon, pool: str, exchange: Exchange, dry_run: bool, earlier: str = ""
) -> tuple[PreparedShare, dict[int, bytes]]:
    """Return the own partition with those of its segments that the repository lacks, page by page. Lines may be added
    between two pages: the last page decides. Raises Unavailable."""
    page = client.prepare_share(pool, dry_run=dry_run, earlier=earlier)
    if dry_run:
        return page, {}
    segments: dict[int, bytes] = {}
    for _ in range(2 * len(page.hashes) + TRIES):
        segments |= {segment.number: segment.data for segment in page.segments}
        known = _known(exchange, page)
        missing = [n for n, wanted in enumerate(page.hashes) if not _has(n, wanted, segments, known)]
        if not missing:
            present = range(len(page.hashes))
            return page, {n: segments[n] for n in sorted(segments) if n in present and n not in known}
        epoch = page.epoch
        page = client.prepare_share(pool, first=missing[0], earlier=earlier)
        if page.epoch != epoch:
            segments.clear()  # a segment keeps its hash when a line of it is forgotten
    raise Unavailable("the own partition changes faster than it can be read", hint="try again")


def _known(exchange: Exchange, page: PreparedShare) -> dict[int, bytes]:
    """Return the hashes of the segments of the same epoch that the repository has as they are now."""
    tree = exchange.tree("v1", page.partition)
    if tree is None or tree.decoded.epoch != page.epoch:
        return {}
    hashes = exchange.hashes(page.partition, tree)
    return {n: one for n, (one, other) in enumerate(zip(hashes, page.hashes, strict=False)) if one == other}


def _has(number: int, wanted: bytes, segments: Mapping[int, bytes], known: Mapping[int, bytes]) -> bool:
    if number in known:
        return True
    data = segments.get(number)
    return data is not None and segment_hash(map(line_hash, split_segment(data))) == wanted


def _delivered(
    client: Client | SharingDaemon, pool: str, exchange: Exchange, prepared: PreparedShare, *, many: bool
) -> dict[str, str] | None:
    """Push until the remote has the own partition, and return the remote's partitions; None if another device writes
    it too, and the daemon began a new one. Raises RemoteUnreachable, RemoteRefusal."""
    over: str | None = None
    for _ in range(TRIES):
        try:
            return exchange.push(prepared.partition, over=over, many=many)
        except StaleRemote:
            over, tree = exchange.fetch_one(prepared.partition)
        if tree is not None and _is_renewed(client, pool, exchange, prepared.partition, tree):
            return None
    raise RemoteRefusal("another process writes the same partition again and again", hint="try again later")


def _is_renewed(
    client: Client | SharingDaemon, pool: str, exchange: Exchange, partition: str, tree: SharedTree
) -> bool:
    """Whether the remote's partition has lines of another device, so that the daemon began a new one. Everything else
    there was put there by someone else, or is an earlier state: it is overwritten."""
    try:
        client.renew_partition(pool, tree.head, exchange.hashes(partition, tree))
    except (InvalidRequest, MalformedShare):
        return False
    return True


# --- earlier remotes -------------------------------------------------------------------------------------------------
def push_earlier(
    client: Client, state: ShareState, checkout: Path | None, interactive: bool
) -> tuple[EarlierPushed, ...]:
    """Take the forgotten lines back from the remotes that a share had before; no line is added there. What fails is
    told and stays for the next push."""
    done: list[EarlierPushed] = []
    for remote in (remote for remote in state.earlier if remote.forgotten):
        folder = exchange_folder(client.places.share, f"{state.pool}\n{remote.address}")
        problem = ""
        try:
            exchange = _exchange(client, state.pool, remote.address, folder, checkout, interactive)
            _take_back(client, state.pool, exchange, remote.address)
        except MemdError as error:
            problem = error.message
        done.append(EarlierPushed(address=remote.address, gone=remote.forgotten, problem=problem))
    return tuple(done)


def _take_back(client: Client | SharingDaemon, pool: str, exchange: Exchange, address: str) -> None:
    """Push the own partition as far as an earlier remote has it. A remote that lost it gets nothing."""
    with exchange.exclusive():
        prepared, segments = _prepared(client, pool, exchange, dry_run=False, earlier=address)
        commit = exchange.write(prepared.head, segments)
        for _ in range(TRIES):
            if not (there := exchange.remote_refs().get(prepared.partition, "")):
                break
            try:
                exchange.push(prepared.partition, over=there)
                break
            except LostLines:  # what the remote has of the partition by now is older: the next push tries again
                raise RemoteRefusal("the remote has lost lines of yours", hint="run the command again") from None
            except StaleRemote:
                continue
        else:
            raise RemoteRefusal("another process writes the same partition again and again", hint="try again later")
        client.note_delivered(pool, prepared.partition, prepared.epoch, prepared.count, commit, address)
        exchange.remove()


# --- pull ------------------------------------------------------------------------------------------------------------
def pull(
    client: Client | SharingDaemon,
    pool: str,
    exchange: Exchange,
    *,
    dry_run: bool = False,
    progress: Progress = _ignore,
) -> Pulled:
    """Fetch the partitions of the others, and give the daemon what is new. With `dry_run` the daemon tells what it
    would take of the first segments. Raises RemoteUnreachable, RemoteRefusal, StorageFull, NotFound."""
    with exchange.exclusive():
        refused = exchange.fetch()
        _reach("fetched")
        shares = client.shares((pool,))
        own, lines = _own(shares), {author.partition: author.lines for one in shares.shares for author in one.authors}
        present = {share.partition for share in shares.shares}
        taken: list[PartitionTaken] = []
        unchanged, forgotten = 0, False
        for partition in exchange.partitions("new"):
            if partition in present:
                continue
            try:
                tree, before = exchange.tree("new", partition), exchange.tree("taken", partition)
                if tree is None or (before and (before.head, before.blobs) == (tree.head, tree.blobs)):
                    unchanged += 1
                    continue
                if tree.decoded.partition != partition:
                    raise MalformedShare("the partition of another author lies there")
                progress(partition)
                reply = _take(client, pool, exchange, partition, tree, lines.get(partition, 0), dry_run)
            except MalformedShare as error:
                refused[partition] = str(error)
                continue
            if partition in own and reply.problem and not reply.name:  # this home wrote all of it
                unchanged += 1
                continue
            taken.append(reply)
            if not (dry_run or reply.problem or reply.left):
                # an earlier epoch may lie here although it was never taken: after a dry run, or a refusal
                forgotten |= tree.decoded.epoch > (before.decoded.epoch if before else 0)
                exchange.take(partition)
                _reach("moved")
        if not dry_run:
            exchange.collect(forgotten=forgotten)
        return Pulled(
            partitions=tuple(taken),
            unchanged=unchanged,
            refused=tuple(RefusedPartition(partition=name, why=why) for name, why in sorted(refused.items())),
        )


def _own(shares: ShareList) -> set[str]:
    """Return the partitions of this home, the present one and earlier ones."""
    earlier = {author.partition for share in shares.shares for author in share.authors if author.own}
    return earlier | {share.partition for share in shares.shares}


def _take(
    client: Client | SharingDaemon,
    pool: str,
    exchange: Exchange,
    partition: str,
    tree: SharedTree,
    before: int,
    dry_run: bool,
) -> PartitionTaken:
    """Give the daemon the segments that changed, in order, then those that it wants, until it has enough for one pull;
    return the sum of its replies. `before`: lines that it has. Segments with forgotten lines come before new ones."""
    last = before + (NEW_LINES if before else FIRST_LINES)
    hashes = exchange.hashes(partition, tree)
    pending = exchange.changed(partition, tree)
    total: PartitionTaken | None = None
    for _ in range(2 * len(hashes) + TRIES):
        batch = _batch(exchange, tree, pending)
        reply = client.take_partition(pool, tree.head, hashes, batch, dry_run=dry_run)
        _reach("journalled")
        stuck = bool(reply.wanted) and total is not None and (reply.left, reply.wanted) == (total.left, total.wanted)
        total = _sum(total, reply)
        sent = {segment.number for segment in batch}
        wanted = [number for number in reply.wanted if number < len(hashes)]
        pending = [*wanted, *(number for number in pending if number not in sent and number not in wanted)]
        is_enough = bool(reply.left) and tree.decoded.count - reply.left >= last
        if dry_run or reply.problem or stuck or is_enough or not pending:
            break
    assert total is not None
    return total


def _batch(exchange: Exchange, tree: SharedTree, numbers: Sequence[int]) -> list[SegmentData]:
    """Return the first segments of these that one request can hold."""
    batch: list[SegmentData] = []
    size = 0
    for number in numbers[:TAKEN_SEGMENTS]:
        segment = exchange.segment(tree, number)
        size += len(segment.data)
        if batch and size > BATCH_BYTES:
            break
        batch.append(segment)
    return batch


def _sum(total: PartitionTaken | None, reply: PartitionTaken) -> PartitionTaken:
    if total is None:
        return reply
    return msgspec.structs.replace(
        reply,
        added=total.added + reply.added,
        retired=total.retired + reply.retired,
        proposed=total.proposed + reply.proposed,
        forgotten=total.forgotten + reply.forgotten,
        refused=(*total.refused, *reply.refused),
    )


# --- both ------------------------------------------------------------------------------------------------------------
def sync(client: Client | SharingDaemon, pool: str, exchange: Exchange, *, progress: Progress = _ignore) -> Synced:
    """Pull, then push."""
    pulled = pull(client, pool, exchange, progress=progress)
    return Synced(pulled=pulled, pushed=push(client, pool, exchange, progress=progress))


def _reach(point: str) -> None:
    if os.environ.get(KILL_POINT) == point:
        os.kill(os.getpid(), signal.SIGKILL)
