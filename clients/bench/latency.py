"""Latency of the door: what a recall and a remember take, beside a bare echo in the same run.

Comes in: a setting. Goes out: figures. Invariants: the same connection class and the same sizes of messages on
both sides; rounds of memd and of the echo take turns, so that a busy moment of the machine hits both.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path

from ...protocol import request, wire
from ...protocol.event import Origin
from ..python.client import Client, now, socket_path
from ..python.zmtp import Connection, Deadline
from .echo import echoing
from .figure import Figure, Target, at_most, percentile
from .home import settle, temporary_home
from .part import Part, Setting

ROUNDS = 1000
RECORDS = 200
_NOUNS = "orchard server migration bucket printer database invoice calendar router parser".split()
_VERBS = "prefer use keep avoid check deploy rename test archive review".split()


def recall(setting: Setting) -> Part:
    """A recall among 200 records, against an echo of as many bytes."""
    rounds = _rounds(setting)
    with temporary_home() as places, Client(places) as client:
        for n in range(RECORDS):
            client.remember(_remember(_statement(n)))
        questions = [f"{_NOUNS[n % 10]} {_VERBS[n // 10 % 10]}" for n in range(100)]
        size = len(wire.encode_data(client.recall(questions[0]), 0, "msgpack"))
        with echoing(places.run / "echo.sock") as path:
            echo = Connection(path, Deadline(5_000))
            times, floor = _in_turns(
                lambda n: client.recall(questions[n % 100]), lambda n: _exchange(echo, bytes(size)), rounds
            )
            echo.close()
    return _part("recall", times, floor)


def profile(setting: Setting) -> Part:
    """The profile in a project (HOT), while nothing changes, against an echo of as many bytes."""
    rounds = _rounds(setting)
    with temporary_home() as places, Client(places) as client:
        folder = places.data.parent / "project"
        folder.mkdir()
        (folder / ".memd-id").write_text("bench-latency\n", encoding="utf-8")
        for n in range(RECORDS):
            client.remember(_remember(_statement(n), cwd=str(folder) if n % 2 else ""))
        settle(client)
        wish = wire.encode_request(request.Profile(rid=1, cwd=str(folder)))
        ours = Connection(socket_path(places), Deadline(5_000))
        size = len(_exchange(ours, wish))
        with echoing(places.run / "echo.sock") as path:
            echo = Connection(path, Deadline(5_000))
            times, floor = _in_turns(lambda n: _exchange(ours, wish), lambda n: _exchange(echo, bytes(size)), rounds)
            echo.close()
        ours.close()
    return _part("profile", times, floor, at_most(2, times=True))


def remember(setting: Setting) -> Part:
    """A remember until its acknowledgement, which comes when it is on the disk, against an echo."""
    rounds = _rounds(setting) // 2
    with temporary_home() as places, Client(places) as client:
        wishes = [_remember(_statement(n)) for n in range(rounds + 20)]
        size = len(wire.encode_data(client.remember(_remember("A statement to begin with.")), 0, "msgpack"))
        with echoing(places.run / "echo.sock") as path:
            echo = Connection(path, Deadline(5_000))
            times, floor = _in_turns(
                lambda n: client.remember(wishes[n]), lambda n: _exchange(echo, bytes(size)), rounds
            )
            echo.close()
    return _part("remember", times, floor)


def connect(setting: Setting) -> Part:
    """The smallest request on a new connection each time, as every command makes one, against an echo."""
    rounds = _rounds(setting) // 2
    with temporary_home() as places, echoing(places.run / "echo.sock") as path:
        listening = socket_path(places)
        wish = wire.encode_request(request.GetStatus(rid=1))
        times, floor = _in_turns(lambda n: _once(listening, wish), lambda n: _once(path, wish), rounds)
    return _part("connect", times, floor)


def _once(path: Path, body: bytes) -> None:
    connection = Connection(path, Deadline(5_000))
    _exchange(connection, body)
    connection.close()


def _exchange(connection: Connection, body: bytes) -> bytes:
    deadline = Deadline(5_000)
    connection.send(body, deadline)
    return connection.receive(deadline)


def _in_turns(
    ours: Callable[[int], object], floor: Callable[[int], object], rounds: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of each call, the first of either left out."""
    warm = min(20, rounds)
    times: list[float] = []
    floors: list[float] = []
    for n in range(rounds + warm):
        begin = time.perf_counter()
        ours(n)
        middle = time.perf_counter()
        floor(n)
        end = time.perf_counter()
        if n >= warm:
            times.append((middle - begin) * 1000)
            floors.append((end - middle) * 1000)
    return times, floors


def _rounds(setting: Setting) -> int:
    return ROUNDS // 10 if setting.quick else ROUNDS


def _part(name: str, times: list[float], floor: list[float], median: Target | None = None) -> Part:
    figures = (
        Figure(
            name=f"{name} p{point}",
            value=percentile(times, point),
            unit="ms",
            floor=percentile(floor, point),
            samples=len(times),
            target=median if point == 50 else None,
        )
        for point in (50, 99)
    )
    return Part(figures=tuple(figures), shows_not="many clients at once, nor a large memory")


def _statement(n: int) -> str:
    return f"We {_VERBS[n // 10 % 10]} the {_NOUNS[n % 10]} in room {n} before lunch."


def _remember(text: str, cwd: str = "") -> request.Remember:
    origin = Origin(host="bench", session=cwd or "latency", cwd=cwd)
    return request.Remember(text=text, turn=str(uuid.uuid4()), at=now(), origin=origin)
