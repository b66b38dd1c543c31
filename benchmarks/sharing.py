"""Measurements of sharing inside the daemon's code: signed partitions of invented authors, and how fast memd checks
them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from ..daemon.services.sharing.partition_key import PartitionKey
from ..daemon.services.sharing.shared_records import read_line
from ..daemon.world import World
from ..protocol.errors import InvalidRequest
from ..protocol.partition_acceptance import KnownPartition, accept
from ..protocol.places import Places
from ..protocol.share import TAKEN_SEGMENTS, SegmentData
from ..protocol.shared_lines import (
    SEGMENT,
    AddLine,
    ShareHead,
    ShareMark,
    decode_head,
    encode_shared,
    line_hash,
    of_repository,
    segment_hash,
    split_segment,
    tip_of,
    verified_head,
)

AT = 1_790_000_000_000_000
_THINGS = "press barrel orchard ladder pump cellar gate tractor scale kettle crate sprayer fence well".split()
_DOES = "feeds closes cleans measures starts blocks lights heats carries checks fills stops".split()
_WHY = "because the shed has one line; after the first frost; before the market opens; while the west row sleeps"


def write_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`write-partitions AUTHORS LINES ROOT FOLDER`: partitions of a project with that root commit, each a folder with
    the files that git carries."""
    if len(arguments) != 4 or not (arguments[0].isdigit() and arguments[1].isdigit()):
        raise InvalidRequest("how many?", hint="python -m memd.benchmarks write-partitions 10 20000 COMMIT FOLDER")
    authors, count, root, folder = int(arguments[0]), int(arguments[1]), arguments[2], Path(arguments[3])
    names = [_write(folder, number, count, ShareMark(root=root)) for number in range(authors)]
    return {"partitions": names}


def _write(folder: Path, number: int, count: int, mark: ShareMark) -> str:
    chance = Random(number)
    key = PartitionKey.of(chance.randbytes(32))
    lines = [_line(number, n, chance) for n in range(count)]
    ops = folder / key.partition / "ops"
    ops.mkdir(parents=True)
    hashes: list[bytes] = []
    for place, start in enumerate(range(0, count, SEGMENT)):
        part = lines[start : start + SEGMENT]
        hashes.append(segment_hash(map(line_hash, part)))
        (ops / f"{place:06}.jsonl").write_bytes(b"".join(line + b"\n" for line in part))
    head = ShareHead(
        share=mark,
        partition=key.partition,
        key=key.public.hex(),
        name=f"author {number}",
        epoch=0,
        count=count,
        tip=tip_of(hashes),
        lamport=count,
        at=AT + count,
    )
    (ops.parent / "head.json").write_bytes(key.signed(head))
    return key.partition


def _line(author: int, n: int, chance: Random) -> bytes:
    thing, other, does = chance.choice(_THINGS), chance.choice(_THINGS), chance.choice(_DOES)
    why = chance.choice(_WHY.split("; "))
    text = f"The {thing} {author}-{n} {does} the {other} in room {chance.randrange(10_000)}, {why}."
    blind = chance.randbytes(16).hex()
    return encode_shared(
        AddLine(n=n, l=n + 1, at=AT + n, b=blind, kind="note", text=text, type="decision", said="2026-11-20")
    )


def check_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`check-partitions FOLDER`: the lines of all partitions there, the seconds that it takes to verify that they are
    their authors', as requests bring them, and the seconds that the rules take over them."""
    lines, verifying, reading = 0, 0.0, 0.0
    for folder in sorted(Path(arguments[0]).iterdir()):
        raw = (folder / "head.json").read_bytes()
        parts = [SegmentData(n, file.read_bytes()) for n, file in enumerate(sorted((folder / "ops").iterdir()))]
        hashes = [segment_hash(map(line_hash, split_segment(part.data))) for part in parts]
        begin = time.perf_counter()
        fresh = list(_verified(raw, hashes, parts))
        verifying += time.perf_counter() - begin
        lamport = decode_head(raw).lamport
        begin = time.perf_counter()
        for number, line in enumerate(fresh):
            read_line(line, number, lamport)
        reading += time.perf_counter() - begin
        lines += len(fresh)
    return {"lines": lines, "verifying": verifying, "reading": reading}


def _verified(raw: bytes, hashes: Sequence[bytes], parts: Sequence[SegmentData]) -> Iterator[bytes]:
    """Yield the lines of a partition, as a daemon accepts them from one request after the other."""
    count = 0
    for start in range(0, len(parts), TAKEN_SEGMENTS):
        head = verified_head(raw)
        marks = {of_repository(head.share.root, head.share.remote)}
        known = KnownPartition(count=count, hashes=hashes[:start])
        accepted = accept(known, head, hashes, parts[start : start + TAKEN_SEGMENTS], marks)
        count += len(accepted.fresh)
        yield from accepted.fresh
