"""The gateway: HTTP requests with a pass, answered from PostgreSQL (H3, A1, A3).

Invariants: it has no state but its database, so any number of gateways serve one hub and one may end at any time; a
request is one transaction; the body of a request without a valid pass is not read, and reaches no table.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from psycopg import Connection, Error, errors
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ...protocol.errors import Denied, InvalidRequest, MemdError, NotFound, StoreError, TooLarge, Unavailable
from ...protocol.hub import (
    HUB_TYPE,
    MOST_BYTES,
    HeadsAtHub,
    HubHeads,
    HubHit,
    HubPools,
    HubProblem,
    HubPut,
    HubRecall,
    HubRequest,
    HubSegments,
    PoolsAtHub,
    PutAtHub,
    RecalledAtHub,
    SegmentsAtHub,
)
from ...protocol.passes import Pass, public_key, verified_pass
from .database import HubDatabase, Purpose
from .hub_candidates import HubCandidates, best, place_of, widened
from .partitions_at_hub import GrantedPool, granted, heads, put, segments, withheld

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

log = logging.getLogger("memd.hub")
DEADLINE_MS = 150
"""How long a search may take before the hub leaves it out."""

CANDIDATES = 50
_ASK = "the hub's administrator finds it in the gateway's log"
_STATUS: tuple[tuple[type[MemdError], int], ...] = (
    (TooLarge, 413),
    (NotFound, 404),
    (InvalidRequest, 400),
    (Denied, 403),
    (Unavailable, 503),
)
_encoder = msgspec.msgpack.Encoder()


class Asker(NamedTuple):
    """The holder of a pass in one transaction, with the pools that both the pass and the grants cover."""

    holder: Pass
    connection: Connection
    pools: Mapping[str, GrantedPool]

    def pool(self, name: str) -> GrantedPool:
        """Return a pool that may be used. Raises Denied, the same for one that does not exist."""
        pool = self.pools.get(name)
        if pool is None:
            raise Denied(
                f"{self.holder.subject} has no access to the pool {name}", hint="ask who grants access to this hub"
            )
        return pool


class TrustedKeys:
    """The public keys whose passes the hub accepts: the `*.pem` files of a folder, as they are now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parsed: dict[bytes, Ed25519PublicKey] = {}

    def now(self) -> list[Ed25519PublicKey]:
        """Return the keys. A file that is no public key is logged and left out."""
        contents: dict[bytes, str] = {}
        for path in sorted(self._folder.glob("*.pem")):
            try:
                contents[path.read_bytes()] = path.name
            except OSError as error:
                log.warning("event=key_unreadable file=%s error=%s", path.name, error.strerror)
        parsed: dict[bytes, Ed25519PublicKey] = {}
        for content, name in contents.items():
            key = self._parsed.get(content) or public_key(content)
            if key is None:
                log.warning("event=not_a_public_key file=%s", name)
                continue
            parsed[content] = key
        self._parsed = parsed
        return list(parsed.values())


class Gateway:
    """Answers the requests of `protocol/hub.py`."""

    def __init__(self, database: HubDatabase, keys: TrustedKeys, now: Callable[[], float] = time.time) -> None:
        """`now`: seconds of UTC, by which passes end."""
        self._database, self._keys, self._now = database, keys, now

    def application(self) -> Starlette:
        """Return the ASGI application."""
        handlers: list[tuple[type[HubRequest], Purpose, Callable[[Asker, Any], object]]] = [
            (HubPools, "reader", _pools),
            (HubHeads, "reader", _heads),
            (HubSegments, "reader", _segments),
            (HubPut, "writer", _put),
            (HubRecall, "reader", _recall),
        ]
        routes = [
            Route(kind.path, self._endpoint(kind, purpose, handler), methods=["POST"])
            for kind, purpose, handler in handlers
        ]
        return Starlette(routes=[Route("/v1/health", self._health), *routes])

    async def _health(self, request: Request) -> Response:
        def ask() -> None:
            with self._database.transaction("reader") as connection:
                connection.execute("select from memd.hub")

        try:
            await run_in_threadpool(ask)
        except MemdError as error:
            return _problem(error)
        return Response(_encoder.encode({"ok": True}), media_type=HUB_TYPE)

    def _endpoint(
        self, kind: type[HubRequest], purpose: Purpose, handler: Callable[[Asker, Any], object]
    ) -> Callable[[Request], Awaitable[Response]]:
        decoder = msgspec.msgpack.Decoder(kind)

        def answer(holder: Pass, body: bytes) -> bytes:
            try:
                request = decoder.decode(body)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise InvalidRequest(f"the request can't be read: {error}", hint="use one version of memd") from error
            with self._database.transaction(purpose, holder.subject, holder.issued_at) as connection:
                pools = granted(connection, holder.pools, holder.expires_at)
                return _encoder.encode(handler(Asker(holder, connection, pools), request))

        async def endpoint(request: Request) -> Response:
            try:
                holder = await run_in_threadpool(self._holder, _token(request))
                content = await run_in_threadpool(answer, holder, await _body(request))
            except MemdError as error:
                return _problem(error)
            except Error as error:
                log.exception("event=failed path=%s", kind.path)
                return _problem(StoreError(f"the hub's database failed: {type(error).__name__}", hint=_ASK))
            except ClientDisconnect:
                return Response(status_code=400)
            return Response(content, media_type=HUB_TYPE)

        return endpoint

    def _holder(self, token: str) -> Pass:
        try:
            holder = verified_pass(token, self._keys.now(), int(self._now() * 1_000_000))
        except Denied as error:
            raise Denied(error.message, hint="get a new pass, then: memd hub join URL --pass-file FILE") from error
        if holder.sources:
            raise Denied("this pass is limited to sources, which a hub does not know", hint="ask for one for pools")
        return holder


