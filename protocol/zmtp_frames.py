"""The bytes of ZMTP 3.0 with the NULL mechanism, as both ends of a connection write them.

Source: https://rfc.zeromq.org/spec/23/. An end sends `GREETING` and a READY command, and messages once it has the other
end's READY. ERROR in its place refuses the connection.
"""

from __future__ import annotations

import struct

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" + bytes(31)
MORE, LONG, COMMAND = 1, 2, 4
READY_NAME, ERROR_NAME = b"\x05READY", b"\x05ERROR"
_REASON_LIMIT = 255


def frame(body: bytes, flags: int = 0) -> bytes:
    """One ZMTP frame."""
    size = len(body)
    head = struct.pack("!BB", flags, size) if size < 256 else struct.pack("!BQ", flags | LONG, size)
    return head + body


def ready(socket_type: bytes) -> bytes:
    """Return the body of a READY command."""
    return READY_NAME + b"".join(
        bytes([len(name)]) + name + struct.pack("!I", len(content)) + content
        for name, content in ((b"Socket-Type", socket_type), (b"Identity", b""))
    )


def error(reason: str) -> bytes:
    """Return the body of an ERROR command; it has room for 255 bytes of the reason."""
    content = reason.encode()[:_REASON_LIMIT]
    return ERROR_NAME + bytes([len(content)]) + content


def error_reason(body: bytes) -> str | None:
    """Return the reason in the body of an ERROR command, None of another body."""
    return body[7 : 7 + body[6]].decode(errors="replace") if body.startswith(ERROR_NAME) and len(body) > 6 else None
