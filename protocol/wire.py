"""Encoding of requests and replies as MessagePack or JSON.

Invariants: a body that starts with `{` is JSON and gets a JSON reply; decoding any bytes gives a value or raises
`InvalidRequest`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, TypeVar, get_args

import msgspec

from .errors import InvalidRequest, MemdError, TooLarge, UnknownRequest, by_code
from .record import typed
from .reply import AnyData, Problem
from .request import PROTOCOL, AnyRequest, Request
from .scope import NAME_RULE
from .text_limits import FIELD_LIMIT, check_texts

BODY_LIMIT = 4 * 1024 * 1024
"""Maximum bytes of a body. The socket's limit is higher, so a sender gets an error, not a closed connection."""

MESSAGE_CHARACTERS, HINT_CHARACTERS = 500, 2000
"""Maximum characters of an error's message and hint. The longest hint of memd's own lists all requests."""

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that change how a terminal shows the text, except a line break."""

Form = Literal["msgpack", "json"]
T = TypeVar("T")

_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_encoders = {"msgpack": msgspec.msgpack.Encoder(), "json": msgspec.json.Encoder()}
_names = sorted(str(cls.__struct_config__.tag) for cls in get_args(AnyRequest))


class _Head(msgspec.Struct):
    """The fields of a body that memd needs to reply to a request that does not decode."""

    request: str = ""
    rid: int = 0
    v: int = PROTOCOL


class _Reply(msgspec.Struct):
    ok: bool
    rid: int
    data: object = msgspec.UNSET
    error: Problem | msgspec.UnsetType = msgspec.UNSET


class _Raw(msgspec.Struct):
    ok: bool
    rid: int = 0
    data: msgspec.Raw = msgspec.Raw()
    error: Problem | None = None


_raw_replies = msgspec.msgpack.Decoder(_Raw)


@cache
def _request_decoder(form: Form) -> msgspec.msgpack.Decoder[AnyRequest] | msgspec.json.Decoder[AnyRequest]:
    """Built for the first request, because it takes 4 ms and a client needs none."""
    return (msgspec.json if form == "json" else msgspec.msgpack).Decoder(AnyRequest)


def prepare() -> None:
    """Build the request decoders, so that the daemon's first request does not wait for them (7 ms each)."""
    _request_decoder("msgpack")
    _request_decoder("json")


def form(body: bytes) -> Form:
    """Return the form of a body: JSON starts with `{`, which starts no MessagePack map."""
    return "json" if body[:1] == b"{" else "msgpack"


def decode_request(body: bytes) -> AnyRequest:
    """Decode a request. Raises TooLarge, UnknownRequest or InvalidRequest with the problem."""
    _check_size("message", body)
    try:
        request = _request_decoder(form(body)).decode(body)
    except _UNDECODABLE as error:
        raise _explain(body, error) from error
    if request.v > PROTOCOL:
        raise _too_new(request.v)
    if len(body) > FIELD_LIMIT:
        check_texts(request)
    return request


def head(body: bytes) -> tuple[int, int]:
    """Return `(rid, v)` of a body that may not decode; zeros if they are unreadable."""
    fields = _decode_head(body)
    return (fields.rid, fields.v) if fields else (0, 0)


def _decode_head(body: bytes) -> _Head | None:
    try:
        return (msgspec.json if form(body) == "json" else msgspec.msgpack).decode(body, type=_Head)
    except _UNDECODABLE:
        return None


def _explain(body: bytes, error: Exception) -> MemdError:
    fields = _decode_head(body)
    if fields is None:
        return InvalidRequest(
            "the message is neither a MessagePack nor a JSON request", hint="docs/PROTOCOL.md describes the format"
        )
    if fields.v > PROTOCOL:
        return _too_new(fields.v)
    if fields.request not in _names:
        return UnknownRequest(f"unknown request {fields.request!r}", hint=f"there are: {', '.join(_names)}")
    if "matching regex" in str(error):
        return InvalidRequest(NAME_RULE, hint="choose another name")
    return InvalidRequest(f"{fields.request}: {error}", hint="docs/PROTOCOL.md lists the fields of each request")


def _too_new(version: int) -> UnknownRequest:
    return UnknownRequest(
        f"the client uses protocol version {version}, the daemon version {PROTOCOL}",
        hint="restart the daemon: `memd down; memd up`",
    )


def _check_size(name: str, body: bytes) -> None:
    if len(body) > BODY_LIMIT:
        raise TooLarge(f"the {name} has {len(body):,} bytes", hint=f"send at most {BODY_LIMIT:,} bytes at once")


def encode_request(request: Request, as_form: Form = "msgpack") -> bytes:
    """Encode a request. Raises TooLarge, where the socket would only close the connection."""
    body = _encoders[as_form].encode(request)
    _check_size("request", body)
    return body


def encode_data(data: AnyData, rid: int, as_form: Form) -> bytes:
    """Encode `{ok: true, rid, data}`. In JSON a record also has its `type`; in MessagePack it is the first tag."""
    return _encoders[as_form].encode(_Reply(True, rid, typed(data) if as_form == "json" else data))


def encode_error(error: MemdError, rid: int, as_form: Form) -> bytes:
    """Encode `{ok: false, rid, error: {code, message, hint}}`."""
    return _encoders[as_form].encode(_Reply(False, rid, error=problem(error)))


def decode_reply(body: bytes, data: type[T]) -> tuple[int, T]:
    """Decode `(rid, data)` of a MessagePack reply. Raises the daemon's error; InvalidRequest if it does not decode."""
    try:
        raw = _raw_replies.decode(body)
        if raw.ok:
            return raw.rid, msgspec.msgpack.decode(raw.data, type=data)
    except _UNDECODABLE as error:
        raise InvalidRequest(
            f"cannot decode the daemon's reply: {error}",
            hint="client and daemon may have different versions: `memd down; memd up`",
        ) from error
    reported = raw.error or Problem("error", "the daemon returned an error without a reason")
    raise by_code(reported.code, reported.message, reported.hint)


def problem(error: MemdError) -> Problem:
    """Return the wire form of an error: of bounded length and without control characters, as it may quote input."""
    return Problem(error.code, _printable(error.message, MESSAGE_CHARACTERS), _printable(error.hint, HINT_CHARACTERS))


def _printable(words: str, most: int) -> str:
    words = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", words)
    return words if len(words) <= most else f"{words[: most - 1]}…"
