"""Blocks: successive entries of a log, compressed into one row of the journal or the archive.

A row is MARK, the hash of the header before the block, and the deflated entries. That hash verifies the block before,
so no row stores headers; a payload's hash is stored only where the payload is not. Invariant: a row is never split, so
a search for text in a file finds it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from mmap import mmap

import msgspec

MARK = b"\xb5memd\x02"
"""First bytes of each row. They identify a block in a file even where no row refers to it any more."""

TIP = 32
BEGIN = len(MARK) + TIP
RAW = -15
LEVEL = 6
PAGE = 4096

FULL = PAGE - 16
"""Bytes of the longest row that fits on one page."""

AIM = 3900
"""Target length of a row in bytes. A row longer than FULL is encoded again with fewer entries."""

SHORT = 3000
"""Length in bytes below which the last row stays open: not deflated, so that later entries join it cheaply."""

MOST = 128
"""Maximum number of entries in a block: reading one entry decodes all of them."""

REMOVED = b"removed"
"""Replaces a removed payload. A payload that is missing without this mark is damage."""

REWRITTEN = b"rewritten"
"""Prefix of a payload that replaced another; its own hash follows, the header has the hash of the original."""


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The part of an entry that memd never removes. `at` is microseconds in UTC and strictly increases."""

    seq: int
    previous: bytes
    payload_hash: bytes
    kind: str
    version: int
    at: int


class Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry in a block. `stored`: blind and payload, or their replacement. `payload_hash`: hash of the original, b""
    while `stored` is the original."""

    at: int
    kind: str
    version: int
    stored: bytes
    payload_hash: bytes = b""


_decoder = msgspec.msgpack.Decoder(list[Kept])
_encode = msgspec.msgpack.Encoder().encode


def digest(data: bytes) -> bytes:
    """Hash bytes for the chain."""
    return blake2b(data, digest_size=TIP).digest()


def encode(
    previous: bytes, entries: Sequence[Kept], strategy: int = zlib.Z_DEFAULT_STRATEGY, level: int = LEVEL
) -> bytes:
    """Encode a block that follows the header with the hash `previous`."""
    deflate = zlib.compressobj(level, zlib.DEFLATED, RAW, strategy=strategy)
    return MARK + previous + deflate.compress(_encode(entries)) + deflate.flush()


def decode(row: bytes) -> list[Kept]:
    """Decode the entries of a row. Raises ValueError if the row is no block."""
    if not row.startswith(MARK):
        raise ValueError("unknown block header")
    try:
        return _decoder.decode(zlib.decompress(row[BEGIN:], RAW))
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error


def within(content: bytes | mmap) -> Iterator[bytes]:
    """Yield the inflated bytes, or their readable start, of each block in a file, reachable or not."""
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
    """Return a file's bytes followed by the inflated bytes of its blocks, for a search."""
    return b"\0".join((content, *within(content)))


def is_open(row: bytes) -> bool:
    """Whether a block is not deflated, so that later entries may join it."""
    return not row[BEGIN] & 0b110  # deflate block type 0: stored


def previous_of(row: bytes) -> bytes:
    """Return the hash of the header before a block."""
    return row[len(MARK) : BEGIN]


def header_of(seq: int, previous: bytes, entry: Kept) -> tuple[Header, bytes]:
    """Compute the header of an entry and the header's hash."""
    payload_hash = entry.payload_hash or blake2b(entry.stored, digest_size=TIP).digest()
    header = Header(seq, previous, payload_hash, entry.kind, entry.version, entry.at)
    return header, blake2b(_encode(header), digest_size=TIP).digest()


def rewritten(seq: int, payload: bytes) -> bytes:
    """Return the stored form of a payload that replaces the one of entry `seq`."""
    return REWRITTEN + digest(seq.to_bytes(8) + payload) + payload


def vouched(seq: int, stored: bytes) -> bytes | None:
    """Return the payload of a replacement, None for a removed one. Raises ValueError if its hash does not match."""
    if stored == REMOVED:
        return None
    payload = stored[len(REWRITTEN) + TIP :]
    if stored == rewritten(seq, payload):
        return payload
    raise ValueError(f"entry {seq} does not match its checksum")


class Packer:
    """Packs entries into rows that fill a page. It learns from each row how well entries compress."""

    def __init__(self, *, quick: bool = False) -> None:
        """`quick`: fixed Huffman codes; rows are a tenth longer and take two thirds of the time to read."""
        self._ratio = 0.5
        self.strategy = zlib.Z_FIXED if quick else zlib.Z_DEFAULT_STRATEGY

    def rows(
        self, first: int, tips: Sequence[bytes], entries: Sequence[Kept], *, more: bool = True
    ) -> list[tuple[bytes, bytes]]:
        """Return (seq of the last entry, row) pairs for entries from the seq `first` on. `tips`: the header hash before
        each entry. `more`: entries will follow, so a short last row stays open."""
        rows: list[tuple[bytes, bytes]] = []
        start = 0
        while start < len(entries):
            end = self._estimated_end(entries, start)
            size = sum(len(entry.stored) for entry in entries[start:end])
            if more and end == len(entries) and size * self._ratio < SHORT:
                rows.append(((first + end - 1).to_bytes(8), encode(tips[start], entries[start:end], level=0)))
                break
            row = encode(tips[start], entries[start:end], self.strategy)
            while len(row) > FULL and end - start > 1:
                end = start + max(1, min(end - start - 1, (end - start) * AIM // len(row)))
                row = encode(tips[start], entries[start:end], self.strategy)
            self._ratio = (len(row) - BEGIN) / sum(len(entry.stored) for entry in entries[start:end])
            rows.append(((first + end - 1).to_bytes(8), row))
            start = end
        return rows

    def _estimated_end(self, entries: Sequence[Kept], start: int) -> int:
        """Estimate the end of a block from `start` that reaches AIM."""
        size = len(entries[start].stored)
        end = start + 1
        while end < min(len(entries), start + MOST) and (size + len(entries[end].stored)) * self._ratio < AIM - BEGIN:
            size += len(entries[end].stored)
            end += 1
        return end
