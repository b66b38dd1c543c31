"""Sharing by git, against git alone: a push of twenty lines, a pull with nothing new, and a first push of many.

A partition of the measurement's own stands where the daemon's would, unsigned: what is measured is how git carries it.
The same commits go by `git push` and `git fetch` over the same path, in turn.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median

from ...protocol.errors import InvalidRequest
from ...protocol.share import PartitionTaken, PreparedShare, SegmentData, ShareList, ShareState
from ...protocol.shared_lines import (
    SEGMENT,
    AddLine,
    ShareHead,
    ShareMark,
    decode_head,
    encode_head,
    encode_shared,
    line_hash,
    partition_of,
    segment_hash,
    tip_of,
)
from ..exchange import carrying
from ..exchange.git_exchange import GitExchange
from .measurement import BenchOptions, Figure, PartResult, at_most

LINES = 20
TURNS, QUICK_TURNS = 15, 5
MANY, QUICK_MANY = 20_000, 2_000
WORDS = "the plan of this orchard says that every tree has one number and a date of planting in plain text".split()


class _UnsignedPartition:
    """A partition that grows, and the requests of a daemon about it."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._key = self._random.randbytes(32)
        self._lines: list[bytes] = []
        self._hashes: list[bytes] = []
        self.partition = partition_of(self._key)

    def grow(self, count: int) -> None:
        for n in range(len(self._lines), len(self._lines) + count):
            text = " ".join(self._random.choices(WORDS, k=16))
            line = AddLine(n=n, l=n, at=n, b=self._random.randbytes(16).hex(), kind="note", text=f"{text} {n}")
            self._lines.append(encode_shared(line))
        first = max(0, len(self._hashes) - 1)
        starts = range(first * SEGMENT, len(self._lines), SEGMENT)
        self._hashes[first:] = [segment_hash(map(line_hash, self._lines[at : at + SEGMENT])) for at in starts]

    def prepare_share(self, pool: str, *, first: int = 0, dry_run: bool = False) -> PreparedShare:
        numbers = range(first, min(first + 8, len(self._hashes)))
        head = ShareHead(
            share=ShareMark(remote="bench"),
            partition=self.partition,
            key=self._key.hex(),
            name="bench",
            epoch=0,
            count=len(self._lines),
            tip=tip_of(self._hashes),
        )
        return PreparedShare(
            pool=pool,
            partition=self.partition,
            address="",
            epoch=0,
            count=len(self._lines),
            head=encode_head(head),
            hashes=tuple(self._hashes),
            segments=tuple(SegmentData(n, self._segment(n)) for n in numbers),
        )

    def _segment(self, number: int) -> bytes:
        return b"".join(line + b"\n" for line in self._lines[number * SEGMENT : (number + 1) * SEGMENT])

    def note_delivered(self, pool: str, partition: str, epoch: int, count: int, commit: str = "") -> ShareState:
        return ShareState(pool=pool)

    def renew_partition(self, pool: str, head: bytes, hashes: Sequence[bytes] = ()) -> ShareState:
        raise InvalidRequest("only this measurement writes the partition")

    def shares(self, pools: Sequence[str] = ()) -> ShareList:
        return ShareList(shares=(ShareState(pool="bench", partition=self.partition),))

    def take_partition(
        self,
        pool: str,
        head: bytes,
        hashes: Sequence[bytes] = (),
        segments: Sequence[SegmentData] = (),
        *,
        dry_run: bool = False,
    ) -> PartitionTaken:
        return PartitionTaken(partition=decode_head(head).partition)


def transport(options: BenchOptions) -> PartResult:
    """Pushes and pulls of a shared project, against git alone with the same commits."""
    turns, many = (QUICK_TURNS, QUICK_MANY) if options.quick else (TURNS, MANY)
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as name:
        folder = Path(name)
        remote, bare = folder / "remote.git", folder / "bare.git"
        for repository in (remote, bare):
            _git(folder, "init", "-q", "--bare", str(repository))
        author, reader = _UnsignedPartition(options.seed), _UnsignedPartition(options.seed + 1)
        private = folder / "author.git"
        exchange = GitExchange(private, None, str(remote))
        reading = GitExchange(folder / "reader.git", None, str(remote))
        author.grow(LINES)
        carrying.push(author, "bench", exchange)
        carrying.pull(reader, "bench", reading)
        spec, fetched = f"refs/memd/v1/{author.partition}", "+refs/memd/v1/*:refs/bench/*"
        _git(private, "push", "-q", str(bare), spec)
        pushes: list[float] = []
        pushed: list[float] = []
        pulls: list[float] = []
        pulled: list[float] = []
        for turn in range(turns):
            options.progress(f"{turn + 1} of {turns}")
            author.grow(LINES)
            pushes.append(_seconds(lambda: carrying.push(author, "bench", exchange)))
            pushed.append(_seconds(lambda: _git(private, "push", "-q", str(bare), spec)))
            carrying.pull(reader, "bench", reading)
            pulls.append(_seconds(lambda: carrying.pull(reader, "bench", reading)))
            _git(folder / "reader.git", "fetch", "-q", str(remote), fetched)
            pulled.append(_seconds(lambda: _git(folder / "reader.git", "fetch", "-q", str(remote), fetched)))
        author.grow(many)
        first = _seconds(lambda: carrying.push(author, "bench", exchange))
    push, floor = median(pushes) * 1000, median(pushed) * 1000
    pull, nothing = median(pulls) * 1000, median(pulled) * 1000
    figures = (
        Figure(f"push of {LINES} lines", push, "ms", floor, turns, at_most(1.5, times=True)),
        Figure("  git push", floor, "ms", samples=turns),
        Figure("pull with nothing new", pull, "ms", nothing, turns, at_most(1.3, times=True)),
        Figure("  git fetch", nothing, "ms", samples=turns),
        Figure(f"push of {many:,} lines", first, "s"),
    )
    return PartResult(figures, shows_not="the daemon's part (rendering, checking, the journal), and a network")


def _seconds(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)
