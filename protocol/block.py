"""Blocks: entries of a log that follow one another, squeezed into one row of the journal or the archive.

Comes in: the hash of the header before, entries as they are kept. Goes out: the bytes of a row, and entries again.
Invariants: a row begins with MARK and that hash, which vouches for the block before it, so that no header need hold it;
the hash of a payload is kept only where the payload is not; the rest is deflated, as a whole, because entries resemble
each other more than they do themselves; a row is not cut in two, so that whoever seeks words in a file finds it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from mmap import mmap

import msgspec

MARK = b"\xb5memd\x02"
"""What each row begins with: in a file, even where no row leads to it any more, a block is known by it."""

TIP = 32
BEGIN = len(MARK) + TIP
RAW = -15
LEVEL = 6
PAGE = 4096

FULL = PAGE - 16
"""Bytes of a row that fills a page of its own."""

AIM = 3900
"""Bytes of a row that are aimed at: a longer one than FULL is made again, of fewer entries."""

SHORT = 3000
"""Bytes of a last row that others join: until it is as long it is not deflated, or each of them would do it anew."""

MOST = 128
"""Entries of one block: to read one takes reading all."""

REMOVED = b"removed"
"""What stands in place of a removed payload: one that is merely gone is damage, and is not taken for forgotten."""

REWRITTEN = b"rewritten"
"""What a payload begins with that took the place of another: its own hash follows, the header vouches for the first."""


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The part of an entry that stays for good. `at` is microseconds in UTC and grows strictly."""

    seq: int
    previous: bytes
    payload_hash: bytes
    kind: str
    version: int
    at: int


class Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry in a block: `stored` is blind and payload, or what took their place; `payload_hash` is theirs, b"" while
    they are there."""

    at: int
    kind: str
    version: int
    stored: bytes
    payload_hash: bytes = b""


_decoder = msgspec.msgpack.Decoder(list[Kept])
_encode = msgspec.msgpack.Encoder().encode


def digest(data: bytes) -> bytes:
    """The hash of the chain."""
    return blake2b(data, digest_size=TIP).digest()


def encode(previous: bytes, kept: Sequence[Kept], strategy: int = zlib.Z_DEFAULT_STRATEGY, level: int = LEVEL) -> bytes:
    """The row of a block after the header with the hash `previous`; `decode` reads whichever strategy and level of
    zlib's it is."""
    deflate = zlib.compressobj(level, zlib.DEFLATED, RAW, strategy=strategy)
    return MARK + previous + deflate.compress(_encode(kept)) + deflate.flush()


def decode(row: bytes) -> list[Kept]:
    """The entries of a row. Raises ValueError where it is none."""
    if not row.startswith(MARK):
        raise ValueError("unknown block header")
    try:
        return _decoder.decode(zlib.decompress(row[BEGIN:], RAW))
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error


def within(content: bytes | mmap) -> Iterator[bytes]:
    """What each block in a file says, or what is left of it: also where no row leads to it any more."""
    at = content.find(MARK)
    while at >= 0:
        inflate, parts = zlib.decompressobj(RAW), list[bytes]()
        with suppress(zlib.error):
            for start in range(at + BEGIN, len(content), PAGE):
                parts.append(inflate.decompress(content[start : start + PAGE]))
                if inflate.eof:
                    break
        yield b"".join(parts)
        at = content.find(MARK, at + len(MARK))


def plain(content: bytes) -> bytes:
    """A file's bytes, and after them what the blocks in it say: where words are sought."""
    return b"\0".join((content, *within(content)))


def is_open(row: bytes) -> bool:
    """Whether a block was left as it was said, for others to join it."""
    return not row[BEGIN] & 0b110  # the kind of its first part: stored


def previous_of(row: bytes) -> bytes:
    """The hash of the header before a block."""
    return row[len(MARK) : BEGIN]


def header_of(seq: int, previous: bytes, kept: Kept) -> tuple[Header, bytes]:
    """The header of an entry, from what is there, and its hash."""
    payload_hash = kept.payload_hash or blake2b(kept.stored, digest_size=TIP).digest()
    header = Header(seq, previous, payload_hash, kept.kind, kept.version, kept.at)
    return header, blake2b(_encode(header), digest_size=TIP).digest()


def rewritten(seq: int, payload: bytes) -> bytes:
    """What is stored in place of another payload of the entry `seq`."""
    return REWRITTEN + digest(seq.to_bytes(8) + payload) + payload


def vouched(seq: int, stored: bytes) -> bytes | None:
    """The payload in what is stored in place of another, None where that was removed. Raises ValueError."""
    if stored == REMOVED:
        return None
    payload = stored[len(REWRITTEN) + TIP :]
    if stored == rewritten(seq, payload):
        return payload
    raise ValueError(f"entry {seq} does not match its checksum")


class Packer:
    """Rows for entries, each as long as a page holds. It learns from each row how far entries shrink."""

    def __init__(self, *, quick: bool = False) -> None:
        """`quick`: rows are a tenth longer (fixed codes), and are read in two thirds of the time."""
        self._ratio = 0.5
        self.strategy = zlib.Z_FIXED if quick else zlib.Z_DEFAULT_STRATEGY

    def rows(
        self, first: int, tips: Sequence[bytes], kept: Sequence[Kept], *, more: bool = True
    ) -> list[tuple[bytes, bytes]]:
        """Rows by the seq of the last entry of each, for entries from the seq `first` on, before each of which the
        chain had that tip; with `more` to come, the last one is left open where it is short."""
        rows: list[tuple[bytes, bytes]] = []
        start = 0
        while start < len(kept):
            end = self._end(kept, start)
            size = sum(len(each.stored) for each in kept[start:end])
            if more and end == len(kept) and size * self._ratio < SHORT:
                rows.append(((first + end - 1).to_bytes(8), encode(tips[start], kept[start:end], level=0)))
                break
            row = encode(tips[start], kept[start:end], self.strategy)
            while len(row) > FULL and end - start > 1:
                end = start + max(1, min(end - start - 1, (end - start) * AIM // len(row)))
                row = encode(tips[start], kept[start:end], self.strategy)
            self._ratio = (len(row) - BEGIN) / sum(len(each.stored) for each in kept[start:end])
            rows.append(((first + end - 1).to_bytes(8), row))
            start = end
        return rows

    def _end(self, kept: Sequence[Kept], start: int) -> int:
        """Where a block that begins at `start` is likely to be long enough."""
        size = len(kept[start].stored)
        end = start + 1
        while end < min(len(kept), start + MOST) and (size + len(kept[end].stored)) * self._ratio < AIM - BEGIN:
            size += len(kept[end].stored)
            end += 1
        return end
