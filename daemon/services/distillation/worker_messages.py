"""Messages between the daemon and its worker: length-prefixed MessagePack of one tagged union.

The worker answers each task once, in order, and knows of the stores only what a task contains.
"""

from __future__ import annotations

from typing import IO

import msgspec

from ....protocol.record import Record
from ....stages.batch import Batch, Conflict, Given, Item, Known, Proposal


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="task"):
    """Base of what the daemon asks."""


class DistilItems(Task, tag="distil", frozen=True, kw_only=True):
    """Run all stages but the last over these captures; keep the candidates for `JudgeCandidates`."""

    items: tuple[Item, ...]
    given: dict[str, Given] = {}


class JudgeCandidates(Task, tag="judge", frozen=True, kw_only=True):
    """Judge the candidates of the last distil task against these neighbours, by candidate id."""

    known: dict[str, tuple[Known, ...]]


class EmbedTexts(Task, tag="embed", frozen=True, kw_only=True):
    """Vectors for texts that have none of this model's."""

    texts: tuple[str, ...]


class HoldAgainst(Task, tag="hold_against", frozen=True, kw_only=True):
    """Hold the new records of ended sessions against what is held on to (T13); `cosines` by held, then by fresh."""

    held: tuple[Record, ...]
    fresh: tuple[Record, ...]
    cosines: tuple[tuple[float, ...], ...]


AnyTask = DistilItems | JudgeCandidates | EmbedTexts | HoldAgainst


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="result"):
    """Base of what the worker answers."""


class Ready(Result, tag="ready", frozen=True, kw_only=True):
    """The model is loaded; the first message of every worker."""


class Distillate(Result, tag="distilled", frozen=True, kw_only=True):
    """The batch after stage five, with the ids its candidates will have, and seconds by stage."""

    batch: Batch
    ids: tuple[str, ...]
    seconds: dict[str, float]


class Judged(Result, tag="judged", frozen=True, kw_only=True):
    """A proposal for each candidate."""

    proposals: tuple[Proposal, ...]


class Embedded(Result, tag="embedded", frozen=True, kw_only=True):
    """A vector for each text: float32 numbers as bytes."""

    vectors: tuple[bytes, ...]


class Conflicts(Result, tag="conflicts", frozen=True, kw_only=True):
    """Pairs that can't both be true."""

    found: tuple[Conflict, ...]


class Crashed(Result, tag="crashed", frozen=True, kw_only=True):
    """The task raised; the worker lives on."""

    error: str


AnyResult = Ready | Distillate | Judged | Embedded | Conflicts | Crashed

_encode = msgspec.msgpack.Encoder().encode
_tasks = msgspec.msgpack.Decoder(AnyTask)
_results = msgspec.msgpack.Decoder(AnyResult)


def send(stream: IO[bytes], message: AnyTask | AnyResult) -> None:
    """Write one message and flush. Raises BrokenPipeError when the other side is gone."""
    body = _encode(message)
    stream.write(len(body).to_bytes(4) + body)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head)
    body = stream.read(size)
    return body if len(body) == size else None


def receive_task(stream: IO[bytes]) -> AnyTask | None:
    """The next task, None when the daemon is gone."""
    body = _receive(stream)
    return None if body is None else _tasks.decode(body)


def receive_result(stream: IO[bytes]) -> AnyResult | None:
    """The next result, None when the worker is gone."""
    body = _receive(stream)
    return None if body is None else _results.decode(body)
