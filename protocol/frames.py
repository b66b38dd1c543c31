"""Frames of a spool file: length, CRC-32, body of one request (W10).

Invariant: reading ends at a torn or damaged frame, and the caller learns where.
"""

from __future__ import annotations

import struct
import zlib

HEAD = struct.Struct(">II")


def framed(body: bytes) -> bytes:
    """Return the frame of a body."""
    return HEAD.pack(len(body), zlib.crc32(body)) + body


def frames(content: bytes) -> tuple[list[bytes], int]:
    """Return the bodies of the intact frames, and the offset where the last one ends."""
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
