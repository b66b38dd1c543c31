"""The checks of each HTTP request, before any screen sees it, and the headers of each answer.

A request must name this server as its host, come from this page or from no page, come from this user's process where
the system can tell, and carry the key of this run. Only the shell, the static files and the swap of a link's token for
the key are served without the key; none of them has data.
"""

from __future__ import annotations

import hmac
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_VALID_S = 60
"""Seconds for which a link opens the panel."""

LARGEST_BODY = 256 * 1024
"""Bytes of a request; a form of the panel has a few kilobytes."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; "
    "trusted-types memd"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_TCP_TABLE = Path("/proc/net/tcp")


class Keys:
    """The key of this run, and the tokens of links: each opens the panel once, within `TOKEN_VALID_S`."""

    def __init__(self, swapped: Callable[[], object] = lambda: None) -> None:
        """`swapped`: called when a token was swapped for the key."""
        self._swapped = swapped
        self._key = secrets.token_urlsafe(32)
        self._tokens: dict[str, float] = {}

    def token(self) -> str:
        """Return a new token."""
        token = secrets.token_urlsafe(32)
        self._tokens[token] = time.monotonic() + TOKEN_VALID_S
        return token

    def swap(self, token: str) -> str:
        """Return the key for a token that is valid, "" for any other; the token is void then."""
        now = time.monotonic()
        self._tokens = {name: until for name, until in self._tokens.items() if until >= now}
        if self._tokens.pop(token, None) is None:
            return ""
        self._swapped()
        return self._key

    def opens(self, key: str) -> bool:
        """Return whether this is the key, in a time that does not depend on the key."""
        return hmac.compare_digest(key.encode(), self._key.encode())


class Guard:
    """The panel's application behind the checks. `last_request`: monotonic seconds of the last request with the key."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int, static: Path) -> None:
        self._app, self._keys, self._port, self._static = app, keys, port, static
        self._host = f"127.0.0.1:{port}"
        self.last_request = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers) or await self._without_key(scope, headers, receive)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a request that another page, host, user or program sends."""
        if headers.get("host") != self._host:
            return PlainTextResponse("another host", 421)
        if headers.get("origin", f"http://{self._host}") != f"http://{self._host}":
            return PlainTextResponse("another origin", 403)
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
            return PlainTextResponse("another page", 403)
        uid = peer_uid(scope["client"][1], self._port) if scope.get("client") else None
        if uid is not None and uid != os.getuid():
            return PlainTextResponse("another user", 403)
        if scope["method"] not in {"GET", "POST"}:
            return PlainTextResponse("only GET and POST", 405)
        return None if scope["method"] == "GET" else _refused_body(headers)

    async def _without_key(self, scope: Scope, headers: Headers, receive: Receive) -> Response | None:
        """Return the answer to a request without the key, None for one that has it."""
        path, key = scope["path"], headers.get("x-memd-key")
        if scope["method"] == "GET" and path.startswith("/static/"):
            return self._static_file(path.removeprefix("/static/"))
        if scope["method"] == "POST" and path == "/key":
            body = await _body(receive)
            found = self._keys.swap(body.decode("ascii", "replace"))
            return JSONResponse({"key": found}, 200 if found else 401)
        if key is not None and self._keys.opens(key):
            self.last_request = time.monotonic()
            return None
        if key is None and scope["method"] == "GET":
            return FileResponse(self._static / "shell.html")
        return PlainTextResponse("no key, or one of an earlier run", 401)

    def _static_file(self, name: str) -> Response:
        path = (self._static / name).resolve()
        if not path.is_file() or not path.is_relative_to(self._static.resolve()):
            return PlainTextResponse("no such file", 404)
        return FileResponse(path)


def _refused_body(headers: Headers) -> Response | None:
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return PlainTextResponse("a length is missing", 411)
    return PlainTextResponse("too large", 413) if int(length) > LARGEST_BODY else None


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def peer_uid(port: int, server_port: int, table: Path = _TCP_TABLE) -> int | None:
    """Return the user of the process at the other end of a loopback connection, by its `port`; None where the system
    does not tell, as on macOS. See proc_net_tcp(5): local address, remote address and, as the eighth field, the uid."""
    wanted = (f"0100007F:{port:04X}", f"0100007F:{server_port:04X}")
    try:
        lines = table.read_text(encoding="ascii").splitlines()[1:]
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        fields = line.split()
        if (fields[1], fields[2]) == wanted:
            return int(fields[7])
    return None
