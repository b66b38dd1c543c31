"""One accepted connection of a client: ZMTP 3.0 in, ZMTP 3.0 out, and what the client may make memd keep.

libzmq reads a message of any number of frames into memory, counts replies and not their bytes, and ends the process
when it can't accept a connection, so the server reads the socket itself (docs/decisions/0004). Invariants: nothing here
blocks; only the request server's thread uses a connection.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable

from ...protocol.wire import BODY_LIMIT
from ...protocol.zmtp_frames import COMMAND, GREETING, LONG, MORE, READY_NAME, error, frame, ready

MESSAGE_LIMIT = 2 * BODY_LIMIT
"""Bytes of all frames of a message above which memd closes the connection; from BODY_LIMIT on the sender gets an
error."""

FRAMES = 16
"""Most frames of a message: a body behind the envelopes that ZeroMQ proxies add."""

ENVELOPE_LIMIT = 1024
"""Bytes of a frame before the last; an identity has at most 255."""

HANDSHAKE_LIMIT = 4096
UNREAD_BYTES = 1024 * 1024
"""Replies that a client has not read, above which memd takes no more of its requests."""

REQUEST_BYTES = 4 * 1024 * 1024
WINDOW = 10_000
"""Requests in progress of one client, in bytes and in number, above which memd takes no more of them."""

_PIECE = 65_536
_ROUTER_READY = frame(ready(b"ROUTER"), COMMAND)
_PEERS = frozenset({b"DEALER", b"REQ", b"ROUTER"})


class ZmtpViolation(Exception):
    """The client sent bytes that ZMTP or a limit does not allow; the message says which. The connection ends."""


class ClientConnection:
    """The socket of a client with its unfinished message and its unsent replies."""

    def __init__(self, channel: socket.socket) -> None:
        """`channel`: not blocking."""
        self.channel = channel
        self.slow: deque[Callable[[], None]] = deque()
        """Requests that wait for the slow lane, of which one at a time of each client is in it."""
        self.in_slow_lane = False
        self.requests = self.slow_bytes = self.write_bytes = 0
        """Requests in progress, and the sizes of those for the slow lane and for the write lane."""
        self.is_queued = self.is_closed = False
        self.is_refused = False
        self.active_at = 0.0
        """When its last message arrived, in seconds of the monotonic clock."""
        self.events = self.counted = 0
        """The events that the selector waits for; the bytes that the table has counted."""
        self._input, self._start = bytearray(), 0
        self._output = bytearray(GREETING)
        self._frames: list[bytes] = []
        self._size = 0
        self._is_greeted = self._is_ready = self._is_deaf = False

    @property
    def has_input(self) -> bool:
        """Whether bytes wait that no message was made of."""
        return self._start < len(self._input)

    @property
    def unread_bytes(self) -> int:
        """Bytes of the replies that the client has not read and the kernel does not hold."""
        return len(self._output)

    @property
    def held_bytes(self) -> int:
        """Bytes that memd keeps for this client; the write queue counts its requests itself."""
        return len(self._input) - self._start + self._size + len(self._output) + self.slow_bytes

    @property
    def can_take_replies(self) -> bool:
        """Whether the client reads enough of its replies to get more of them."""
        return len(self._output) <= UNREAD_BYTES

    @property
    def has_room(self) -> bool:
        """Whether memd may take one more request."""
        in_progress = self.slow_bytes + self.write_bytes
        return self.can_take_replies and in_progress <= REQUEST_BYTES and self.requests < WINDOW

    @property
    def is_idle(self) -> bool:
        """Whether closing the connection interrupts nothing that memd does for the client."""
        return not self.requests and not self._output

    def receive(self) -> bool:
        """Read what has arrived; False at the end of the stream. Raises OSError."""
        try:
            piece = self.channel.recv(_PIECE)
        except (BlockingIOError, InterruptedError):
            return True
        if self._start:
            del self._input[: self._start]
            self._start = 0
        self._input += piece
        return bool(piece)

    def discard(self) -> bool:
        """Read and drop what has arrived; False at the end of the stream. Raises OSError."""
        try:
            return bool(self.channel.recv(_PIECE))
        except (BlockingIOError, InterruptedError):
            return True

    def next_message(self) -> list[bytes] | None:
        """Return the frames of the next message, None until all have arrived. Raises ZmtpViolation."""
        if not self._is_ready and not self._shake_hands():
            return None
        while (taken := self._next_frame(MESSAGE_LIMIT)) is not None:
            flags, body = taken
            if flags & COMMAND:
                if body.startswith(b"\x04PING"):
                    self.send(frame(b"\x04PONG" + body[7:23], COMMAND))
                continue
            self._frames.append(body)
            self._size += len(body)
            if not flags & MORE:
                frames, self._frames, self._size = self._frames, [], 0
                return frames
            if len(self._frames) >= FRAMES:
                raise ZmtpViolation(f"a message of more than {FRAMES} frames")
        return None

    def send(self, content: bytes) -> None:
        """Send bytes, or keep those that the kernel does not take. The replies to a client that has closed are lost."""
        if self._is_deaf:
            return
        if self._output:
            self._output += content
            return
        try:
            sent = self.channel.send(content)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._is_deaf = True  # its last requests may still be in the kernel's buffer
            return
        if sent < len(content):
            self._output += memoryview(content)[sent:]

    def flush(self) -> None:
        """Send what is unsent, as far as the kernel takes it."""
        try:
            sent = self.channel.send(self._output)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._is_deaf, sent = True, len(self._output)
        del self._output[:sent]

    def refuse(self, reason: str) -> None:
        """Answer the greeting with an error in place of READY; nothing else is sent or read."""
        self.is_refused = True
        self._output += frame(error(reason), COMMAND)
        self.flush()

    def close(self) -> None:
        """Close the socket and drop what was kept for it."""
        self.is_closed = True
        self.slow.clear()
        self._input, self._start, self._output = bytearray(), 0, bytearray()
        self._frames, self._size, self.slow_bytes = [], 0, 0
        self.channel.close()

    def _shake_hands(self) -> bool:
        """Read greeting and READY; False until both have arrived. Raises ZmtpViolation."""
        if not self._is_greeted:
            if not self._is_greeting_complete():
                return False
            self._is_greeted = True
            self._start = len(GREETING)
            self.send(_ROUTER_READY)
        taken = self._next_frame(HANDSHAKE_LIMIT)
        if taken is None:
            return False
        flags, body = taken
        if not flags & COMMAND or not body.startswith(READY_NAME):
            raise ZmtpViolation("no READY after the greeting")
        if _socket_type(body) not in _PEERS:
            raise ZmtpViolation("a socket type that sends no requests")
        self._is_ready = True
        return True

    def _is_greeting_complete(self) -> bool:
        """Check the bytes of the greeting that have arrived. Raises ZmtpViolation."""
        start = bytes(self._input[: len(GREETING)])
        if start and (start[0] != 0xFF or (len(start) > 9 and not start[9] & 1)):
            raise ZmtpViolation("no ZMTP greeting")
        if len(start) > 10 and start[10] < 3:
            raise ZmtpViolation("a ZMTP version before 3")
        if len(start) >= 32 and start[12:32].rstrip(b"\0") != b"NULL":
            raise ZmtpViolation("a security mechanism other than NULL")
        return len(start) == len(GREETING)

    def _next_frame(self, limit: int) -> tuple[int, bytes] | None:
        """Return flags and body of the next frame, None until it is complete. Raises ZmtpViolation."""
        content, start = self._input, self._start
        arrived = len(content) - start
        if arrived < 2:
            return None
        flags, size = content[start], content[start + 1]
        if flags & ~(MORE | LONG | COMMAND):
            raise ZmtpViolation("flags that ZMTP does not define")
        start += 2
        if flags & LONG:
            if arrived < 9:
                return None
            size, start = int.from_bytes(content[start - 1 : start + 7]), start + 7
        if flags & MORE and size > ENVELOPE_LIMIT:
            raise ZmtpViolation(f"a frame of more than {ENVELOPE_LIMIT:,} bytes before the last")
        if size + self._size > limit:
            raise ZmtpViolation(f"a message of more than {limit:,} bytes")
        end = start + size
        if end > len(content):
            return None
        body = bytes(content[start:end])
        self._start = end
        return flags, body


def _socket_type(command: bytes) -> bytes:
    """Return the property Socket-Type of a READY command, b"" without one."""
    at = len(READY_NAME)
    while at < len(command):
        name_end = at + 1 + command[at]
        name, end = command[at + 1 : name_end].lower(), name_end + 4
        content = command[end : end + int.from_bytes(command[name_end:end])]
        if name == b"socket-type":
            return content
        at = end + len(content)
    return b""
