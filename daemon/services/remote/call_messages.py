"""Messages between the daemon and the process that calls a remote model: the process says that it is ready, then one
call and one answer, each MessagePack with its length before it."""

from __future__ import annotations

from typing import IO, TypeVar

import msgspec

from ....protocol.remote import CallOutcome, Dialect

MOST_BYTES = 4 << 20
"""Longest message."""


READY = b"+"
"""What the process writes when it has loaded its libraries."""


class RemoteTask(msgspec.Struct, frozen=True, kw_only=True):
    """A call. `key_file`: the file with the key, which only the process reads, "" for none; `ca_file`: the file with
    the certificates that it trusts, "" for those of the usual authorities. Times in seconds."""

    url: str
    dialect: Dialect
    body: str
    key_file: str = ""
    ca_file: str = ""
    connect_s: float = 3.0
    deadline_s: float = 60.0


class CallAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a call. `content`: what the model wrote; `tokens`: the server's count, 0 for none; `sent`: bytes
    of the body that left; `retry_s`: how long the server asks to wait; `problem`: for `memd status`, without
    captured text."""

    outcome: CallOutcome
    content: str = ""
    tokens: int = 0
    sent: int = 0
    status: int = 0
    retry_s: float = 0.0
    problem: str = ""


_encode = msgspec.msgpack.Encoder().encode
M = TypeVar("M", RemoteTask, CallAnswer)


def write_message(stream: IO[bytes], message: RemoteTask | CallAnswer) -> None:
    """Write one message and flush. Raises BrokenPipeError when the other side is gone."""
    body = _encode(message)
    stream.write(len(body).to_bytes(4) + body)
    stream.flush()


def read_message(stream: IO[bytes], kind: type[M]) -> M | None:
    """Return the next message, None when the other side is gone or sent none."""
    head = stream.read(4)
    size = int.from_bytes(head) if len(head) == 4 else 0
    body = stream.read(size) if 0 < size <= MOST_BYTES else b""
    if not body or len(body) < size:
        return None
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.MsgspecError:
        return None
