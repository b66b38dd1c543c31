"""One DEALER connection to the daemon's ROUTER, spoken by hand: ZMTP 3.0, NULL mechanism, over a Unix socket.

Comes in: a socket's path and message bodies. Goes out: message bodies, or DaemonDown, DeadlineExceeded, Unavailable.
Importing pyzmq costs as much as a whole `memd status`, so this uses the standard library alone. Invariants: nothing is
sent before the peer's READY (libzmq would close the connection); one deadline covers a whole exchange; a deadline that
passes while waiting loses no byte, so the connection stays usable; a peer of another uid is never spoken to.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

from ...protocol.errors import DaemonDown, DeadlineExceeded, Refused, Unavailable

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" + bytes(31)
READY = b"\x05READY" + b"\x0bSocket-Type" + struct.pack("!I", 6) + b"DEALER" + b"\x08Identity" + struct.pack("!I", 0)
MORE, LONG, COMMAND = 1, 2, 4
FRAME_LIMIT = 256 * 1024 * 1024
_START = "start it: `memd up`"


class Deadline:
    """A point on the monotonic clock by which a whole exchange must be over."""

    def __init__(self, limit_ms: float) -> None:
        self.limit_ms = limit_ms
        self._end = time.monotonic() + limit_ms / 1000

    def left(self) -> float:
        """Seconds left, above 0. Raises DeadlineExceeded."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.exceeded()
        return left

    def exceeded(self) -> DeadlineExceeded:
        """The error to raise when it is over."""
        return DeadlineExceeded(
            f"no answer within {self.limit_ms:,.0f} ms", hint="see `memd status`, or give it more time"
        )


class Connection:
    """A connected socket. Raises DaemonDown when nobody listens, Refused for a stranger, DeadlineExceeded in time."""

    def __init__(self, path: Path, deadline: Deadline) -> None:
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._socket = _connect(path, deadline)
        try:
            check_peer(self._socket, path)
            self._write(GREETING + frame(READY, COMMAND), deadline)
            self._shake_hands(path, deadline)
        except BaseException:
            self.close()
            raise

    def _shake_hands(self, path: Path, deadline: Deadline) -> None:
        self._fill(64, deadline)
        greeting = bytes(self._buffer[:64])
        if greeting[0] != 0xFF or greeting[10] < 3 or greeting[12:32].rstrip(b"\0") != b"NULL":
            raise Unavailable(
                f"what listens on {path} does not speak ZMTP 3", hint="is another program using the path?"
            )
        del self._buffer[:64]
        flags, body = self._next_frame(deadline)
        if not flags & COMMAND or not body.startswith(b"\x05READY"):
            raise Unavailable(f"what listens on {path} refused the connection", hint="restart it: `memd down; memd up`")

    def send(self, body: bytes, deadline: Deadline) -> None:
        """One message of one part. Afterwards the connection is unusable if this raised."""
        self._write(frame(body), deadline)

    def receive(self, deadline: Deadline) -> bytes:
        """The next message's last part. After a DeadlineExceeded it may be asked again."""
        while True:
            flags, body = self._next_frame(deadline)
            if flags & COMMAND:
                if body.startswith(b"\x04PING"):
                    self._write(frame(b"\x04PONG" + body[7:], COMMAND), deadline)
                continue
            self._parts.append(body)
            if not flags & MORE:
                parts, self._parts = self._parts, []
                return parts[-1]

    def is_closed_by_peer(self) -> bool:
        """Whether the other end has hung up, as far as this end can tell without waiting."""
        self._socket.setblocking(False)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Hangs up."""
        self._socket.close()

    def _next_frame(self, deadline: Deadline) -> tuple[int, bytes]:
        self._fill(2, deadline)
        flags, size, start = self._buffer[0], self._buffer[1], 2
        if flags & LONG:
            self._fill(9, deadline)
            size, start = int.from_bytes(self._buffer[1:9]), 9
        if flags > MORE | LONG | COMMAND or size > FRAME_LIMIT:
            raise Unavailable("the daemon sent bytes that are no ZMTP frame", hint="restart it: `memd down; memd up`")
        self._fill(start + size, deadline)
        body = bytes(self._buffer[start : start + size])
        del self._buffer[: start + size]
        return flags, body

    def _fill(self, size: int, deadline: Deadline) -> None:
        while len(self._buffer) < size:
            self._socket.settimeout(deadline.left())
            try:
                received = self._socket.recv(max(65536, size - len(self._buffer)))
            except TimeoutError as error:
                raise deadline.exceeded() from error
            except OSError as error:
                raise DaemonDown(f"the connection broke: {error}", hint=_START) from error
            if not received:
                raise DaemonDown("the daemon closed the connection", hint=_START)
            self._buffer += received

    def _write(self, content: bytes, deadline: Deadline) -> None:
        self._socket.settimeout(deadline.left())
        try:
            self._socket.sendall(content)
        except TimeoutError as error:
            raise deadline.exceeded() from error
        except OSError as error:
            raise DaemonDown(f"the connection broke: {error}", hint=_START) from error


def frame(body: bytes, flags: int = 0) -> bytes:
    """One ZMTP frame."""
    size = len(body)
    head = struct.pack("!BB", flags, size) if size < 256 else struct.pack("!BQ", flags | LONG, size)
    return head + body


def _connect(path: Path, deadline: Deadline) -> socket.socket:
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(deadline.left())
            connection.connect(os.fspath(path))
            return connection
        except BlockingIOError:  # the queue of waiting connections is full, which says that somebody listens
            connection.close()
            time.sleep(min(0.005, deadline.left()))
        except TimeoutError as error:
            connection.close()
            raise deadline.exceeded() from error
        except PermissionError as error:
            connection.close()
            raise Refused(
                f"{path} belongs to another user", hint="memd serves each user by a daemon of their own"
            ) from error
        except OSError as error:
            connection.close()
            raise DaemonDown("the daemon is not running", hint=_START) from error
        except BaseException:
            connection.close()
            raise


def check_peer(connection: socket.socket, path: Path) -> None:
    """Refuses a daemon of another uid: the folder may lie in the temporary directory, where anybody can listen."""
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    else:
        uid = path.parent.stat().st_uid
    if uid != os.getuid():
        raise Refused(f"what listens on {path} runs as uid {uid}", hint="memd talks to a daemon of the same user only")
