"""Frames of a spool file: length, CRC-32, body; how requests wait on disk until the daemon has them (W10).

Comes in: bodies, or a file's content. Goes out: the same. Invariant: a frame that is torn or damaged ends the reading,
so what follows it is seen by whoever looks after the file.
"""

from __future__ import annotations

import struct
import zlib

HEAD = struct.Struct(">II")


def framed(body: bytes) -> bytes:
    """A body as it stands in the file."""
    return HEAD.pack(len(body), zlib.crc32(body)) + body


def frames(content: bytes) -> tuple[list[bytes], int]:
    """The bodies of the frames that hold, and where the last one ends."""
    bodies: list[bytes] = []
    at = 0
    while at + HEAD.size <= len(content):
        size, checksum = HEAD.unpack_from(content, at)
        body = content[at + HEAD.size : at + HEAD.size + size]
        if not size or len(body) < size or zlib.crc32(body) != checksum:
            break
        bodies.append(body)
        at += HEAD.size + size
    return bodies, at
