"""Migrations of the data folder's layout (P-13), and reads of logs of layout 1.

Invariants: every header, payload and replacement of a removed payload stays the same, and the chain ends with the same
hash; an entry that does not match the chain is an error.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
"""The logs of layout 1, each with its other table."""

_headers = msgspec.msgpack.Decoder(Header)


def to_blocks(folder: Path, world: World) -> None:
    """Migrate layout 1 to 2: put entries with a row for the header and one for the payload into blocks.

    Raises JournalCorrupt, StorageFull. `world` is unused.
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
    """Yield each entry between the hash of the previous header and that of its own."""
    seq, tip = 0, bytes(TIP)
    for seq, (header, kept) in enumerate(_entries(old, snapshot), 1):
        computed, after = header_of(seq, tip, kept)
        if computed != header:
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
    """Whether the closed log in this folder has layout 1. Raises JournalCorrupt."""
    with _opened(folder) as (_, snapshot):
        return snapshot.get(b"payloads") is not None


def check_first(folder: Path) -> tuple[int, str]:
    """Check every entry of a log of layout 1 against the chain; return its last seq and the hash of its last header.

    Raises JournalCorrupt; a damaged page may end the process.
    """
    last, tip = 0, b""
    with _opened(folder, "meta", "headers", "payloads") as (environment, snapshot):
        for _, _, after in _chained(environment, snapshot):
            last, tip = last + 1, after
    return last, tip.hex()


def payloads_in_first(folder: Path, kind: str) -> Iterator[bytes]:
    """Yield the remaining payloads of one kind in a log of layout 1, in order. Raises JournalCorrupt."""
    with _opened(folder, "headers", "payloads") as (environment, snapshot):
        for header, entry in _entries(environment, snapshot):
            payload = vouched(header.seq, entry.stored) if entry.payload_hash else entry.stored[BLIND:]
            if header.kind == kind and payload is not None:
                yield payload


def stored_in_first(folder: Path, seqs: Sequence[int]) -> dict[int, bytes]:
    """Return the stored bytes of these entries of a log of layout 1: blind and payload, or their replacement."""
    with _opened(folder, "payloads") as (environment, snapshot):
        rows = {seq: snapshot.get(seq.to_bytes(8), db=environment.db("payloads")) for seq in seqs}
        return {seq: stored for seq, stored in rows.items() if stored is not None}


@contextmanager
def _opened(folder: Path, *tables: str) -> Generator[tuple[Environment, lmdb.Transaction]]:
    environment = Environment(folder, tables, durable=False, readonly=True, alone=True)
    try:
        with environment.read() as snapshot:
            yield environment, snapshot
    finally:
        environment.close()
