"""The Python client for asyncio: the same requests, many at once over one connection, each with a deadline.

Comes in: a wish. Goes out: the daemon's typed reply, or the error it raised, rebuilt. Invariants: as those of `Client`;
a reply finds the call it belongs to by its number, and one that comes too late finds nobody; a call that is cancelled
leaves the connection usable; used by one event loop.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from ...protocol import reply, request, wire
from ...protocol.disabled import why_disabled
from ...protocol.errors import DaemonDown, DeadlineExceeded, Refused, Unavailable
from ...protocol.event import AnyEvent, Origin
from ...protocol.places import Places
from ...protocol.record import Record
from .client import LANE_MS, OTHER_LANE_MS, Client, encoded, places_here, remembering, socket_path
from .running import nothing
from .spool import Drained, Spooled, Waiting
from .zmtp import COMMAND, FRAME_LIMIT, GREETING, LONG, MORE, READY, check_peer, frame

T = TypeVar("T")
_START = "start it: `memd up`"


class AsyncClient:
    """`async with AsyncClient() as client: await client.recall("tabs")`. Any request goes by `ask`."""

    def __init__(self, places: Places | None = None, deadline_ms: float | None = None) -> None:
        self.places = places or places_here()
        self._deadline_ms = deadline_ms
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._rid = 0

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hangs up; calls under way raise DaemonDown, the next one connects again."""
        connection, self._connection = self._connection, None
        if connection:
            await connection.close()

    # --- requests ----------------------------------------------------------------------------------------------------
    async def capture(self, origin: Origin, events: Sequence[AnyEvent]) -> reply.Taken:
        """Hands events to the archive. They are durable when this returns (W1)."""
        return await self.ask(request.Capture(origin=origin, events=tuple(events)), reply.Taken)

    async def remember(self, wish: request.Remember | str, *, cwd: str = "", host: str = "python") -> reply.Remembered:
        """Remembers a text; the record can be recalled when this returns (W2)."""
        return await self.ask(remembering(wish, cwd=cwd, host=host), reply.Remembered)

    async def capture_or_spool(self, origin: Origin, events: Sequence[AnyEvent]) -> reply.Taken | Spooled:
        """`capture`, or the spool when the daemon can't be reached in time (W10). Raises TooLarge when it is full."""
        return await self._or_spool(request.Capture(origin=origin, events=tuple(events)), reply.Taken)

    async def remember_or_spool(
        self, wish: request.Remember | str, *, cwd: str = "", host: str = "python"
    ) -> reply.Remembered | Spooled:
        """`remember`, or the spool when the daemon can't be reached in time (W10). Raises TooLarge when it is full."""
        return await self._or_spool(remembering(wish, cwd=cwd, host=host), reply.Remembered)

    async def _or_spool(self, wish: Waiting, data: type[T]) -> T | Spooled:
        try:
            return await self.ask(wish, data)
        except Unavailable as error:
            spool = Client(self.places).spool
            return await asyncio.to_thread(spool.append, wish, reason=error.message)

    async def drain(self) -> Drained:
        """Delivers what waits in the spool, in order, in a thread of its own."""

        def work() -> Drained:
            with Client(self.places, self._deadline_ms) as client:
                return client.drain()

        return await asyncio.to_thread(work)

    async def recall(
        self,
        query: str,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        limit: int = 20,
        budget_tokens: int = 1500,
        as_of: str = "",
        believed_at: str = "",
        document: str = "",
        agent: str = "",
        deep: bool = False,
    ) -> reply.Recalled:
        """What is known about a question (Q2), each hit with its source; or what was true, or believed, then (Q12).

        `document`: the session that asks (`host:session`), which never learns again what it is told here (W9).
        """
        wish = request.Recall(
            query=query,
            cwd=cwd,
            pools=tuple(pools),
            limit=limit,
            budget_tokens=budget_tokens,
            as_of=as_of,
            believed_at=believed_at,
            document=document,
            agent=agent,
            deep=deep,
        )
        return await self.ask(wish, reply.Recalled)

    async def profile(
        self,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        budget_tokens: int = 500,
        document: str = "",
        agent: str = "",
    ) -> reply.ProfileText:
        """The profile of the user, inside a project if `cwd` lies in one (Q1)."""
        wish = request.Profile(cwd=cwd, pools=tuple(pools), budget_tokens=budget_tokens, document=document, agent=agent)
        return await self.ask(wish, reply.ProfileText)

    async def get(self, id: str) -> Record:
        """One record by its id, or by an unambiguous beginning of it. Raises NotFound."""
        return await self.ask(request.Get(id=id), Record)

    async def why(self, id: str) -> reply.Explained:
        """The whole way of a record, from the captured line to each decision (R4). Raises NotFound."""
        return await self.ask(request.Why(id=id), reply.Explained)

    async def status(self) -> reply.StatusText:
        """What the daemon last did, what waits, what failed (U6)."""
        return await self.ask(request.GetStatus(), reply.StatusText)

    # --- the exchange ------------------------------------------------------------------------------------------------
    async def ask(self, wish: request.Request, data: type[T]) -> T:
        """Sends any request and waits for its reply. Raises DaemonDown, DeadlineExceeded, or the daemon's own error.

        While memd is disabled nothing is sent (W14): what captures or recalls gets an empty answer, anything else
        raises Disabled.
        """
        if why := why_disabled(os.environ, self.places):
            return nothing(wish, data, why)
        self._rid += 1
        rid, body = self._rid, encoded(msgspec.structs.replace(wish, rid=self._rid))
        limit_ms = self._deadline_ms or LANE_MS.get(request.lane(wish), OTHER_LANE_MS)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                connection = await self._connected()
                answer = await connection.exchange(rid, body)
        except TimeoutError as error:
            hint = "see `memd status`, or give it more time"
            raise DeadlineExceeded(f"no answer within {limit_ms:,.0f} ms", hint=hint) from error
        return wire.decode_reply(answer, data)[1]

    async def _connected(self) -> _Connection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed:
                self._connection = await _Connection.open(socket_path(self.places))
            return self._connection


