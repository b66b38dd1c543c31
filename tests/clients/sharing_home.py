"""A home that shares a project, without a daemon: it answers the requests that carrying sends, and keeps what it knows
in a file, so that a killed process can go on. Run as a program, it pushes and pulls."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from memd.clients.exchange import carrying
from memd.clients.exchange.git_exchange import GitExchange
from memd.daemon.services.sharing.partition_key import verified_head
from memd.protocol.errors import InvalidRequest
from memd.protocol.share import AuthorState, PartitionTaken, PreparedShare, SegmentData, ShareList, ShareState
from memd.protocol.shared_lines import SEGMENT, MalformedShare, check_hashes, decode_head, segments_of, split_segment
from tests.daemon.shared_authors import Author

POOL = "orchard/app"
MOST = 600
"""New lines of a request."""


class Known(msgspec.Struct):
    """What a home knows about another partition, or its own."""

    epoch: int = 0
    lines: list[bytes] = []
    closed: bool = False


class HomeFile(msgspec.Struct):
    """The state of a home."""

    seed: int
    own: dict[str, Known] = {}
    delivered: tuple[str, int, int] = ("", 0, 0)
    taken: dict[str, Known] = {}


class SharingHome:
    """One home in a folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.file = folder, folder / "home.msgpack"
        folder.mkdir(parents=True, exist_ok=True)
        if self.file.exists():
            self.state = msgspec.msgpack.decode(self.file.read_bytes(), type=HomeFile)
        else:
            self.state = HomeFile(seed=seed)
        self.requests = 0
        self.author = Author(self.state.seed)
        if kept := self.state.own.get(self.author.partition):
            self.author.lines, self.author.epoch = list(kept.lines), kept.epoch
            self.author.lamport = len(kept.lines)

    def save(self) -> None:
        self.state.own[self.author.partition] = Known(self.author.epoch, list(self.author.lines))
        fresh = self.file.with_suffix(".new")
        fresh.write_bytes(msgspec.msgpack.encode(self.state))
        fresh.replace(self.file)

    def say(self, *texts: str) -> None:
        for text in texts:
            self.author.add(text)
        self.save()

    def exchange(self, address: str, checkout: Path | None = None) -> GitExchange:
        return GitExchange(self.folder / "share.git", checkout, address)

    def push(self, address: str) -> carrying.Pushed:
        return carrying.push(self, POOL, self.exchange(address))

    def pull(self, address: str) -> carrying.Pulled:
        return carrying.pull(self, POOL, self.exchange(address))

    # --- requests ----------------------------------------------------------------------------------------------------
    def prepare_share(self, pool: str, *, first: int = 0, dry_run: bool = False, earlier: str = "") -> PreparedShare:
        self.requests += 1
        segments = self.author.segments(first)
        page = segments[:2]
        return PreparedShare(
            pool=pool,
            partition=self.author.partition,
            address="",
            epoch=self.author.epoch,
            count=len(self.author.lines),
            head=self.author.head(),
            hashes=self.author.hashes(),
            segments=page,
            next=first + len(page) if len(segments) > len(page) else 0,
            gone=self.author.epoch - self.state.delivered[1],
        )

    def note_delivered(
        self, pool: str, partition: str, epoch: int, count: int, commit: str = "", earlier: str = ""
    ) -> ShareState:
        self.state.delivered = (partition, epoch, count)
        self.save()
        return self._share()

    def renew_partition(self, pool: str, head: bytes, hashes: Sequence[bytes] = ()) -> ShareState:
        try:
            there = verified_head(head)
        except MalformedShare as error:
            raise InvalidRequest(str(error)) from error
        own = self.author.hashes()
        if there.partition != self.author.partition or (
            there.count <= len(self.author.lines)
            and list(own[: there.count // SEGMENT]) == list(hashes[: there.count // SEGMENT])
            and (there.count != len(self.author.lines) or tuple(hashes) == own)
        ):
            raise InvalidRequest("no such line")
        unsent = self.author.lines[self.state.delivered[2] :]
        self.save()
        self.state.seed += 1_000
        self.author = Author(self.state.seed)
        for raw in unsent:
            self.author.add(msgspec.json.decode(raw)["text"])
        self.save()
        return self._share()

    def shares(self, pools: Sequence[str] = ()) -> ShareList:
        return ShareList(shares=(self._share(),))

    def _share(self) -> ShareState:
        own = tuple(AuthorState(partition=name, name="", own=True) for name in self.state.own)
        taken = self.state.taken.items()
        others = tuple(AuthorState(partition=name, name="", lines=len(known.lines)) for name, known in taken)
        return ShareState(pool=POOL, partition=self.author.partition, authors=(*own, *others))

    def take_partition(
        self,
        pool: str,
        head: bytes,
        hashes: Sequence[bytes] = (),
        segments: Sequence[SegmentData] = (),
        *,
        dry_run: bool = False,
    ) -> PartitionTaken:
        self.requests += 1
        partition = decode_head(head).partition
        known = self.state.taken.get(partition, Known())
        try:
            there = verified_head(head)
            check_hashes(hashes, there)
            if (there.epoch, there.count) < (known.epoch, len(known.lines)):
                raise MalformedShare("lines are missing")
        except MalformedShare as error:
            return PartitionTaken(partition=partition, problem=str(error))
        lines, added, forgotten = list(known.lines), 0, 0
        for segment in segments:
            for number, raw in enumerate(split_segment(segment.data), segment.number * SEGMENT):
                if number < len(lines):
                    forgotten += lines[number] != raw
                    lines[number] = raw
                elif number == len(lines) and added < MOST:
                    lines.append(raw)
                    added += 1
        if not dry_run:
            self.state.taken[partition] = Known(there.epoch, lines, there.closed)
            self.save()
        first = len(lines) // SEGMENT
        left = there.count - len(lines)
        wanted = tuple(range(first, min(first + 2, segments_of(there.count)))) if left else ()
        return PartitionTaken(
            partition=partition, name=there.name, added=added, forgotten=forgotten, left=left, wanted=wanted
        )


def main(folder: str, seed: str, address: str, times: str, *steps: str) -> None:
    home = SharingHome(Path(folder), int(seed))
    for time in range(int(times)):
        for step in steps:
            if step == "say":
                home.say(f"statement {time} of {seed}")
            elif step == "push":
                home.push(address)
            else:
                home.pull(address)


if __name__ == "__main__":
    os.umask(0o077)
    main(*sys.argv[1:])
