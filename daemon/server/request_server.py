"""The request server: one ROUTER socket and one thread, which answers fast requests and queues the others.

Invariants: each message gets a reply; only this thread touches the socket, other threads use `ReplyQueue`; waiting
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

import zmq

from ...protocol.errors import MemdError, Unavailable
from ...protocol.reply import AnyData
from ...protocol.request import AnyRequest
from ...protocol.secret_gate import SecretGate
from ...protocol.wire import BODY_LIMIT, Form, decode_request, encode_data, encode_error, form, head, prepare
from ..services.admission import bug
from ..services.service import Respond
from .dispatch import Dispatcher

MESSAGE_LIMIT = 4 * BODY_LIMIT
"""Bytes above which libzmq cuts the connection; between BODY_LIMIT and this the sender gets an error."""

AT_ONCE, FIRST, MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE), int(zmq.RCVMORE)
"""Plain numbers, frame by frame: `send_multipart` takes four times as long."""

ROUND = 256

RESTFUL_MS = 10_000
"""Longest wait for something to do; other threads wake the server."""

TOGETHER_S = 0.0001
"""Pause between rounds while captures of several clients arrive: they get their answers together, and
a round costs as much as a request."""

CAPTURE_BYTES = 256 * 1024
WAITING_BYTES = 64 * 1024 * 1024
"""Captures that may wait for the write thread; above it a client gets an error, and its spool keeps them."""

WINDOW = 10_000
"""Most answers that wait for one client; a client that does not read loses the rest."""

log = logging.getLogger("memd.server")


class ReplyQueue:
    """Replies on their way to the socket. Any thread puts; the request server's thread takes."""

    def __init__(self) -> None:
        self._replies: queue.SimpleQueue[tuple[list[bytes], bytes, int]] = queue.SimpleQueue()
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

    def put(self, route: list[bytes], body: bytes, taken: int = 0) -> None:
        """Queue a reply; `taken`: bytes of the request that stop counting as waiting."""
        self._replies.put((route, body, taken))
        self.wake()

    def get(self) -> tuple[list[bytes], bytes, int]:
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
    """One ROUTER socket with its thread, and the thread of the slow lane."""

    def __init__(
        self, socket: Path, dispatch: Dispatcher, replies: ReplyQueue, gate: SecretGate, fd: int | None = None
    ) -> None:
        """`fd`: a socket at that path on which a service manager listens already."""
        prepare()
        self._dispatch, self._replies, self._gate = dispatch, replies, gate
        self._context = zmq.Context(io_threads=1)
        self._router = self._context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.MAXMSGSIZE, MESSAGE_LIMIT)
        self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._router.setsockopt(zmq.LINGER, 500)
        self._router.setsockopt(zmq.SNDHWM, WINDOW)
        if hasattr(zmq, "IPC_FILTER_UID"):
            self._router.setsockopt(zmq.IPC_FILTER_UID, os.getuid())
        if fd is not None:
            self._router.setsockopt(zmq.USE_FD, fd)
        self._router.bind(f"ipc://{socket}")
        self._captures: deque[tuple[list[bytes], AnyRequest, int, Form]] = deque()
        self._waiting_bytes = self._waiting = 0
        self._slow: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._slow_thread = threading.Thread(target=self._slow_loop, name="slow-lane")
        self._thread = threading.Thread(target=self._loop, name="request-server")
        self._open = True
        self._rounds = self._rounds_seen = 0

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
        """Answer requests in progress, then close; waiting captures were never acknowledged."""
        self._slow.put(None)
        self._slow_thread.join()
        self._open = False
        self._replies.wake()
        self._thread.join()
        self._router.close()
        self._context.term()
        self._replies.close()

    def _loop(self) -> None:
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._replies.inside, zmq.POLLIN)
        has_requests = False
        while self._open or not self._replies.is_empty:
            self._rounds += 1
            if has_requests and self._waiting > 1:
                time.sleep(TOGETHER_S)
            ready = dict(poller.poll(0 if self._captures else RESTFUL_MS))
            if self._replies.inside in ready:
                self._replies.drain_wakes()
            self._send_replies()
            if has_requests := self._router in ready:
                self._receive_round()
            self._admit_captures()

    def _send_replies(self) -> None:
        while not self._replies.is_empty:
            route, body, taken = self._replies.get()
            self._waiting_bytes -= taken
            self._waiting -= taken > 0
            self._send(route, body)

    def _send(self, route: list[bytes], body: bytes) -> None:
        try:
            for frame in route:
                self._router.send(frame, FIRST)
            self._router.send(body, AT_ONCE)
        except zmq.ZMQError as error:  # the client is gone or does not read
            log.info("dropped reply: client gone or not reading: %s", error)

    def _receive_round(self) -> None:
        for _ in range(ROUND):
            try:
                frames = [self._router.recv(AT_ONCE), self._router.recv(AT_ONCE)]  # route, body
            except zmq.Again:
                return
            while self._router.getsockopt(MORE):
                frames.append(self._router.recv(AT_ONCE))
            self._receive(frames)

    def _receive(self, frames: list[bytes]) -> None:
        *route, body = frames
        as_form: Form = form(body)
        try:
            request = decode_request(body)
        except MemdError as error:
            log.warning("rejected a message: bytes=%d reason=%s", len(body), error.code)
            self._send(route, self._error(error, head(body)[0], as_form))
            return
        by = self._dispatch.lane(request)
        if by == "fast":
            self._send(route, self._answered(request, as_form))
        elif by == "slow":
            self._slow.put(lambda: self._replies.put(route, self._answered(request, as_form)))
        elif self._waiting_bytes > WAITING_BYTES:
            busy = Unavailable(
                "the write queue is full",
                hint="send the request again in a moment; clients with a spool do so automatically",
            )
            self._send(route, self._error(busy, request.rid, as_form))
        else:
            self._waiting_bytes += len(body)
            self._waiting += 1
            self._captures.append((route, request, len(body), as_form))

    def _admit_captures(self) -> None:
        admitted = 0
        arrived: list[tuple[AnyRequest, Respond]] = []
        while self._captures and admitted < CAPTURE_BYTES:
            route, request, size, as_form = self._captures.popleft()
            admitted += size
            arrived.append((request, self._responder(route, request.rid, size, as_form)))
        if arrived:
            self._dispatch.write(arrived)

    def _responder(self, route: list[bytes], rid: int, size: int, as_form: Form) -> Respond:
        def respond(outcome: AnyData | MemdError) -> None:
            if isinstance(outcome, MemdError):
                self._replies.put(route, self._error(outcome, rid, as_form), size)
            else:
                self._replies.put(route, encode_data(outcome, rid, as_form), size)

        return respond

    def _answered(self, request: AnyRequest, as_form: Form) -> bytes:
        try:
            return encode_data(self._dispatch.answer(request), request.rid, as_form)
        except MemdError as error:
            return self._error(error, request.rid, as_form)
        except Exception as error:  # a bug in one answer must not stop the server
            return self._error(bug(error, f"handling {type(request).__name__}"), request.rid, as_form)

    def _error(self, error: MemdError, rid: int, as_form: Form) -> bytes:
        """Encode an error, which may quote what the gate has not seen: a message that does not decode, a kept field."""
        return encode_error(self._gate.error(error), rid, as_form)

    def _slow_loop(self) -> None:
        while (job := self._slow.get()) is not None:
            job()
