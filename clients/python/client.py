"""The blocking Python client: requests over one socket, each with a deadline. `request_methods` has the methods.

Invariants: it imports nothing of the daemon; a late reply never answers another request; one thread uses a client.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ...protocol import reply, request, wire
from ...protocol.errors import DeadlineExceeded, InvalidRequest, MemdError, Unavailable
from ...protocol.places import Places, why_disabled
from .request_methods import RequestMethods, answer_while_disabled, now, places_here, remembering, session_here
from .zmtp import Connection, Deadline

if TYPE_CHECKING:  # most clients never spool
    from .spool_writer import Drained, Spool, SpooledRequest, SpoolReceipt

T = TypeVar("T")


class Client(RequestMethods):
    """Connects at the first request, and again after the daemon was restarted."""

    _connection: Connection | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request connects again."""
        if self._connection:
            self._connection.close()
            self._connection = None

    @property
    def disabled(self) -> str:
        """The variable or file that disables memd, "" while it is enabled (W14)."""
        return why_disabled(os.environ, self.places)

    @property
    def spool(self) -> Spool:
        """The requests that wait on this machine for the daemon."""
        from .spool_writer import Spool

        return Spool(self.places.spool)

    def drain(self) -> Drained:
        """Deliver the spooled requests in order, up to the first that can't be delivered now."""
        from .spool_writer import Drained

        return Drained() if self.disabled else self.spool.drain(self._deliver)

    def _deliver(self, message: SpooledRequest) -> reply.Taken | reply.Remembered:
        if not isinstance(message, request.Capture):
            return self.ask(message, reply.Remembered)
        taken = self.ask(message, reply.Taken)
        if taken.refused:  # raising makes the spool move the request aside instead of losing the refusal
            first = taken.refused[0].problem
            raise InvalidRequest(f"{len(taken.refused)} events refused: {first.message}", hint=first.hint)
        return taken

    def ask(self, message: request.Request, data: type[T]) -> T:
        """Send any request and wait for its reply; see `answer_while_disabled` for a disabled memd (W14). Raises
        DaemonDown, DeadlineExceeded, or the daemon's own error."""
        if why := self.disabled:
            return answer_while_disabled(message, data, why)
        rid, body, limit_ms = self._encoded(message)
        deadline = Deadline(limit_ms)
        connection = self._connected(deadline)
        try:
            connection.send(body, deadline)
        except MemdError:
            self.close()
            raise
        try:
            while True:
                content = connection.receive(deadline)
                # 0 answers bytes that the daemon could not read, so it is ours; any other number is a late reply.
                if wire.head(content)[0] in (rid, 0):
                    return wire.decode_reply(content, data)[1]
        except DeadlineExceeded:
            raise
        except Unavailable:
            self.close()
            raise

    def _ask_or_spool(self, message: SpooledRequest, data: type[T]) -> T | SpoolReceipt:
        try:
            return self.ask(message, data)
        except Unavailable as error:
            if self._token:  # the spool is the owner's, and a pass is read-only
                raise
            return self.spool.append(self._labelled(message), reason=error.message)

    def _connected(self, deadline: Deadline) -> Connection:
        if self._connection and self._connection.is_closed_by_peer():
            self.close()
        if not self._connection:
            self._connection = Connection(socket_path(self.places), deadline)
        return self._connection


def socket_path(places: Places) -> Path:
    """Return the path that the daemon wrote into its socket file if it exists, else the usual one."""
    try:
        named = Path(places.socket_file.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return places.socket
    return named if named.is_absolute() and named.exists() else places.socket


__all__ = ["Client", "now", "places_here", "remembering", "session_here", "socket_path"]
