"""One DEALER connection to the daemon's ROUTER over a Unix socket: ZMTP 3.0 with the NULL mechanism.

It uses the standard library alone, because importing pyzmq costs as much as a whole `memd status`. Invariants: it sends
no message before the peer's READY (libzmq would close the connection), and nothing to a peer of another uid; a deadline
that passes while it waits loses no byte, so the connection stays usable.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

from ...protocol.errors import DaemonDown, DeadlineExceeded, MemdError, Refused, Unavailable
from ...protocol.zmtp_frames import COMMAND, GREETING, LONG, MORE, READY_NAME, error_reason, frame, ready

READY = ready(b"DEALER")
FRAME_LIMIT = 256 * 1024 * 1024
_START, _RESTART = "start it: `memd up`", "restart it: `memd down; memd up`"
_AGAIN = "try again; end programs that keep many connections open"


class Deadline:
    """The point on the monotonic clock at which an exchange must be over."""

    def __init__(self, limit_ms: float) -> None:
        self.limit_ms = limit_ms
        self._end = time.monotonic() + limit_ms / 1000

    def left(self) -> float:
        """Return the seconds left, above 0. Raises DeadlineExceeded."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise no_answer(self.limit_ms)
        return left


class Connection:
    """A connected socket. Raises DaemonDown where no daemon listens, Refused for another user's, DeadlineExceeded."""

    def __init__(self, path: Path, deadline: Deadline) -> None:
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._socket = _connect(path, deadline)
        try:
            check_peer(self._socket, path)
            self._write(GREETING + frame(READY, COMMAND), deadline)
            self._fill(64, deadline)
            check_greeting(bytes(self._buffer[:64]), path)
            del self._buffer[:64]
            check_ready(*self._next_frame(deadline), path)
        except BaseException:
            self.close()
            raise

    def send(self, body: bytes, deadline: Deadline) -> None:
        """Send one message of one part. The connection is unusable after an error."""
        self._write(frame(body), deadline)

    def receive(self, deadline: Deadline) -> bytes:
        """Return the next message's last part. The caller may retry after DeadlineExceeded."""
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
        """Whether the other end has closed, as far as this end can tell without waiting."""
        self._socket.setblocking(False)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _next_frame(self, deadline: Deadline) -> tuple[int, bytes]:
        self._fill(2, deadline)
        flags, size, start = self._buffer[0], self._buffer[1], 2
        if flags & LONG:
            self._fill(9, deadline)
            size, start = int.from_bytes(self._buffer[1:9]), 9
        check_frame(flags, size)
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
                raise no_answer(deadline.limit_ms) from error
            except OSError as error:
                raise lost(error) from error
            if not received:
                raise lost()
            self._buffer += received

    def _write(self, content: bytes, deadline: Deadline) -> None:
        self._socket.settimeout(deadline.left())
        try:
            self._socket.sendall(content)
        except TimeoutError as error:
            raise no_answer(deadline.limit_ms) from error
        except OSError as error:
            raise lost(error) from error


def _connect(path: Path, deadline: Deadline) -> socket.socket:
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(deadline.left())
            connection.connect(os.fspath(path))
            return connection
        except BaseException as error:
            connection.close()
            match error:
                case BlockingIOError():  # the queue of waiting connections is full, so a daemon listens
                    time.sleep(min(0.005, deadline.left()))
                case TimeoutError():
                    raise no_answer(deadline.limit_ms) from error
                case OSError():
                    raise connect_error(path, error) from error
                case _:
                    raise


def check_greeting(greeting: bytes, path: Path) -> None:
    """Check the peer's first 64 bytes. Raises Unavailable."""
    if greeting[0] != 0xFF or greeting[10] < 3 or greeting[12:32].rstrip(b"\0") != b"NULL":
        hint = "is another program using the path?"
        raise Unavailable(f"the program at {path} does not speak ZMTP 3", hint=hint)


def check_ready(flags: int, body: bytes, path: Path) -> None:
    """Check the peer's first frame. Raises Unavailable."""
    if not flags & COMMAND or not body.startswith(READY_NAME):
        if reason := error_reason(body):
            raise Unavailable(f"the daemon refused the connection: {reason}", hint=_AGAIN)
        raise Unavailable(f"the program at {path} refused the connection", hint=_RESTART)


def check_frame(flags: int, size: int) -> None:
    """Check a frame's header. Raises Unavailable."""
    if flags > MORE | LONG | COMMAND or size > FRAME_LIMIT:
        raise Unavailable("the daemon sent bytes that are not a ZMTP frame", hint=_RESTART)


def connect_error(path: Path, error: OSError) -> MemdError:
    """Return the error of a failed connect."""
    if isinstance(error, PermissionError):
        return Refused(f"{path} belongs to another user", hint="each user runs their own memd daemon")
    return DaemonDown("the daemon is not running", hint=_START)


def lost(error: Exception | None = None) -> DaemonDown:
    """Return the error of a broken or closed connection."""
    reason = f"the connection broke: {error}" if error else "the daemon closed the connection"
    return DaemonDown(reason, hint=_START)


def no_answer(limit_ms: float) -> DeadlineExceeded:
    """Return the error of a deadline that passed."""
    return DeadlineExceeded(f"no answer within {limit_ms:,.0f} ms", hint="see `memd status`, or give it more time")


def check_peer(connection: socket.socket, path: Path) -> None:
    """Refuse a daemon of another uid: anybody can listen in a temporary directory."""
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    else:
        uid = path.parent.stat().st_uid
    if uid != os.getuid():
        raise Refused(f"the program at {path} runs as uid {uid}", hint="a client connects to its own user's daemon")
