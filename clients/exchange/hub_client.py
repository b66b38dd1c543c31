"""The HTTP client of a hub, and which hubs this home has joined (H3).

Invariants: a pass is sent over TLS, or to this machine; no redirect is followed; a pass is read from its file at each
call, so that a renewed one counts at once.
"""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec

from ...protocol.errors import (
    Denied,
    InvalidRequest,
    MemdError,
    Refused,
    RemoteRefusal,
    RemoteUnreachable,
    by_code,
)
from ...protocol.hub import (
    HUB_TYPE,
    MOST_BYTES,
    MOST_HITS,
    HubProblem,
    HubRecall,
    HubRequest,
    RecalledAtHub,
)
from ...protocol.places import Places
from ...protocol.recall import TextVectors
from ...protocol.share import HUB_SCHEME
from ..python.folder import make_private, write_whole

if TYPE_CHECKING:
    import httpx

TIMEOUT_S, RECALL_TIMEOUT_S = 30.0, 2.0
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_encoder = msgspec.msgpack.Encoder()
Reply = TypeVar("Reply")


class JoinedHub(msgspec.Struct, frozen=True, kw_only=True):
    """A hub that this home uses. `url`: without a pool; `pass_file`: the file with the pass."""

    url: str
    pass_file: str


class HubClient:
    """Sends requests to one hub. Close it, or use it as a context manager."""

    def __init__(self, hub: JoinedHub, timeout_s: float = TIMEOUT_S) -> None:
        self._hub, self._timeout_s = hub, timeout_s
        self._http: httpx.Client | None = None

    def __enter__(self) -> HubClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def ask(self, request: HubRequest, kind: type[Reply]) -> Reply:
        """Return the hub's reply. Raises Refused without the HTTP library, Denied, RemoteUnreachable, RemoteRefusal and
        what the hub answers."""
        try:
            import httpx
        except ImportError as error:
            raise Refused("memd was installed without the hub", hint="pip install 'memd[hub]'") from error

        http = self._http = self._http or httpx.Client(timeout=self._timeout_s)
        body = _encoder.encode(request)
        if len(body) > MOST_BYTES:
            hint = "share fewer records at once: `memd share review` chooses them"
            raise InvalidRequest(f"this is {len(body):,} bytes, and a hub takes {MOST_BYTES:,} at once", hint=hint)
        headers = {"authorization": f"Bearer {self._token()}", "content-type": HUB_TYPE}
        try:
            reply = http.post(self._hub.url + request.path, content=body, headers=headers)
        except httpx.HTTPError as error:
            if _is_untrusted(error):
                raise RemoteRefusal(
                    f"the certificate of {self._hub.url} is not trusted here: {error}",
                    hint="set SSL_CERT_FILE to the file with your organisation's certificate authority, PEM",
                ) from error
            why = str(error) or type(error).__name__
            hint = "everything stays as it is: try again later"
            raise RemoteUnreachable(f"{self._hub.url} does not answer: {why}", hint=hint) from error
        if not reply.is_success:
            raise self._problem(reply)
        try:
            return msgspec.msgpack.decode(reply.content, type=kind)
        except msgspec.MsgspecError as error:
            raise self._not_a_hub() from error

    def _token(self) -> str:
        try:
            return Path(self._hub.pass_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            hint = "`memd hub join URL --pass-file FILE` names another one"
            raise Denied(f"the pass in {self._hub.pass_file} can't be read", hint=hint) from error

    def _problem(self, reply: httpx.Response) -> MemdError:
        try:
            problem = msgspec.msgpack.decode(reply.content, type=HubProblem)
        except msgspec.MsgspecError:
            if reply.status_code >= 500:
                return RemoteUnreachable(f"{self._hub.url} answers {reply.status_code}", hint="try again later")
            return self._not_a_hub()
        error = by_code(problem.code, problem.message, problem.hint)
        if error.code == "unavailable":
            return RemoteUnreachable(problem.message, hint=problem.hint)
        return error

    def _not_a_hub(self) -> RemoteRefusal:
        return RemoteRefusal(f"{self._hub.url} is not a hub of memd", hint="check the address with who gave it to you")


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether a certificate was refused."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def recall_at(hub: JoinedHub, query: str, embedded: TextVectors, limit: int) -> RecalledAtHub:
    """Return what a hub knows, of all pools that the pass covers. Raises Denied, RemoteUnreachable, RemoteRefusal."""
    vector = embedded.vectors[0] if embedded.vectors else None
    with HubClient(hub, RECALL_TIMEOUT_S) as client:
        request = HubRecall(query=query, model=embedded.model, vector=vector, limit=min(limit, MOST_HITS))
        return client.ask(request, RecalledAtHub)


# --- addresses -------------------------------------------------------------------------------------------------------
def split_address(address: str) -> tuple[str, str]:
    """Return a hub's URL and the pool ("" for none) in `[hub+]https://HOST[:PORT][/POOL]`. Raises InvalidRequest."""
    parts = urlsplit(address.strip().removeprefix(HUB_SCHEME))
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise InvalidRequest(f"{address} is not a hub's address", hint="it has the form https://HOST/POOL")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidRequest("a hub's address has a host and a pool alone", hint="the pass goes into --pass-file")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise InvalidRequest("the pass would travel unencrypted", hint="use https://")
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")


def address_of(url: str, pool: str) -> str:
    """Return the address of a share."""
    return f"{HUB_SCHEME}{url}/{pool}"


# --- joined hubs -----------------------------------------------------------------------------------------------------
def joined_hubs(places: Places) -> list[JoinedHub]:
    """Return the hubs that this home uses."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(_file(places).read_bytes(), type=list[JoinedHub])
    return []


def joined_hub(places: Places, url: str) -> JoinedHub:
    """Return a hub of this home. Raises Denied for another one."""
    for hub in joined_hubs(places):
        if hub.url == url:
            return hub
    raise Denied(f"this home has no pass for {url}", hint=f"memd hub join {url} --pass-file FILE")


def remember_hub(places: Places, hub: JoinedHub) -> None:
    """Note a hub, in place of what was known of it. Raises OSError."""
    _write(places, [*(other for other in joined_hubs(places) if other.url != hub.url), hub])


def drop_hub(places: Places, url: str) -> None:
    """Drop a hub, with its pass if this home stores it. Raises OSError."""
    _write(places, [hub for hub in joined_hubs(places) if hub.url != url])
    own_pass_file(places, url).unlink(missing_ok=True)


def own_pass_file(places: Places, url: str) -> Path:
    """Return the file in this home for a pass that came without a file of its own."""
    return places.share / f"{blake2b(url.encode(), digest_size=10).hexdigest()}.pass"


def store_pass(places: Places, url: str, token: str) -> Path:
    """Store a pass in this home, readable by the user alone. Raises OSError."""
    make_private(places.share)
    file = own_pass_file(places, url)
    write_whole(file, token.encode("ascii") + b"\n")
    return file


def _file(places: Places) -> Path:
    return places.share / "hubs.json"


def _write(places: Places, hubs: list[JoinedHub]) -> None:
    make_private(places.share)
    write_whole(_file(places), msgspec.json.encode(sorted(hubs, key=lambda hub: hub.url)) + os.linesep.encode())
