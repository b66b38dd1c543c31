"""Bytes on the socket: requests and replies as MessagePack, or as JSON for a client that has nothing else.

Comes in: one message body. Goes out: a decoded request or reply, or an error that names what is wrong with it.
Invariants: a body that starts with `{` is JSON and is answered in JSON; whatever bytes arrive, decoding ends in a value
or in an `InvalidRequest` (msgspec raises three kinds of errors; all are caught here and nowhere else).
"""

from __future__ import annotations

from functools import cache
from typing import Literal, TypeVar, get_args

import msgspec

from .errors import InvalidRequest, MemdError, NaiveTime, TooLarge, UnknownRequest, by_code
from .reply import AnyData, Problem
from .request import PROTOCOL, AnyRequest, Request

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of one body. The socket's own limit lies above it, so that a sender is told instead of cut off."""

TEXT_LIMIT = 512 * 1024
"""Characters of one event's text."""

Form = Literal["msgpack", "json"]
T = TypeVar("T")

_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_encoders = {"msgpack": msgspec.msgpack.Encoder(), "json": msgspec.json.Encoder()}
_names = sorted(str(cls.__struct_config__.tag) for cls in get_args(AnyRequest))


class _Head(msgspec.Struct):
    """As much of a body as is needed to answer a request that does not decode."""

    request: str = ""
    rid: int = 0
    v: int = PROTOCOL


class _Good(msgspec.Struct):
    ok: bool
    rid: int
    data: object


class _Bad(msgspec.Struct):
    ok: bool
    rid: int
    error: Problem


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


def form(body: bytes) -> Form:
    """The form of a body: JSON starts with `{`, which is no MessagePack map."""
    return "json" if body[:1] == b"{" else "msgpack"


def decode_request(body: bytes) -> AnyRequest:
    """The request in `body`. Raises TooLarge, UnknownRequest or InvalidRequest, each saying what is wrong."""
    if len(body) > BODY_LIMIT:
        raise TooLarge(f"the message has {len(body):,} bytes", hint=f"send at most {BODY_LIMIT:,} bytes at once")
    try:
        request = _request_decoder(form(body)).decode(body)
    except _UNDECODABLE as error:
        raise _explain(body, error) from error
    if request.v > PROTOCOL:
        raise _too_new(request.v)
    return request


def head(body: bytes) -> tuple[int, int]:
    """`(rid, v)` of a body that may not decode; zeros where it says nothing readable."""
    try:
        found = (msgspec.json if form(body) == "json" else msgspec.msgpack).decode(body, type=_Head)
    except _UNDECODABLE:
        return 0, 0
    return found.rid, found.v


def _explain(body: bytes, error: Exception) -> MemdError:
    try:
        found = (msgspec.json if form(body) == "json" else msgspec.msgpack).decode(body, type=_Head)
    except _UNDECODABLE:
        return InvalidRequest(
            "the message is neither a MessagePack nor a JSON request", hint="docs/PROTOCOL.md describes the format"
        )
    if found.v > PROTOCOL:
        return _too_new(found.v)
    if found.request not in _names:
        return UnknownRequest(f"unknown request {found.request!r}", hint=f"there are: {', '.join(_names)}")
    return InvalidRequest(f"{found.request}: {error}", hint="docs/PROTOCOL.md lists the fields of each request")


def _too_new(version: int) -> UnknownRequest:
    return UnknownRequest(
        f"the client uses protocol version {version}, the daemon version {PROTOCOL}",
        hint="restart the daemon: `memd down; memd up`",
    )


def encode_request(request: Request, as_form: Form = "msgpack") -> bytes:
    """Bytes of a request. Raises TooLarge: a socket would only cut the connection."""
    body = _encoders[as_form].encode(request)
    if len(body) > BODY_LIMIT:
        raise TooLarge(f"the request has {len(body):,} bytes", hint=f"send at most {BODY_LIMIT:,} bytes at once")
    return body


def encode_data(data: AnyData, rid: int, as_form: Form) -> bytes:
    """Bytes of `{ok: true, rid, data}`."""
    return _encoders[as_form].encode(_Good(True, rid, data))


def encode_error(error: MemdError, rid: int, as_form: Form) -> bytes:
    """Bytes of `{ok: false, rid, error: {code, message, hint}}`."""
    return _encoders[as_form].encode(_Bad(False, rid, Problem(error.code, error.message, error.hint)))


def decode_reply(body: bytes, data: type[T]) -> tuple[int, T]:
    """`(rid, data)` of a MessagePack reply. Raises the daemon's error; InvalidRequest for bytes that are no reply."""
    try:
        raw = _raw_replies.decode(body)
        if raw.ok:
            return raw.rid, msgspec.msgpack.decode(raw.data, type=data)
    except _UNDECODABLE as error:
        raise InvalidRequest(
            f"cannot decode the daemon's reply: {error}",
            hint="client and daemon may have different versions: `memd down; memd up`",
        ) from error
    problem = raw.error or Problem("error", "the daemon returned an error without a reason")
    raise by_code(problem.code, problem.message, problem.hint)


def problem(error: MemdError) -> Problem:
    """The wire form of an error."""
    return Problem(error.code, error.message, error.hint)


__all__ = [
    "BODY_LIMIT",
    "TEXT_LIMIT",
    "Form",
    "NaiveTime",
    "decode_reply",
    "decode_request",
    "encode_data",
    "encode_error",
    "encode_request",
    "form",
    "head",
    "problem",
]
