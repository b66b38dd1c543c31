"""The asyncio Python client: the methods of `Client`, many calls at once over one connection, each with a deadline.

Invariants: a late reply is dropped; a cancelled call leaves the connection usable; one event loop uses a client.
"""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from ...protocol import request, wire
from ...protocol.errors import MemdError, Unavailable
from ...protocol.places import why_disabled
from . import zmtp
from .client import Client, socket_path
from .request_methods import RequestMethods, answer_while_disabled
from .spool_writer import Drained, Spool, SpooledRequest, SpoolReceipt

T = TypeVar("T")


class AsyncClient(RequestMethods):
    """`async with AsyncClient() as client: await client.recall("tabs")`. `ask` sends any request."""

    _connection: AsyncConnection | None = None
    _connecting: asyncio.Lock | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection: pending calls raise DaemonDown, the next call connects again."""
        connection, self._connection = self._connection, None
        if connection:
            await connection.close()

    async def drain(self) -> Drained:
        """Deliver the spooled requests in order, in a thread of its own."""

        def work() -> Drained:
            with Client(self.places, self._deadline_ms, self._token) as client:
                return client.drain()

        return await asyncio.to_thread(work)

    async def ask(self, message: request.Request, data: type[T]) -> T:
        """Send any request and wait for its reply; see `answer_while_disabled` for a disabled memd (W14). Raises
        DaemonDown, DeadlineExceeded, or the daemon's own error."""
        if why := why_disabled(os.environ, self.places):
            return answer_while_disabled(message, data, why)
        rid, body, limit_ms = self._encoded(message)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                connection = await self._connected()
                answer = await connection.exchange(rid, body)
        except TimeoutError as error:
            raise zmtp.no_answer(limit_ms) from error
        return wire.decode_reply(answer, data)[1]

    async def _ask_or_spool(self, message: SpooledRequest, data: type[T]) -> T | SpoolReceipt:
        try:
            return await self.ask(message, data)
        except Unavailable as error:
            if self._token:  # the spool is the owner's, and a pass is read-only
                raise
            return await asyncio.to_thread(
                Spool(self.places.spool).append, self._labelled(message), reason=error.message
            )

    async def _connected(self) -> AsyncConnection:
        self._connecting = self._connecting or asyncio.Lock()
        async with self._connecting:
            if self._connection is None or self._connection.is_closed:
                self._connection = await AsyncConnection.open(socket_path(self.places))
            return self._connection


class AsyncConnection:
    """A connection that one task reads: the task completes the call that each reply is for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, path: Path) -> AsyncConnection:
        """Connect and shake hands. Raises DaemonDown, Refused, Unavailable."""
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except OSError as error:
            raise zmtp.connect_error(path, error) from error
        try:
            connection: socket.socket = writer.get_extra_info("socket")
            zmtp.check_peer(connection, path)
            writer.write(zmtp.GREETING + zmtp.frame(zmtp.READY, zmtp.COMMAND))
            zmtp.check_greeting(await reader.readexactly(64), path)
            zmtp.check_ready(*await _next_frame(reader), path)
        except (OSError, EOFError) as error:
            writer.close()
            raise zmtp.lost(error) from error
        except BaseException:
            writer.close()
            raise
        return cls(reader, writer)

    @property
    def is_closed(self) -> bool:
        """Whether the task that reads it has ended."""
        return self._task.done()

    async def exchange(self, rid: int, body: bytes) -> bytes:
        """Send one body and wait for the reply with that number."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._calls[rid] = future
        try:
            self._writer.write(zmtp.frame(body))
            await self._writer.drain()
            return await future
        except OSError as error:
            raise zmtp.lost(error) from error
        finally:
            self._calls.pop(rid, None)

    async def _read(self) -> None:
        problem: MemdError = zmtp.lost()
        try:
            while True:
                flags, body = await _next_frame(self._reader)
                if flags & zmtp.COMMAND:
                    if body.startswith(b"\x04PING"):
                        self._writer.write(zmtp.frame(b"\x04PONG" + body[7:], zmtp.COMMAND))
                elif not flags & zmtp.MORE:
                    self._complete_call(body)
        except (OSError, EOFError):
            pass
        except Unavailable as error:
            problem = error
        finally:
            self._writer.close()
            for future in self._calls.values():
                if not future.done():
                    future.set_exception(problem)

    def _complete_call(self, body: bytes) -> None:
        # 0 answers bytes that the daemon could not read: at most one such call is pending
        rid = wire.head(body)[0] or next(iter(self._calls), 0)
        future = self._calls.get(rid)
        if future is not None and not future.done():
            future.set_result(body)

    async def close(self) -> None:
        """Close it and wait until the task that reads it has ended."""
        self._task.cancel()
        await asyncio.wait([self._task])


async def _next_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    flags, size = await reader.readexactly(2)
    if flags & zmtp.LONG:
        size = int.from_bytes(bytes([size]) + await reader.readexactly(7))
    zmtp.check_frame(flags, size)
    return flags, await reader.readexactly(size)
