"""The request server: one socket and one thread, which answers fast requests and queues the others.

Invariants: each message gets a reply while its client reads; only this thread touches the connections, other threads
use `ReplyQueue`; a round answers at most one request of each client, so that none waits for another's many; waiting
reads go before captures, of which a round admits at most `CAPTURE_BYTES`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

from ...protocol.errors import MemdError, Unavailable
from ...protocol.reply import AnyData
from ...protocol.request import AnyRequest
from ...protocol.secret_gate import SecretGate
from ...protocol.wire import Form, decode_request, encode_data, encode_error, form, head, prepare
from ...protocol.zmtp_frames import MORE, frame
from ..services.admission import bug
from ..services.service import Lane, Respond
from ..world import World
from .client_connection import ClientConnection, ZmtpViolation
from .connection_table import ConnectionTable, listening
from .dispatch import Dispatcher
from .long_polls import LongPolls

ROUND = 256
"""Most messages of one client in a round."""

REST_S = 10.0
"""Longest wait for something to do; other threads wake the server."""

LINGER_S = 0.5
"""Longest time for which a stopping server sends what is unsent."""

TOGETHER_S = 0.0001
"""Pause between rounds while captures of several clients arrive: they get their answers together, and
a round costs as much as a request."""

CAPTURE_BYTES = 256 * 1024
WAITING_BYTES = 32 * 1024 * 1024
WAITING_REQUESTS = 20_000
"""Requests that may wait for the write thread; above it a client gets an error, and its spool keeps them."""

log = logging.getLogger("memd.server")


class Arrival(NamedTuple):
    """Where a message came from: its connection, the frames before its body, and the size of the body in bytes."""

    connection: ClientConnection
    envelope: list[bytes]
    size: int


class Received(NamedTuple):
    """A decoded request, where it came from, and the form of its answer."""

    arrival: Arrival
    request: AnyRequest
    form: Form


class QueuedReply(NamedTuple):
    """The encoded answer to a message, and the lane that made it."""

    arrival: Arrival
    body: bytes
    lane: Lane


class ReplyQueue:
    """Replies on their way to the socket. Any thread puts; the request server's thread takes."""

    def __init__(self) -> None:
        self._replies: queue.SimpleQueue[QueuedReply] = queue.SimpleQueue()
        self.inside, self._outside = os.pipe()
        """The end of a pipe that the request server polls, and the other one."""
        os.set_blocking(self.inside, False)
        os.set_blocking(self._outside, False)
        self._lock = threading.Lock()
        self._woken = self._closed = False

    @property
    def is_empty(self) -> bool:
        """Whether no reply waits."""
        return self._replies.empty()

    def put(self, reply: QueuedReply) -> None:
        """Queue a reply."""
        self._replies.put(reply)
        self.wake()

    def get(self) -> QueuedReply:
        """Take the next reply."""
        return self._replies.get()

    def wake(self) -> None:
        """Wake the request server, once for all replies that wait."""
        if self._woken:
            return
        with self._lock:
            self._woken = True
            if not self._closed:
                with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
                    os.write(self._outside, b"\0")

    def drain_wakes(self) -> None:
        """Consume the wake-ups so far. Call it before taking replies: a later reply wakes again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.inside, 4096)
        self._woken = False

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        """Wake the request server once, after all replies within: the first wake-up would cost the interpreter."""
        self._woken = True
        try:
            yield
        finally:
            self._woken = False
            self.wake()

    def close(self) -> None:
        """Close the pipe."""
        with self._lock:
            self._closed = True
            os.close(self._outside)
        os.close(self.inside)


class RequestServer:
    """The connections with their thread, and the thread of the slow lane."""

    def __init__(
        self,
        socket: Path,
        dispatch: Dispatcher,
        replies: ReplyQueue,
        gate: SecretGate,
        world: World,
        fd: int | None = None,
    ) -> None:
        """`fd`: a socket at that path on which a service manager listens already."""
        prepare()
        self._dispatch, self._replies, self._gate = dispatch, replies, gate.without_memory()
        self._connections = ConnectionTable(listening(socket, fd), replies.inside, world.monotonic)
        self._socket, self._inode = socket, socket.stat().st_ino
        self._ready: deque[ClientConnection] = deque()
        """Connections with bytes to look at, each once."""
        self._captures: deque[Received] = deque()
        self._waiting_bytes = self._waiting = 0
        self.long_polls = LongPolls[Received](world.monotonic, replies.wake)
        self._slow: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._slow_thread = threading.Thread(target=self._slow_loop, name="slow-lane")
        self._thread = threading.Thread(target=self._loop, name="request-server")
        self._open = True
        self._rounds = self._rounds_seen = 0

    @property
    def is_bound(self) -> bool:
        """Whether a client that connects to the socket's path reaches this server."""
        try:
            return self._socket.stat().st_ino == self._inode
        except OSError:
            return False

    def is_well(self) -> bool:
        """Wake the server; return whether it ran a round since the last call."""
        before, self._rounds_seen = self._rounds_seen, self._rounds
        self._replies.wake()
        return self._rounds_seen != before and self._thread.is_alive() and self._slow_thread.is_alive()

    def start(self) -> None:
        """Start both threads."""
        self._slow_thread.start()
        self._thread.start()

    def stop(self) -> None:
        """Answer requests in progress, then close; requests that wait were never acknowledged."""
        self._open = False
        self._slow.put(None)
        self._slow_thread.join()
        self._replies.wake()
        self._thread.join()
        self._connections.close_all(LINGER_S)
        self._replies.close()

    def _loop(self) -> None:
        has_requests = False
        while self._open or not self._replies.is_empty:
            self._rounds += 1
            for received in self.long_polls.due():
                self._queue_slow(received)
            has_work = bool(self._ready or self._captures)
            if has_requests and self._waiting > 1 and not has_work:
                time.sleep(TOGETHER_S)
            active = self._connections.poll(0 if has_work else self.long_polls.wait_s(REST_S))
            if self._connections.is_woken:
                self._replies.drain_wakes()
            self._send_replies()
            for connection in active:
                self._look_at(connection)
            has_requests = bool(self._ready)
            self._receive_round()
            self._admit_captures()

    def _look_at(self, connection: ClientConnection) -> None:
        """Queue a connection for the next round."""
        if not connection.is_queued:
            connection.is_queued = True
            self._ready.append(connection)

    def _send_replies(self) -> None:
        while not self._replies.is_empty:
            (connection, envelope, size), body, lane = self._replies.get()
            if lane == "write":
                self._waiting_bytes -= size
                self._waiting -= 1
                connection.write_bytes -= size
            else:
                connection.slow_bytes -= size
                connection.in_slow_lane = False
            connection.requests -= 1
            self._send(connection, envelope, body)
            self._start_slow(connection)
            if connection.has_input:
                self._look_at(connection)

    def _send(self, connection: ClientConnection, envelope: list[bytes], body: bytes) -> None:
        if connection.is_closed:
            log.info("dropped a reply: the client is gone")
            return
        connection.send(b"".join((*(frame(part, MORE) for part in envelope), frame(body))))
        self._connections.update(connection)

    def _receive_round(self) -> None:
        for _ in range(len(self._ready)):
            connection = self._ready.popleft()
            connection.is_queued = False
            if connection.is_closed:
                continue
            self._start_slow(connection)
            try:
                has_more = self._receive_from(connection)
            except ZmtpViolation as error:
                self._connections.close(connection, str(error))
                continue
            self._connections.update(connection)
            if has_more and not connection.is_closed:
                self._look_at(connection)

    def _receive_from(self, connection: ClientConnection) -> bool:
        """Take messages up to the first that this thread answers; return whether there may be more of them."""
        for _ in range(ROUND):
            if not connection.has_room:
                return False
            message = connection.next_message()
            if message is None:
                return False
            self._connections.used(connection)
            if self._receive(connection, message):
                break
        return connection.has_input

    def _receive(self, connection: ClientConnection, frames: list[bytes]) -> bool:
        """Answer a message or queue it; return whether it was answered."""
        *envelope, body = frames
        as_form: Form = form(body)
        try:
            request = decode_request(body)
        except MemdError as error:
            log.warning("rejected a message: bytes=%d reason=%s", len(body), error.code)
            self._send(connection, envelope, self._error(error, head(body)[0], as_form))
            return True
        by = self._dispatch.lane(request)
        if by == "fast":
            self._send(connection, envelope, self._answered(request, as_form))
            return True
        received = Received(Arrival(connection, envelope, len(body)), request, as_form)
        if by == "slow":
            connection.requests += 1
            connection.slow_bytes += len(body)
            if patience := self._dispatch.patience(request):
                self.long_polls.add(received, *patience)
            else:
                self._queue_slow(received)
        elif self._waiting_bytes > WAITING_BYTES or self._waiting >= WAITING_REQUESTS:
            busy = Unavailable(
                "the write queue is full",
                hint="send the request again in a moment; clients with a spool do so automatically",
            )
            self._send(connection, envelope, self._error(busy, request.rid, as_form))
        else:
            connection.requests += 1
            connection.write_bytes += len(body)
            self._waiting_bytes += len(body)
            self._waiting += 1
            self._captures.append(received)
        return False

    def _queue_slow(self, received: Received) -> None:
        """Queue a request for the slow lane, unless its client is gone."""
        arrival, request, as_form = received
        if not arrival.connection.is_closed:
            arrival.connection.slow.append(
                lambda: self._replies.put(QueuedReply(arrival, self._answered(request, as_form), "slow"))
            )
            self._start_slow(arrival.connection)

    def _start_slow(self, connection: ClientConnection) -> None:
        """Pass the next slow request of a client to the slow lane, once the client has read earlier replies."""
        if connection.slow and not connection.in_slow_lane and connection.can_take_replies:
            connection.in_slow_lane = True
            self._slow.put(connection.slow.popleft())

    def _admit_captures(self) -> None:
        admitted = 0
        arrived: list[tuple[AnyRequest, Respond]] = []
        while self._captures and admitted < CAPTURE_BYTES:
            arrival, request, as_form = self._captures.popleft()
            admitted += arrival.size
            arrived.append((request, self._responder(arrival, request.rid, as_form)))
        if arrived:
            self._dispatch.write(arrived)

    def _responder(self, arrival: Arrival, rid: int, as_form: Form) -> Respond:
        def respond(outcome: AnyData | MemdError) -> None:
            if isinstance(outcome, MemdError):
                self._replies.put(QueuedReply(arrival, self._error(outcome, rid, as_form), "write"))
            else:
                self._replies.put(QueuedReply(arrival, encode_data(outcome, rid, as_form), "write"))

        return respond

    def _answered(self, request: AnyRequest, as_form: Form) -> bytes:
        try:
            return encode_data(self._dispatch.answer(request), request.rid, as_form)
        except MemdError as error:
            return self._error(error, request.rid, as_form)
        except Exception as error:  # a bug in one answer must not stop the server
            return self._error(bug(error, f"handling {type(request).__name__}"), request.rid, as_form)

    def _error(self, error: MemdError, rid: int, as_form: Form) -> bytes:
        """Encode an error, which may quote what the gate has not seen: a message that does not decode, a kept field.
        Its receiver may have a pass, and must not see whether a known secret is replaced."""
        return encode_error(self._gate.error(error), rid, as_form)

    def _slow_loop(self) -> None:
        while (job := self._slow.get()) is not None:
            if self._open:
                job()
