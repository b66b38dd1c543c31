"""Partitions of one shared project at a hub (H3).

The hub keeps the lines; this home stores which heads it had and took, so that a lost file costs a longer push and pull
and nothing else. Invariant: what a reply says of a pool renews the lease of the project, and a refusal ends it.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from ...protocol.errors import Denied, RemoteRefusal
from ...protocol.exchange import LostLines, SharedTree, StaleRemote, Where
from ...protocol.hub import (
    PAGE,
    HeadsAtHub,
    HubHeads,
    HubPut,
    HubSegments,
    LineVector,
    PutAtHub,
    SegmentsAtHub,
)
from ...protocol.recall import VECTOR_TEXTS, TextVectors
from ...protocol.share import SegmentData, ShareState
from ...protocol.shared_lines import (
    SEGMENT,
    AddLine,
    MalformedShare,
    decode_head,
    decode_shared,
    line_hash,
    segment_hash,
    segments_of,
    split_segment,
)
from ..python.folder import make_private, write_whole
from .exclusive_folder import exclusive, storing
from .hub_client import HubClient, split_address

if TYPE_CHECKING:
    from ..python.client import Client


class HubDaemon(Protocol):
    """The requests of a client that a hub's exchange needs."""

    def note_lease(self, pool: str, subject: str, until: int, withheld: Sequence[str] = ()) -> ShareState: ...
    def vectors(self, texts: Sequence[str]) -> TextVectors: ...


class _StoredHead(msgspec.Struct, frozen=True, array_like=True):
    head: bytes
    hashes: tuple[bytes, ...]


class _StoredHeads(msgspec.Struct, frozen=True):
    own: dict[str, _StoredHead] = {}
    taken: dict[str, _StoredHead] = {}


class _Written(msgspec.Struct, frozen=True):
    """The own partition as it will be put."""

    stored: _StoredHead
    segments: dict[int, bytes]
    first: int
    """The first line that the hub has no vector for."""