class _Connection:
    """One connection: a task reads it and wakes the call that each reply is for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, path: Path) -> _Connection:
        """Connects and shakes hands. Raises DaemonDown, Refused, Unavailable."""
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except PermissionError as error:
            hint = "memd serves each user by a daemon of their own"
            raise Refused(f"{path} belongs to another user", hint=hint) from error
        except OSError as error:
            raise DaemonDown("the daemon is not running", hint=_START) from error
        try:
            connection: socket.socket = writer.get_extra_info("socket")
            check_peer(connection, path)
            writer.write(GREETING + frame(READY, COMMAND))
            greeting = await reader.readexactly(64)
            if greeting[0] != 0xFF or greeting[10] < 3 or greeting[12:32].rstrip(b"\0") != b"NULL":
                hint = "is another program using the path?"
                raise Unavailable(f"what listens on {path} does not speak ZMTP 3", hint=hint)
            flags, body = await _next_frame(reader)
            if not flags & COMMAND or not body.startswith(b"\x05READY"):
                hint = "restart it: `memd down; memd up`"
                raise Unavailable(f"what listens on {path} refused the connection", hint=hint)
        except (OSError, EOFError) as error:
            writer.close()
            raise DaemonDown(f"the connection broke: {error}", hint=_START) from error
        except BaseException:
            writer.close()
            raise
        return cls(reader, writer)

    @property
    def is_closed(self) -> bool:
        """Whether nothing comes from it any more."""
        return self._task.done()

    async def exchange(self, rid: int, body: bytes) -> bytes:
        """Sends one body and waits for the reply of that number."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[rid] = future
        try:
            self._writer.write(frame(body))
            await self._writer.drain()
            return await future
        except OSError as error:
            raise DaemonDown(f"the connection broke: {error}", hint=_START) from error
        finally:
            self._waiting.pop(rid, None)

    async def _read(self) -> None:
        problem: Exception = DaemonDown("the daemon closed the connection", hint=_START)
        try:
            while True:
                flags, body = await _next_frame(self._reader)
                if flags & COMMAND:
                    if body.startswith(b"\x04PING"):
                        self._writer.write(frame(b"\x04PONG" + body[7:], COMMAND))
                elif not flags & MORE:
                    self._hand_over(body)
        except (OSError, EOFError):
            pass
        except Unavailable as error:
            problem = error
        finally:
            self._writer.close()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(problem)

    def _hand_over(self, body: bytes) -> None:
        # 0 is the answer to bytes that the daemon could not read: there is one such call at most
        rid = wire.head(body)[0] or next(iter(self._waiting), 0)
        future = self._waiting.get(rid)
        if future is not None and not future.done():
            future.set_result(body)

    async def close(self) -> None:
        """Hangs up, and waits until the reading has ended."""
        self._task.cancel()
        await asyncio.wait([self._task])


async def _next_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    flags, size = await reader.readexactly(2)
    if flags & LONG:
        size = int.from_bytes(bytes([size]) + await reader.readexactly(7))
    if flags > MORE | LONG | COMMAND or size > FRAME_LIMIT:
        raise Unavailable("the daemon sent bytes that are no ZMTP frame", hint="restart it: `memd down; memd up`")
    return flags, await reader.readexactly(size)
