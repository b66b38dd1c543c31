"""The listening socket and all connections of the request server, and the limits that hold for all of them together.

Invariants: a process never has more connections than files for them; the bytes that clients make memd keep stay below
`HELD_BYTES` and one message. Only the request server's thread uses the table.
"""

from __future__ import annotations

import logging
import os
import resource
import selectors
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

from .client_connection import ClientConnection

CONNECTIONS = 4096
OTHER_FILES = 256
"""Files that memd keeps free for its stores, jobs and child processes."""

HELD_BYTES = 32 * 1024 * 1024
"""Unfinished messages, requests in progress and unread replies of all clients, above which the one with most is
closed."""

IDLE_S = 10.0
"""Time without a message after which a connection may be closed for a new one."""

UNREAD_S = 60.0
"""Time after which a client is closed that reads none of its replies."""

CHECK_S = 10.0
REFUSED = 64
"""Refused connections that may stay until their client has read the reason."""

BACKLOG = 256
ACCEPTED_A_ROUND = 16

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
log = logging.getLogger("memd.server")


def most_connections() -> int:
    """Raise the soft limit of open files as far as needed and allowed; return the connections that it has room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(8, min(CONNECTIONS, soft - OTHER_FILES))


def listening(path: Path, fd: int | None) -> socket.socket:
    """Return a socket that listens at `path`; `fd`: one on which a service manager listens there already."""
    listener = socket.socket(socket.AF_UNIX) if fd is None else socket.socket(fileno=fd)
    if fd is None:
        listener.bind(os.fspath(path))
        listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


class ConnectionTable:
    """Accepts connections, reads what arrives, sends what is unsent, and closes what exceeds a limit."""

    def __init__(self, listener: socket.socket, wake_fd: int, monotonic: Callable[[], float]) -> None:
        """`wake_fd`: a pipe; `poll` returns when it is readable."""
        self._listener, self._monotonic = listener, monotonic
        self._limit = most_connections()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, READ)
        self._selector.register(wake_fd, READ)
        self._wake_fd = wake_fd
        self._is_listening = True
        self._open: dict[ClientConnection, None] = {}
        """The one that has been silent longest is first."""
        self._refused: dict[ClientConnection, None] = {}
        self._held = 0
        self._next_check = 0.0
        self.is_woken = False
        """Whether the pipe was readable in the last poll."""

    def poll(self, timeout_s: float) -> list[ClientConnection]:
        """Wait for something to do; return the connections with new bytes, and those whose client reads again."""
        self.is_woken = False
        if self._monotonic() >= self._next_check:
            self._close_unread()
        active: list[ClientConnection] = []
        for key, events in self._selector.select(timeout_s):
            connection: ClientConnection | None = key.data
            if connection is None:
                self._on_own(key.fd)
            elif connection.is_refused:
                self._on_refused(connection)
            elif not connection.is_closed and self._on_event(connection, events):
                active.append(connection)
        return active

    def used(self, connection: ClientConnection) -> None:
        """Note that a message of a connection arrived."""
        connection.active_at = self._monotonic()
        self._open.pop(connection, None)
        self._open[connection] = None

    def update(self, connection: ClientConnection) -> None:
        """Wait for the events that a connection needs now, and count the bytes that it holds."""
        if connection.is_closed:
            return
        events = (READ if connection.has_room else 0) | (WRITE if connection.unread_bytes else 0)
        if events != connection.events:
            self._watch(connection, events)
        held = connection.held_bytes
        self._held += held - connection.counted
        connection.counted = held
        while self._held > HELD_BYTES:
            largest = max(self._open, key=lambda one: one.counted)
            self.close(largest, "it holds the most of too much unfinished data")

    def close(self, connection: ClientConnection, reason: str = "") -> None:
        """Close a connection, with a reason to log where memd decides it."""
        if connection.is_closed:
            return
        if reason:
            log.warning("closed a connection: %s", reason)
        self._watch(connection, 0)
        self._held -= connection.counted
        self._open.pop(connection, None)
        self._refused.pop(connection, None)
        connection.close()
        self._listen(True)

    def _close_unread(self) -> None:
        """Close the connections of clients that have left replies unread for `UNREAD_S`; accept new ones again."""
        self._listen(True)
        now = self._monotonic()
        self._next_check, since = now + CHECK_S, now - UNREAD_S
        for connection in [one for one in self._open if one.unread_bytes and one.active_at < since]:
            self.close(connection, f"its client read no reply for {UNREAD_S:.0f} s")

    def close_all(self, linger_s: float) -> None:
        """Stop listening, send what is unsent for at most `linger_s`, and close everything."""
        self._listen(False)
        self._listener.close()
        end = self._monotonic() + linger_s
        while self._monotonic() < end and (unsent := [one for one in self._open if one.unread_bytes]):
            for connection in unsent:
                connection.flush()
            time.sleep(0.005)
        for connection in [*self._open, *self._refused]:
            self.close(connection)
        self._selector.close()

    def _on_own(self, fd: int) -> None:
        if fd == self._wake_fd:
            self.is_woken = True
            return
        for _ in range(ACCEPTED_A_ROUND):
            if not self._accept():
                return

    def _on_event(self, connection: ClientConnection, events: int) -> bool:
        """Send and receive; return whether the connection may have a message."""
        had_room = connection.has_room
        if events & WRITE:
            connection.flush()
            connection.active_at = self._monotonic()
        is_open = True
        if events & READ and not connection.is_queued:
            try:
                is_open = connection.receive()
            except OSError:
                is_open = False
        if not is_open:
            self.close(connection)
            return False
        self.update(connection)
        return bool(events & READ) or not had_room

    def _on_refused(self, connection: ClientConnection) -> None:
        try:
            is_open = connection.discard()
        except OSError:
            is_open = False
        if not is_open:
            self.close(connection)

    def _accept(self) -> bool:
        """Accept one connection; return whether there may be another."""
        try:
            channel, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:  # no file left
            log.warning("could not accept a connection: %s", error.strerror)
            self._listen(False)
            return False
        channel.setblocking(False)
        if _is_gone(channel):
            channel.close()
            return True
        connection = ClientConnection(channel)
        connection.active_at = self._monotonic()
        if not _is_of_this_user(channel):
            log.warning("closed a connection of another user")
            connection.close()
        elif len(self._open) >= self._limit and not self._close_idle():
            self._refuse(connection)
        else:
            connection.flush()
            self._open[connection] = None
            self.update(connection)
        return True

    def _close_idle(self) -> bool:
        """Close the connection that has been silent longest, unless it is busy or was used a moment ago."""
        since = self._monotonic() - IDLE_S
        for connection in self._open:
            if connection.active_at > since:
                return False
            if connection.is_idle:
                self.close(connection)
                return True
        return False

    def _refuse(self, connection: ClientConnection) -> None:
        if len(self._refused) >= REFUSED:
            self.close(next(iter(self._refused)))
        connection.refuse(f"memd has {self._limit} connections, all of them in use; try again in a moment")
        self._refused[connection] = None
        self._watch(connection, READ)

    def _watch(self, connection: ClientConnection, events: int) -> None:
        if events and connection.events:
            self._selector.modify(connection.channel, events, connection)
        elif events:
            self._selector.register(connection.channel, events, connection)
        elif connection.events:
            self._selector.unregister(connection.channel)
        connection.events = events

    def _listen(self, on: bool) -> None:
        if on != self._is_listening and self._listener.fileno() >= 0:
            (self._selector.register(self._listener, READ) if on else self._selector.unregister(self._listener))
            self._is_listening = on


def _is_gone(channel: socket.socket) -> bool:
    """Whether the client closed the connection before it sent anything: to serve it would delay other new ones."""
    try:
        return not channel.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _is_of_this_user(channel: socket.socket) -> bool:
    """Whether this user's process connected, where the kernel tells; the mode of the folder keeps others out too."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, uid, _ = struct.unpack("3i", channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid == os.getuid()