class HubExchange:
    """The pool at `address`, for the project `pool` of a daemon."""

    is_interactive = False

    def __init__(self, folder: Path, address: str, hub: HubClient, daemon: Client | HubDaemon, pool: str) -> None:
        self.folder, self._hub, self._daemon, self._local_pool = folder, hub, daemon, pool
        self._pool = split_address(address)[1]
        self._known = _StoredHeads()
        self._new: dict[str, _StoredHead] = {}
        self._written: dict[str, _Written] = {}
        self._read: dict[tuple[str, int], bytes] = {}

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Use the stored heads for this process alone. Raises Unavailable, StoreError, StorageFull."""
        with exclusive(self.folder):
            self._known = _StoredHeads()
            with suppress(OSError, msgspec.MsgspecError):
                self._known = msgspec.msgpack.decode((self.folder / "heads").read_bytes(), type=_StoredHeads)
            try:
                yield
            finally:
                self._hub.close()

    def _store(self, known: _StoredHeads) -> None:
        with storing(self.folder):
            make_private(self.folder)
            write_whole(self.folder / "heads", msgspec.msgpack.encode(known))
        self._known = known

    # --- states ------------------------------------------------------------------------------------------------------
    def _states(self, where: Where) -> dict[str, _StoredHead]:
        return {"v1": self._known.own, "new": self._new, "taken": self._known.taken}[where]

    def partitions(self, where: Where) -> list[str]:
        """Return the names of the partitions that have such a state."""
        return sorted(self._states(where))

    def tree(self, where: Where, partition: str) -> SharedTree | None:
        """Return a state of a partition. Raises MalformedShare."""
        stored = self._states(where).get(partition)
        return _tree(stored) if stored else None

    def hashes(self, partition: str, tree: SharedTree) -> tuple[bytes, ...]:
        """Return the hashes of a partition's segments, as the hub tells them: the head's signature covers them."""
        return tuple(map(bytes.fromhex, tree.blobs))

    def changed(self, partition: str, tree: SharedTree) -> list[int]:
        """Return the segments that may differ from those taken: in a new epoch all, because a forgotten line keeps the
        hash of its segment."""
        taken = self.tree("taken", partition)
        is_same_epoch = taken is not None and taken.decoded.epoch == tree.decoded.epoch
        before = taken.blobs if taken is not None and is_same_epoch else ()
        return [number for number, blob in enumerate(tree.blobs) if before[number : number + 1] != (blob,)]

    def segment(self, tree: SharedTree, number: int) -> SegmentData:
        """Return a segment; the following ones come with it. Raises RemoteUnreachable, RemoteRefusal, Denied."""
        partition = tree.decoded.partition
        if (partition, number) not in self._read:
            self._read.clear()
            numbers = tuple(range(number, min(number + PAGE, len(tree.blobs))))
            request = HubSegments(pool=self._pool, partition=partition, numbers=numbers)
            reply = self._hub.ask(request, SegmentsAtHub)
            self._read = {(partition, segment.number): segment.data for segment in reply.segments}
        data = self._read.get((partition, number))
        if data is None:
            raise RemoteRefusal("the hub does not have the lines of its head", hint="tell the hub's administrator")
        return SegmentData(number, data)

    # --- the hub's heads ---------------------------------------------------------------------------------------------
    def fetch(self) -> dict[str, str]:
        """Read the hub's heads, and renew the lease. Raises RemoteUnreachable, RemoteRefusal, Denied."""
        reply = self._heads()
        self._read.clear()
        self._new, refused = {}, dict[str, str]()
        for head in reply.heads:
            try:
                decode_head(head.head)
                self._new[head.partition] = _StoredHead(head.head, head.hashes)
            except MalformedShare as error:
                refused[head.partition] = str(error)
        return refused

    def _heads(self, partition: str | None = None) -> HeadsAtHub:
        try:
            reply = self._hub.ask(HubHeads(pool=self._pool, partition=partition), HeadsAtHub)
        except Denied:
            self._daemon.note_lease(self._local_pool, "", 0)
            raise
        self._daemon.note_lease(self._local_pool, reply.subject, reply.pool.until, reply.withheld)
        return reply

    def fetch_one(self, partition: str) -> tuple[str, SharedTree | None]:
        """Read one head: see the port."""
        self._new.pop(partition, None)
        for head in self._heads(partition).heads:
            self._new[partition] = _StoredHead(head.head, head.hashes)
            try:
                tree = _tree(self._new[partition])
            except MalformedShare:
                return "?", None
            return tree.commit, tree
        return "", None

    def remote_refs(self) -> dict[str, str]:
        """Return the hub's partitions with the names of their states."""
        self.fetch()
        return {partition: _tree(stored).commit for partition, stored in self._new.items()}

    def take(self, partition: str) -> None:
        """Note that the daemon has what the hub has."""
        self._store(_StoredHeads(self._known.own, {**self._known.taken, partition: self._new[partition]}))

    # --- the own partition -------------------------------------------------------------------------------------------
    def write(self, head: bytes, segments: Mapping[int, bytes]) -> str:
        """Keep the own partition until it is pushed; return the name of the state."""
        decoded = decode_head(head)
        before = self._known.own.get(decoded.partition)
        hashes = list(before.hashes if before else ())[: segments_of(decoded.count)]
        for number, data in sorted(segments.items()):
            hashes[number : number + 1] = [segment_hash(map(line_hash, split_segment(data)))]
        stored = _StoredHead(head, tuple(hashes))
        first = decode_head(before.head).count if before else 0
        self._written[decoded.partition] = _Written(stored, dict(segments), first)
        return _tree(stored).commit

    def push(self, partition: str, *, over: str | None = None, many: bool = False) -> dict[str, str]:
        """Put the own partition, and read its head back: see the port. `over` and `many` concern git alone: the hub
        compares what it has with each put."""
        written = self._written[partition]
        commit, tree = _tree(written.stored).commit, None
        if self._known.own.get(partition) == written.stored:
            _, tree = self.fetch_one(partition)
        if tree is None or tree.commit != commit:
            self._put(partition, written)
            _, tree = self.fetch_one(partition)
        if tree is None or tree.commit != commit:
            raise RemoteRefusal("the hub took the lines, and does not have them all the same", hint="try again")
        self._store(_StoredHeads({**self._known.own, partition: written.stored}, self._known.taken))
        return {partition: commit}

    def _put(self, partition: str, written: _Written) -> None:
        model, vectors = self._vectors(written)
        request = HubPut(
            pool=self._pool,
            head=written.stored.head,
            hashes=written.stored.hashes,
            segments=tuple(SegmentData(number, data) for number, data in sorted(written.segments.items())),
            model=model,
            vectors=vectors,
        )
        reply = self._hub.ask(request, PutAtHub)
        if reply.problem:
            raise StaleRemote(reply.problem)
        if reply.wanted:
            own = {name: stored for name, stored in self._known.own.items() if name != partition}
            self._store(_StoredHeads(own, self._known.taken))
            raise LostLines("the hub has lost lines of yours")

    def _vectors(self, written: _Written) -> tuple[str, tuple[LineVector, ...]]:
        """Return the embeddings of new statements, and the model that made them."""
        lines = list(_statements(written))
        model, vectors = "", list[LineVector]()
        for start in range(0, len(lines), VECTOR_TEXTS):
            group = lines[start : start + VECTOR_TEXTS]
            embedded = self._daemon.vectors([line.text for line in group])
            model = embedded.model
            vectors += [LineVector(line.n, vector) for line, vector in zip(group, embedded.vectors, strict=False)]
        return model, tuple(vectors)

    def restore(self, remote: Mapping[str, str]) -> tuple[str, ...]:
        """Put nothing back: nobody but its administrator can take anything from a hub."""
        return ()

    def collect(self, *, forgotten: bool = False) -> None:
        """Free what was read."""
        self._read.clear()

    def remove(self) -> None:
        """Remove the stored heads."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _tree(stored: _StoredHead) -> SharedTree:
    """Return a state. Raises MalformedShare."""
    head = decode_head(stored.head)
    commit = f"{head.epoch}.{head.count}.{head.tip}{'.closed' if head.closed else ''}"
    return SharedTree(commit=commit, head=stored.head, blobs=tuple(one.hex() for one in stored.hashes))


def _statements(written: _Written) -> Iterator[AddLine]:
    for number, data in written.segments.items():
        for n, raw in enumerate(split_segment(data), number * SEGMENT):
            if n >= written.first and not raw.startswith(b'{"gone":'):
                line = decode_shared(raw, n)
                if isinstance(line, AddLine):
                    yield line
