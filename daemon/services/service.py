"""The interface of services: request handlers with their lanes, start, stop, and reload of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from ...protocol.errors import MemdError
from ...protocol.record import Record
from ...protocol.reply import AnyData
from ...protocol.request import Capture, Remember
from ...protocol.request_fields import Request
from ..config import Config

Lane = Literal["fast", "slow", "write"]
"""`fast`: the request server's thread; `slow`: one thread beside it; `write`: the thread that appends to the logs."""

Permits = Callable[[Record], bool]
Reads = Callable[[str, str], bool]
Respond = Callable[[AnyData | MemdError], None]
CaptureRequest = Capture | Remember


class Reader(NamedTuple):
    """The reader of a request: the user, or the holder of a pass.

    `pools`, `sources`: the only ones that the reader may see; empty for all. `expires_at`: microseconds.
    """

    grant: str = ""
    subject: str = ""
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    expires_at: int = 0


OWNER = Reader()
"""The user, who sends no pass and sees everything of this home."""


class Caller(NamedTuple):
    """The authorised asker of a request, with the memory that it may see.

    `scope`: the pools to read, in order of precedence; empty for a request without a scope.
    `permits`: tells whether a record may be shown, in its present or in a past state; None if every record may.
    `hears`: tells whether the text of a document may be shown; None if every document may.
    `reads`: tells whether a turn, named by document and turn, may be shown; None if every turn may.
    `knows`: tells whether a pool may be named; None if every pool may.
    """

    reader: Reader = OWNER
    scope: tuple[str, ...] = ()
    permits: Permits | None = None
    hears: Callable[[str], bool] | None = None
    reads: Reads | None = None
    knows: Callable[[str], bool] | None = None

    @property
    def is_owner(self) -> bool:
        """Whether the user asks. The request of a pass's holder leaves no trace, not even in memory."""
        return self.reader == OWNER


class Handler(NamedTuple):
    """How one request type is answered.

    `under_pass`: whether the holder of a pass may send it; otherwise only the user may.
    `scoped`: whether the request names pools, a folder, a repository or an agent to read.
    `is_ready`: tells whether a request with `wait_ms` need not wait any longer.
    """

    lane: Lane | Callable[[Any], Lane]
    function: Callable[[Any, Caller], AnyData]
    under_pass: bool = False
    scoped: bool = False
    is_ready: Callable[[Any], bool] | None = None


class CaptureHandler(NamedTuple):
    """Takes the captures that arrived together, for one group on the write thread."""

    take: Callable[[Sequence[tuple[CaptureRequest, Respond]]], None]
    under_pass: bool = False
    scoped: bool = False


Handlers = Mapping[type[Request], Handler | CaptureHandler]


def owner(lane: Lane, function: Callable[[Any], AnyData], is_ready: Callable[[Any], bool] | None = None) -> Handler:
    """Return a handler without a scope for requests that only the user may send."""

    def answer(request: Any, caller: Caller) -> AnyData:
        return function(request)

    return Handler(lane, answer, is_ready=is_ready)


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
