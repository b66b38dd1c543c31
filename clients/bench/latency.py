"""Latency of requests, alternating with an echo of messages of the same size on the same connection class."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

from ...protocol import request, wire
from ...protocol.event import Origin
from ..python.client import now, socket_path
from ..python.zmtp import Connection, Deadline
from .measurement import BenchOptions, PartResult, Target, at_most, elapsed_ms, percentile_figure
from .processes import baseline
from .temporary_daemon import settle, temporary_daemon

DEADLINE_MS = 5_000
ROUNDS = 1000
RECORDS = 200
_NOUNS = "orchard server migration bucket printer database invoice calendar router parser".split()
_VERBS = "prefer use keep avoid check deploy rename test archive review".split()


def exchange(connection: Connection, body: bytes) -> bytes:
    """Send a message and wait for the answer."""
    deadline = Deadline(DEADLINE_MS)
    connection.send(body, deadline)
    return connection.receive(deadline)


@contextmanager
def echo_call(path: Path, size: int) -> Generator[Callable[[], bytes]]:
    """A function that sends `size` bytes to an echo on `path` and waits until they are back."""
    body = bytes(size)
    with baseline("echo", path), closing(Connection(path, Deadline(DEADLINE_MS))) as connection:
        yield lambda: exchange(connection, body)


def recall(options: BenchOptions) -> PartResult:
    """A recall among 200 records, against an echo of as many bytes."""
    with temporary_daemon() as client:
        for n in range(RECORDS):
            client.remember(_remember(_statement(n)))
        questions = [f"{_NOUNS[n % 10]} {_VERBS[n // 10 % 10]}" for n in range(100)]
        size = len(wire.encode_data(client.recall(questions[0]), 0, "msgpack"))
        with echo_call(client.places.run / "echo.sock", size) as echo:
            rounds = _rounds(options)
            return _alternated("recall", rounds, lambda n: client.recall(questions[n % 100]), lambda _: echo())


def profile(options: BenchOptions) -> PartResult:
    """The profile of an unchanged project, against an echo of as many bytes."""
    with temporary_daemon() as client:
        folder = client.places.data.parent / "project"
        folder.mkdir()
        (folder / ".memd-id").write_text("bench-latency\n", encoding="utf-8")
        for n in range(RECORDS):
            client.remember(_remember(_statement(n), cwd=str(folder) if n % 2 else ""))
        settle(client)
        wish = wire.encode_request(request.Profile(rid=1, cwd=str(folder)))
        with closing(Connection(socket_path(client.places), Deadline(DEADLINE_MS))) as connection:
            size = len(exchange(connection, wish))
            with echo_call(client.places.run / "echo.sock", size) as echo:
                rounds, target = _rounds(options), at_most(2, times=True)
                return _alternated("profile", rounds, lambda _: exchange(connection, wish), lambda _: echo(), target)


def remember(options: BenchOptions) -> PartResult:
    """A remember until it is acknowledged, which means written to the disk, against an echo."""
    rounds = _rounds(options) // 2
    with temporary_daemon() as client:
        wishes = [_remember(_statement(n)) for n in range(rounds + 20)]
        size = len(wire.encode_data(client.remember(_remember("A statement to begin with.")), 0, "msgpack"))
        with echo_call(client.places.run / "echo.sock", size) as echo:
            return _alternated("remember", rounds, lambda n: client.remember(wishes[n]), lambda _: echo())


def connect(options: BenchOptions) -> PartResult:
    """The smallest request on a new connection each time, as each command makes one, against an echo."""
    wish = wire.encode_request(request.GetStatus(rid=1))

    def once(path: Path) -> None:
        with closing(Connection(path, Deadline(DEADLINE_MS))) as connection:
            exchange(connection, wish)

    with temporary_daemon() as client, baseline("echo", client.places.run / "echo.sock") as echo:
        daemon = socket_path(client.places)
        return _alternated("connect", _rounds(options) // 2, lambda _: once(daemon), lambda _: once(echo))


def _rounds(options: BenchOptions) -> int:
    return ROUNDS // 10 if options.quick else ROUNDS


def _alternated(
    name: str, rounds: int, call: Callable[[int], object], floor: Callable[[int], object], median: Target | None = None
) -> PartResult:
    """Percentiles of the call and its floor, each round one of both; some rounds first that do not count."""
    warm = min(20, rounds)
    times, floors = list[float](), list[float]()
    for n in range(rounds + warm):
        times.append(elapsed_ms(call, n))
        floors.append(elapsed_ms(floor, n))
    figures = (
        percentile_figure(f"{name} p{point}", times[warm:], point, floors[warm:], target)
        for point, target in ((50, median), (99, None))
    )
    return PartResult(tuple(figures), shows_not="many clients at once, or a large memory")


def _statement(n: int) -> str:
    return f"We {_VERBS[n // 10 % 10]} the {_NOUNS[n % 10]} in room {n} before lunch."


def _remember(text: str, cwd: str = "") -> request.Remember:
    origin = Origin(host="bench", session=cwd or "latency", cwd=cwd)
    return request.Remember(text=text, turn=str(uuid.uuid4()), at=now(), origin=origin)
