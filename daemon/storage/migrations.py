"""The ways from older layouts of the data folder to the next (P-13).

Comes in: the stores of a folder of which a copy lies in `backups/`. Goes out: the same entries, as the next layout
keeps them. Invariants: every header and payload, and what stands in place of a removed one, is what it was: the chain
ends with the same hash; an entry that the chain does not vouch for is an error, never carried over.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import lmdb
import msgspec

from ...protocol.block import TIP, Header, Kept, Packer, digest, header_of, vouched
from ...protocol.errors import JournalCorrupt
from ..world import World
from .durable_files import sync
from .lmdb_environment import Environment
from .log import BLIND

LAYOUT = 2
"""The layout this version writes. 1: `journal/` and `archive/` (LMDB), `projections/` and `vectors/` (disposable).
2: the entries of both logs lie in blocks."""

GROUP = 512
FIRST: Mapping[str, str] = {"journal": "remnants", "archive": "index"}
"""The logs of layout 1, each with the table beside its entries."""

_headers = msgspec.msgpack.Decoder(Header)


def to_blocks(folder: Path, world: World) -> None:
    """Layout 1 to 2: entries that had a row for the header and one for the payload go into blocks.

    Raises JournalCorrupt, StorageFull. `world` is not asked.
    """
    for name, beside in FIRST.items():
        fresh = folder / f"{name}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        old = Environment(folder / name, ("meta", "headers", "payloads", beside), durable=False)
        new = Environment(fresh, ("meta", "blocks", beside), durable=False, alone=True)
        try:
            _pack(old, new, beside)
            new.sync()
        finally:
            new.close()
            old.close()
        (fresh / "data.mdb").replace(folder / name / "data.mdb")
        shutil.rmtree(fresh)
        sync(folder / name)


def _pack(old: Environment, new: Environment, beside: str) -> None:
    packer, first, tip = Packer(quick=beside == FIRST["journal"]), 1, b""
    with old.read() as snapshot:
        entries = _chained(old, snapshot)
        while group := list(islice(entries, GROUP)):
            rows = packer.rows(first, [before for before, _, _ in group], [kept for _, kept, _ in group], more=False)
            new.write(lambda into, rows=rows: into.cursor(new.db("blocks")).putmulti(rows, append=True))
            first += len(group)
            tip = group[-1][2]
        for name in ("meta", beside):
            rows = list(snapshot.cursor(old.db(name)).iternext())
            new.write(lambda into, rows=rows, name=name: into.cursor(new.db(name)).putmulti(rows))
    news = {b"format": b"2", **({b"tip": tip} if first > 1 else {})}
    new.write(lambda into: into.cursor(new.db("meta")).putmulti(list(news.items())))


def _chained(old: Environment, snapshot: lmdb.Transaction) -> Iterator[tuple[bytes, Kept, bytes]]:
    """Each entry between the hash of the header before it and that of its own."""
    seq, tip = 0, bytes(TIP)
    for seq, (header, kept) in enumerate(_entries(old, snapshot), 1):
        found, after = header_of(seq, tip, kept)
        if found != header:
            raise JournalCorrupt(f"the chain breaks at entry {seq}", hint="see `memd restore-backup`")
        yield tip, kept, after
        tip = after
    if snapshot.get(b"tip", db=old.db("meta")) not in (None, tip):
        raise JournalCorrupt(f"entry {seq} is not the last one", hint="see `memd restore-backup`")


def _entries(old: Environment, snapshot: lmdb.Transaction) -> Iterator[tuple[Header, Kept]]:
    headers, payloads = (snapshot.cursor(old.db(name)).iternext() for name in ("headers", "payloads"))
    for (key, raw), (place, stored) in zip_longest(headers, payloads, fillvalue=(b"", b"")):
        header = _headers.decode(raw) if key == place else None
        if header is None or int.from_bytes(key) != header.seq:
            missing = int.from_bytes(key or place)
            raise JournalCorrupt(f"there is no entry {missing}", hint="see `memd restore-backup`")
        own = digest(stored) == header.payload_hash
        if not own:
            try:
                vouched(header.seq, stored)
            except ValueError as error:
                raise JournalCorrupt(str(error), hint="see `memd restore-backup`") from error
        yield header, Kept(header.at, header.kind, header.version, stored, b"" if own else header.payload_hash)


def is_first(folder: Path) -> bool:
    """Whether the log in this folder, which nobody has open, is of layout 1. Raises JournalCorrupt."""
    environment = Environment(folder, (), durable=False, readonly=True, alone=True)
    try:
        with environment.read() as snapshot:
            return snapshot.get(b"payloads") is not None
    finally:
        environment.close()


def check_first(folder: Path) -> tuple[int, str]:
    """The last seq of a log of layout 1 and the hash of its header, every entry held against the chain.

    Raises JournalCorrupt; a damaged page may end the process.
    """
    environment = Environment(folder, ("meta", "headers", "payloads"), durable=False, readonly=True, alone=True)
    last, tip = 0, b""
    try:
        with environment.read() as snapshot:
            for _, _, after in _chained(environment, snapshot):
                last, tip = last + 1, after
        return last, tip.hex()
    finally:
        environment.close()


def payloads_in_first(folder: Path, kind: str) -> Iterator[bytes]:
    """The payloads of one kind that a log of layout 1 still holds, in order. Raises JournalCorrupt."""
    environment = Environment(folder, ("headers", "payloads"), durable=False, readonly=True, alone=True)
    try:
        with environment.read() as snapshot:
            for header, kept in _entries(environment, snapshot):
                left = vouched(header.seq, kept.stored) if kept.payload_hash else kept.stored[BLIND:]
                if header.kind == kind and left is not None:
                    yield left
    finally:
        environment.close()


def stored_in_first(folder: Path, seqs: Sequence[int]) -> dict[int, bytes]:
    """What stands in a log of layout 1 at these seqs: blind and payload, or what took their place."""
    environment = Environment(folder, ("payloads",), durable=False, readonly=True, alone=True)
    try:
        with environment.read() as snapshot:
            found = {seq: snapshot.get(seq.to_bytes(8), db=environment.db("payloads")) for seq in seqs}
            return {seq: stored for seq, stored in found.items() if stored is not None}
    finally:
        environment.close()
