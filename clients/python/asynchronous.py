"""The Python client for asyncio: the same requests, many at once over one connection, each with a deadline.

Comes in: a wish. Goes out: the daemon's typed reply, or the error it raised, rebuilt. Invariants: as those of `Client`;
a reply finds the call it belongs to by its number, and one that comes too late finds nobody; a call that is cancelled
leaves the connection usable; used by one event loop.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import msgspec

from ...protocol import request, wire
from ...protocol.errors import DaemonDown, DeadlineExceeded, Refused, Unavailable
from ...protocol.places import Places, why_disabled
from .client import OTHER_MS, QUICK_MS, Client, encoded, places_here, socket_path
from .running import nothing
from .spool import Drained, Spooled, Waiting
from .zmtp import COMMAND, FRAME_LIMIT, GREETING, LONG, MORE, READY, check_peer, frame

P = ParamSpec("P")
T = TypeVar("T")
_START = "start it: `memd up`"


def _awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """A method that gives what `ask` gives, of the class whose `ask` is awaited."""
    return cast("Any", method)


class AsyncClient:
    """`async with AsyncClient() as client: await client.recall("tabs")`. Any request goes by `ask`."""

    def __init__(
        self, places: Places | None = None, deadline_ms: float | None = None, token: str | None = None
    ) -> None:
        """`token`: the access pass to ask under (A1), by default the one in `MEMD_PASS`."""
        self.places = places or places_here()
        self._token = os.environ.get("MEMD_PASS", "") if token is None else token
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

    # --- requests: each is the method of `Client`, awaited ------------------------------------------------------------
    capture = _awaited(Client.capture)
    remember = _awaited(Client.remember)
    capture_or_spool = _awaited(Client.capture_or_spool)
    remember_or_spool = _awaited(Client.remember_or_spool)
    recall = _awaited(Client.recall)
    feedback = _awaited(Client.feedback)
    profile = _awaited(Client.profile)
    backup = _awaited(Client.backup)
    backups = _awaited(Client.backups)
    bind_scope = _awaited(Client.bind_scope)
    compact = _awaited(Client.compact)
    context = _awaited(Client.context)
    correct = _awaited(Client.correct)
    dead_letters = _awaited(Client.dead_letters)
    decide = _awaited(Client.decide)
    disk_usage = _awaited(Client.disk_usage)
    distil = _awaited(Client.distil)
    edit = _awaited(Client.edit)
    expire = _awaited(Client.expire)
    export = _awaited(Client.export)
    fading = _awaited(Client.fading)
    forget = _awaited(Client.forget)
    get = _awaited(Client.get)
    grant = _awaited(Client.grant)
    grant_back = _awaited(Client.grant_back)
    grants = _awaited(Client.grants)
    history = _awaited(Client.history)
    import_records = _awaited(Client.import_records)
    inbox = _awaited(Client.inbox)
    injected = _awaited(Client.injected)
    job = _awaited(Client.job)
    journal = _awaited(Client.journal)
    leave = _awaited(Client.leave)
    list = _awaited(Client.list)
    models = _awaited(Client.models)
    move_records = _awaited(Client.move_records)
    never_used = _awaited(Client.never_used)
    open_agent = _awaited(Client.open_agent)
    pause = _awaited(Client.pause)
    pin = _awaited(Client.pin)
    pools = _awaited(Client.pools)
    preview_forget = _awaited(Client.preview_forget)
    printed = _awaited(Client.printed)
    propose_forget = _awaited(Client.propose_forget)
    put_setting = _awaited(Client.put_setting)
    rebuild = _awaited(Client.rebuild)
    redo = _awaited(Client.redo)
    restore = _awaited(Client.restore)
    resume = _awaited(Client.resume)
    retry = _awaited(Client.retry)
    revoke = _awaited(Client.revoke)
    scan = _awaited(Client.scan)
    session = _awaited(Client.session)
    sessions = _awaited(Client.sessions)
    settings = _awaited(Client.settings)
    sleep = _awaited(Client.sleep)
    status = _awaited(Client.status)
    stop = _awaited(Client.stop)
    timeline = _awaited(Client.timeline)
    undo = _awaited(Client.undo)
    use_model = _awaited(Client.use_model)
    verify = _awaited(Client.verify)
    why = _awaited(Client.why)
    why_scope = _awaited(Client.why_scope)

    async def _or_spool(self, wish: Waiting, data: type[T]) -> T | Spooled:
        try:
            return await self.ask(wish, data)
        except Unavailable as error:
            spool = Client(self.places).spool
            return await asyncio.to_thread(spool.append, wish, reason=error.message)

    async def drain(self) -> Drained:
        """Delivers what waits in the spool, in order, in a thread of its own."""

        def work() -> Drained:
            with Client(self.places, self._deadline_ms, self._token) as client:
                return client.drain()

        return await asyncio.to_thread(work)

    # --- the exchange ------------------------------------------------------------------------------------------------
    async def ask(self, wish: request.Request, data: type[T]) -> T:
        """Sends any request and waits for its reply. Raises DaemonDown, DeadlineExceeded, or the daemon's own error.

        While memd is disabled nothing is sent (W14): what captures or recalls gets an empty answer, anything else
        raises Disabled.
        """
        if why := why_disabled(os.environ, self.places):
            return nothing(wish, data, why)
        self._rid += 1
        rid, body = self._rid, encoded(msgspec.structs.replace(wish, rid=self._rid, token=wish.token or self._token))
        limit_ms = self._deadline_ms or (QUICK_MS if request.is_quick(wish) else OTHER_MS)
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
