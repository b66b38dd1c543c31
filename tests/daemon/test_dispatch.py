"""The dispatch table: each request has one handler, and a pass is checked before the handler runs (A1)."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, TypeVar, get_args

import msgspec
import pytest

from memd.daemon.config import load_config
from memd.daemon.server.dispatch import Dispatcher, table_of
from memd.daemon.server.startup import Daemon
from memd.daemon.services.access.passes import Passes
from memd.daemon.services.service import Caller, CaptureHandler, Handler, Reader, Service
from memd.daemon.world import real_world
from memd.protocol.errors import Denied, MemdError
from memd.protocol.event import Origin
from memd.protocol.map import GetMap, GetRhythm
from memd.protocol.places import places
from memd.protocol.profile import GetContext, Printed, Profile
from memd.protocol.request import (
    QUICK,
    AnyRequest,
    Capture,
    Export,
    Get,
    List,
    Recall,
    Remember,
    Request,
    Stop,
    Why,
    is_quick,
)
from memd.protocol.secret_gate import SecretGate
from memd.stages.secrets.scan import redact

T = TypeVar("T")
REQUESTS: tuple[type[Request], ...] = get_args(AnyRequest)
READS = {Recall, Profile, Get, List, Why, Export, GetContext, Printed, GetMap, GetRhythm}
"""The only requests that the holder of a pass may send."""

GATE = SecretGate(redact, bytes(32))
NAMES = [each.__name__ for each in REQUESTS]


def example(request: type[Request], token: str = "") -> Any:
    """Return a request whose required fields hold the simplest values."""
    values: dict[type, Any] = {str: "x", bytes: b"x", bool: False, int: 0, Origin: Origin(host="h", session="s")}
    fields = {
        field.encode_name: values[field.type] if field.type in values else _simplest(field.type)
        for field in msgspec.structs.fields(request)
        if field.required
    }
    return request(**fields, token=token)


def _simplest(hint: Any) -> Any:
    for value in ((), ("x",), "2026-03-04T18:30:00Z", "x", "0" * 64, 1, b"x"):
        try:
            return msgspec.convert(value, hint)
        except msgspec.ValidationError:
            continue
    return get_args(hint)[0]  # a literal


class RunAtOnce:
    """A write thread that runs the work in the calling thread."""

    def run(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(work())
        return future


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """The services as a start builds them; none of their threads runs yet."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    home = places({"MEMD_HOME": str(folder)}, os.getuid())
    interval = sys.getswitchinterval()
    built = Daemon(home, load_config(home.config, {"MEMD_BALLAST_MB": "0"}), real_world())
    yield built
    built.stop()
    built.run()  # starts and closes everything in order
    sys.setswitchinterval(interval)  # of the whole process: a start sets it


@pytest.fixture(scope="module")
def services(daemon: Daemon) -> Sequence[Service]:
    return daemon._services


@pytest.fixture(scope="module")
def token(daemon: Daemon) -> str:
    """A valid pass that restricts nothing."""
    passes = Passes(daemon._places.state / "pass.key", daemon._places.config / "pass_keys", real_world().now)
    return passes.sign(Reader("g", "reviewer", (), (), real_world().now() + 600 * 10**6))


class Recorded:
    """A dispatcher of the real table and the real authorisation, whose handlers only record the requests."""

    def __init__(self, daemon: Daemon) -> None:
        self.handled: list[Request] = []
        self.callers: list[Caller] = []
        recorder: Any = SimpleNamespace(name="recorder", handlers=self._recording(table_of(daemon._services)))
        self._dispatcher = Dispatcher([recorder], daemon._authorisation, RunAtOnce(), GATE)

    def _recording(self, table: dict[type[Request], Handler | CaptureHandler]) -> dict[type[Request], Any]:
        return {
            request: handler._replace(function=self._answer)
            if isinstance(handler, Handler)
            else handler._replace(take=self._take)
            for request, handler in table.items()
        }

    def _answer(self, request: Any, caller: Caller) -> Any:
        self.handled.append(request)
        self.callers.append(caller)

    def _take(self, captures: Sequence[tuple[Any, Any]]) -> None:
        self.handled += [request for request, _ in captures]

    def send(self, request: Any) -> None:
        """Send a request by its lane. Raises the error that the daemon replies with."""
        if self._dispatcher.lane(request) != "write":
            self._dispatcher.answer(request)
            return
        replies: list[Any] = []
        self._dispatcher.write([(request, replies.append)])
        for reply in replies:
            if isinstance(reply, MemdError):
                raise reply


