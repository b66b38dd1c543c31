"""What a service is: its request handlers with their lanes, and how it starts, stops and follows new settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from ...protocol.errors import MemdError
from ...protocol.intent import Request
from ...protocol.record import Record
from ...protocol.reply import AnyData
from ...protocol.request import Capture, Remember
from ..config import Config

Lane = Literal["fast", "slow", "write"]
"""`fast`: the request server's thread; `slow`: one thread beside it; `write`: the thread that appends to the logs."""

Permits = Callable[[Record], bool]
Respond = Callable[[AnyData | MemdError], None]
CaptureRequest = Capture | Remember


class Reader(NamedTuple):
    """Who reads: a subject under a grant, these pools (all if none is named), what rests on these sources alone (on any
    if none is named), until `expires_at` in microseconds."""

    grant: str = ""
    subject: str = ""
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    expires_at: int = 0


OWNER = Reader()
"""The user, who asks without a pass and sees everything of this home."""


class Caller(NamedTuple):
    """Who asks, as authorised: the limits of the pass, and the memory that its bearer may see.

    `scope`: the pools to read, in order of precedence; empty for a request without a scope.
    `permits`: whether a record may be shown; None where every record may.
    `hears`: whether words of a document may be shown; None where all may.
    """

    reader: Reader = OWNER
    scope: tuple[str, ...] = ()
    permits: Permits | None = None
    hears: Callable[[str], bool] | None = None


class Handler(NamedTuple):
    """How one request type is answered.

    `under_pass`: whether the bearer of a pass may send it; all others are for the user of this home alone.
    `scoped`: whether the request names the memory to read by folder, repository, pools or agent.
    """

    lane: Lane | Callable[[Any], Lane]
    function: Callable[[Any, Caller], AnyData]
    under_pass: bool = False
    scoped: bool = False


class CaptureHandler(NamedTuple):
    """How captures are taken: all that arrived together, in one group on the write thread."""

    take: Callable[[Sequence[tuple[CaptureRequest, Respond]]], None]
    under_pass: bool = False
    scoped: bool = False


Handlers = Mapping[type[Request], Handler | CaptureHandler]


def owner(lane: Lane, function: Callable[[Any], AnyData]) -> Handler:
    """Return a handler for the user of this home alone, without a scope."""

    def answer(request: Any, caller: Caller) -> AnyData:
        return function(request)

    return Handler(lane, answer)


class Service(Protocol):
    """One capability of the daemon. The server starts services in their order and stops them in reverse."""

    name: ClassVar[str]

    @property
    def handlers(self) -> Handlers:
        """The request types that this service answers."""
        ...

    def start(self) -> None:
        """Start threads and jobs; nothing by default."""

    def reload(self, config: Config) -> None:
        """Follow new settings; nothing by default."""

    def stop(self) -> None:
        """End threads and jobs, while the write thread still runs; nothing by default."""

    def close(self) -> None:
        """Save what is in memory, after the last request was answered; nothing by default."""
