"""Messages between the daemon and its worker: length-prefixed MessagePack of one tagged union.

The worker answers each task once, in order, and knows of the stores only what a task contains.
"""

from __future__ import annotations

from typing import IO, TypeVar

import msgspec

from ....protocol.ingestion import WeighedBy
from ....protocol.record import Record, Span
from ....stages.batch import AgentText, Batch, Conflict, Given, Item, Known, Point, Proposal, Weight
from ....stages.same_rules import ToldPair


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="task"):
    """Base of the daemon's tasks."""


class DistilItems(Task, tag="distil", frozen=True, kw_only=True):
    """Run all stages but the last over these captures; keep the candidates for `JudgeCandidates`. By document: `given`,
    texts that memd gave to the session; `agent`, what its agent wrote last."""

    items: tuple[Item, ...]
    given: dict[str, Given] = {}
    agent: dict[str, tuple[AgentText, ...]] = {}


class JudgeCandidates(Task, tag="judge", frozen=True, kw_only=True):
    """Judge the candidates of the last distil task against these neighbours, by candidate id."""

    known: dict[str, tuple[Known, ...]]


class EmbedTexts(Task, tag="embed", frozen=True, kw_only=True):
    """Embed texts that have no vector of this model."""

    texts: tuple[str, ...]


class ComparePinned(Task, tag="hold_against", frozen=True, kw_only=True):
    """Compare new records of ended sessions with pinned records; `cosines` by held, then by fresh."""

    held: tuple[Record, ...]
    fresh: tuple[Record, ...]
    cosines: tuple[tuple[float, ...], ...]


class FindPoints(Task, tag="find_points", frozen=True, kw_only=True):
    """Find the clauses of a chunk that are worth most (W12): at most `most`, of at most `read` that are read, after the
    words that another reader pointed at."""

    items: tuple[Item, ...]
    most: int
    read: int
    pointed: tuple[Span, ...] = ()


class CheckPoints(Task, tag="check_points", frozen=True, kw_only=True):
    """Return those of these points that may stand in a summary (W12). `items`: the captures that they are of."""

    items: tuple[Item, ...]
    points: tuple[Point, ...]


class WeighTexts(Task, tag="weigh", frozen=True, kw_only=True):
    """Weigh items from which a user may choose (W12)."""

    texts: tuple[str, ...]
    by: WeighedBy = "both"


class CompareStatements(Task, tag="compare", frozen=True, kw_only=True):
    """Say of pairs of statements whether they state one rule (G3)."""

    pairs: tuple[ToldPair, ...]


class RateLasting(Task, tag="rate", frozen=True, kw_only=True):
    """Say of statements how likely they hold from now on (G3)."""

    texts: tuple[str, ...]


AnyTask = (
    DistilItems
    | JudgeCandidates
    | EmbedTexts
    | ComparePinned
    | FindPoints
    | CheckPoints
    | WeighTexts
    | CompareStatements
    | RateLasting
)


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="result"):
    """Base of the worker's results."""


class Ready(Result, tag="ready", frozen=True, kw_only=True):
    """The model is loaded; the first message of every worker."""


class Distillate(Result, tag="distilled", frozen=True, kw_only=True):
    """The batch before judgement, with the ids that its candidates will have."""

    batch: Batch
    ids: tuple[str, ...]


class Judged(Result, tag="judged", frozen=True, kw_only=True):
    """A proposal for each candidate."""

    proposals: tuple[Proposal, ...]


class Embedded(Result, tag="embedded", frozen=True, kw_only=True):
    """A vector for each text: float32 numbers as bytes."""

    vectors: tuple[bytes, ...]


class Conflicts(Result, tag="conflicts", frozen=True, kw_only=True):
    """Pairs that can't both be true."""

    found: tuple[Conflict, ...]


class PointsFound(Result, tag="points", frozen=True, kw_only=True):
    """Points, in the order of the text."""

    points: tuple[Point, ...]


class Weighed(Result, tag="weighed", frozen=True, kw_only=True):
    """A weight for each text."""

    weights: tuple[Weight, ...]


class Rated(Result, tag="rated", frozen=True, kw_only=True):
    """A probability for each pair, or each text."""

    likely: tuple[float, ...]


class Crashed(Result, tag="crashed", frozen=True, kw_only=True):
    """The task raised; the worker lives on."""

    error: str


AnyResult = Ready | Distillate | Judged | Embedded | Conflicts | PointsFound | Weighed | Rated | Crashed

_encode = msgspec.msgpack.Encoder().encode
_tasks: msgspec.msgpack.Decoder[AnyTask] = msgspec.msgpack.Decoder(AnyTask)
_results: msgspec.msgpack.Decoder[AnyResult] = msgspec.msgpack.Decoder(AnyResult)
M = TypeVar("M")


def send(stream: IO[bytes], message: AnyTask | AnyResult) -> None:
    """Write one message and flush. Raises BrokenPipeError when the other side is gone."""
    body = _encode(message)
    stream.write(len(body).to_bytes(4) + body)
    stream.flush()


def _receive(stream: IO[bytes], decoder: msgspec.msgpack.Decoder[M]) -> M | None:
    head = stream.read(4)
    body = stream.read(int.from_bytes(head)) if len(head) == 4 else b""
    return decoder.decode(body) if len(head) == 4 and len(body) == int.from_bytes(head) else None


def receive_task(stream: IO[bytes]) -> AnyTask | None:
    """Return the next task, None when the daemon is gone."""
    return _receive(stream, _tasks)


def receive_result(stream: IO[bytes]) -> AnyResult | None:
    """Return the next result, None when the worker is gone."""
    return _receive(stream, _results)