def test_each_request_has_one_handler_and_each_handler_a_request(services: Sequence[Service]) -> None:
    declared = [request for service in services for request in service.handlers]
    assert len(declared) == len(set(declared)) and set(declared) == set(REQUESTS)
    assert set(table_of(services)) == set(REQUESTS)
    assert len({service.name for service in services}) == len(services)


def test_a_second_handler_of_a_request_is_an_error(services: Sequence[Service]) -> None:
    for service in services:
        for request, handler in service.handlers.items():
            second: Any = SimpleNamespace(name="second", handlers={request: handler})
            for order in ([*services, second], [second, *services]):
                with pytest.raises(ValueError, match=rf"{request.__name__} has a second handler"):
                    table_of(order)


def test_only_reads_are_allowed_under_a_pass_A1(services: Sequence[Service]) -> None:
    assert {request for request, handler in table_of(services).items() if handler.under_pass} == READS


@pytest.mark.parametrize("request_type", REQUESTS, ids=NAMES)
def test_under_a_pass_no_handler_runs_but_those_of_reads_A1(
    daemon: Daemon, token: str, request_type: type[Request]
) -> None:
    recorded = Recorded(daemon)
    request = example(request_type, token)
    if request_type in READS:
        recorded.send(request)
        assert recorded.handled == [request] and recorded.callers[0].reader.subject == "reviewer"
    else:
        with pytest.raises(Denied, match="read-only"):
            recorded.send(request)
        assert recorded.handled == []


@pytest.mark.parametrize("request_type", REQUESTS, ids=NAMES)
def test_no_handler_runs_under_a_pass_that_nobody_signed_A1(daemon: Daemon, request_type: type[Request]) -> None:
    recorded = Recorded(daemon)
    with pytest.raises(Denied):
        recorded.send(example(request_type, "nonsense"))
    assert recorded.handled == []


@pytest.mark.parametrize("request_type", REQUESTS, ids=NAMES)
def test_the_handler_of_each_request_runs_for_the_user(daemon: Daemon, request_type: type[Request]) -> None:
    recorded = Recorded(daemon)
    request = example(request_type)
    recorded.send(request)
    assert recorded.handled == [request]


def test_a_refused_capture_does_not_hold_up_those_that_arrived_with_it_A1(daemon: Daemon, token: str) -> None:
    recorded = Recorded(daemon)
    origin = Origin(host="h", session="s")
    allowed, refused = Capture(origin=origin, events=()), Capture(origin=origin, events=(), token=token)
    replies: list[Any] = []
    arrived: list[tuple[Any, Any]] = [(refused, replies.append), (allowed, replies.append), (allowed, replies.append)]
    recorded._dispatcher.write(arrived)
    assert recorded.handled == [allowed, allowed] and [type(reply) for reply in replies] == [Denied]


def test_clients_wait_briefly_for_the_requests_of_the_fast_lane(services: Sequence[Service]) -> None:
    table = table_of(services)
    dispatcher = Dispatcher(services, SimpleNamespace(caller=None), RunAtOnce(), GATE)  # type: ignore[arg-type]
    for request in REQUESTS:
        assert is_quick(example(request)) == (dispatcher.lane(example(request)) == "fast"), request
    deep = Recall(query="x", deep=True)
    for slow in (deep, Profile(as_of="2026-01-01"), Profile(believed_at="2026-01-01")):
        assert not is_quick(slow) and dispatcher.lane(slow) == "slow"
    fixed = {name for name, handler in table.items() if isinstance(handler, Handler) and handler.lane == "fast"}
    assert fixed | {Recall, Profile} == QUICK and Stop in fixed
    assert {name for name, handler in table.items() if isinstance(handler, CaptureHandler)} == {Capture, Remember}