def _token(request: Request) -> str:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Denied("the request has no pass", hint="`memd hub join URL --pass-file FILE`")
    return token.strip()


async def _body(request: Request) -> bytes:
    """Return the body. Raises TooLarge before any of it is read if its length is told, else before more is."""
    body = bytearray()
    length = request.headers.get("content-length", "")
    _check_size(int(length) if length.isdecimal() else 0)
    async for part in request.stream():
        _check_size(len(body) + len(part))
        body += part
    return bytes(body)


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise TooLarge(f"a request has at most {MOST_BYTES:,} bytes", hint="share fewer records at once")


def _problem(error: MemdError) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    if status >= 500:
        log.error("event=failed code=%s message=%s", error.code, error.message)
    content = _encoder.encode(HubProblem(code=error.code, message=error.message, hint=error.hint))
    return Response(content, status_code=status, media_type=HUB_TYPE)


# --- handlers --------------------------------------------------------------------------------------------------------
def _pools(asker: Asker, request: HubPools) -> PoolsAtHub:
    return PoolsAtHub(subject=asker.holder.subject, pools=tuple(pool.at_hub for pool in asker.pools.values()))


def _heads(asker: Asker, request: HubHeads) -> HeadsAtHub:
    pool = asker.pool(request.pool)
    return HeadsAtHub(
        pool=pool.at_hub,
        subject=asker.holder.subject,
        heads=heads(asker.connection, pool.number, request.partition),
        withheld=withheld(asker.connection, pool.number),
    )


def _segments(asker: Asker, request: HubSegments) -> SegmentsAtHub:
    return segments(asker.connection, asker.pool(request.pool).number, request)


def _put(asker: Asker, request: HubPut) -> PutAtHub:
    return put(asker.connection, asker.pool(request.pool), asker.holder.subject, request)


def _recall(asker: Asker, request: HubRecall) -> RecalledAtHub:
    named = {name: asker.pool(name) for name in request.pools} or asker.pools
    connection, numbers = asker.connection, {name: pool.number for name, pool in named.items()}
    connection.execute("select set_config('statement_timeout', %s, true)", (str(DEADLINE_MS),))
    search = HubCandidates(connection, numbers, request.model).search
    try:
        with connection.transaction():
            found = best(
                search(request.query.split(), widened(request.vector), tuple(numbers), CANDIDATES), request.limit
            )
            return RecalledAtHub(hits=_hits(connection, found, {number: name for name, number in numbers.items()}))
    except errors.QueryCanceled:
        return RecalledAtHub(late=tuple(numbers))


def _hits(connection: Connection, found: list[Any], names: Mapping[int, str]) -> tuple[HubHit, ...]:
    places = [place_of(candidate.id) for candidate in found]
    if not places:
        return ()
    pools, parts, numbers = (list(column) for column in zip(*places, strict=True))
    rows = connection.execute(
        "select pool, part, n, r.text, h.name, r.type, r.key, r.said, exists (select from memd.inv i"
        " where i.pool = r.pool and i.part = r.part and i.n = r.n)"
        " from unnest(%s::int[], %s::text[], %s::int[]) as w(pool, part, n)"
        " join memd.rec r using (pool, part, n) join memd.head h using (pool, part)",
        (pools, parts, numbers),
    )
    hits = {
        (pool, part, n): HubHit(
            pool=names[pool],
            partition=part,
            n=n,
            text=text,
            author=author,
            type=type,
            key=key,
            said=said,
            disputed=disputed,
        )
        for pool, part, n, text, author, type, key, said, disputed in rows
    }
    return tuple(
        msgspec.structs.replace(hit, similarity=candidate.similarity)
        for candidate, place in zip(found, places, strict=True)
        if (hit := hits.get(place)) is not None
    )
