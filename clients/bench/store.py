"""The store: durable captures beside two floors, growth of the journal, bytes on disk, replay, opening.

Comes in: a setting. Goes out: figures, each with its target from RELIABILITY. Invariants: the floors run in the same
minutes as memd, in turns, driven by the same 32 sockets with the same bodies; replay is measured in seconds of a core
inside of the daemon's own offline command; nothing of the daemon is imported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from statistics import median

import msgspec

from ...protocol import request, wire
from ...protocol.errors import Unavailable
from ...protocol.event import AnyEvent, Origin, Said
from ...protocol.places import Places
from ..importers.transcript import BATCH_BYTES, BATCH_EVENTS, batches
from ..python.client import Client, socket_path
from .figure import Figure, at_least, at_most
from .floor import floor
from .home import empty_home, running, settle
from .offline import offline
from .part import Part, Setting
from .turns import turns

CLIENTS = 32
ROUNDS, TURNS = 3, 7
MB = 1_000_000
RECALLS = 500
RECORD_EVERY = 134_990 / 35
"""Bytes of captures that give one record: five real sessions of Claude Code, 6.2 MB of transcripts, were imported and
distilled; 556 captures of 134,990 bytes gave 35 records. The sample, all of whose sentences say something, gives twice
as many: so what distilling adds is measured by the record, and counted as often as a real session has one."""

RAW = frozenset({"archive", "turns"})
QUIET = {"MEMD_IDLE_S": "1000000"}  # what is captured here waits: distilling is measured by itself


class Replayed(msgspec.Struct, frozen=True):
    """What the daemon's `replay` command says: operations, records, and seconds of a core."""

    operations: int
    records: int
    chain_s: float
    tables_s: float
    keywords_s: float
    vectors_s: float


# --- acknowledged captures a second ----------------------------------------------------------------------------------
def captures(setting: Setting) -> Part:
    """Durable captures from 32 clients, against the smaller of an echo and of a bare group commit."""
    seconds = 0.7 if setting.quick else 2.0
    rates: dict[str, list[float]] = {"echo": [], "lmdb": [], "memd": []}
    with empty_home(QUIET) as (where, environment), running(where, environment):
        driver = Driver()
        with floor("echo", where.run / "echo.sock") as echo, floor("lmdb", where.run / "lmdb.sock") as bare:
            for _ in range(TURNS):
                rates["echo"].append(driver.rate(echo, seconds))
                rates["lmdb"].append(driver.rate(bare, seconds))
                rates["memd"].append(driver.rate(socket_path(where), seconds))
    least = min(median(rates["echo"]), median(rates["lmdb"]))
    value = median(rates["memd"])
    target = at_least(0.6, times=True)
    figures = (
        Figure(name="captures acknowledged", value=value, unit="/s", floor=least, samples=TURNS, target=target),
        Figure(name="  bare ROUTER echo", value=median(rates["echo"]), unit="/s", samples=TURNS),
        Figure(name="  bare LMDB group commit", value=median(rates["lmdb"]), unit="/s", samples=TURNS),
    )
    return Part(figures=figures, shows_not="what distilling them costs later")


class Driver:
    """32 sockets, each with one message under way: the next goes when the answer is there."""

    def __init__(self) -> None:
        self._number = 0

    def _body(self, client: int) -> bytes:
        self._number += 1
        text = f"Step {self._number}: I keep the planting date as plain text, because a date has no zone; tests follow."
        said = Said(turn=f"t{self._number}", at="2026-01-01T09:00:00+01:00", role="assistant", text=text)
        origin = Origin(host="bench", session=f"client{client}", live=False)
        return wire.encode_request(request.Capture(rid=self._number, origin=origin, events=(said,)))

    def rate(self, path: Path, seconds: float) -> float:
        """Answers a second. Raises Unavailable when something stops answering."""
        import zmq

        bodies = {n: [self._body(n) for _ in range(int(seconds * 1000))] for n in range(CLIENTS)}
        with zmq.Context() as context:
            sockets = {context.socket(zmq.DEALER): n for n in range(CLIENTS)}
            poller = zmq.Poller()
            for socket, n in sockets.items():
                socket.linger = 0
                socket.connect(f"ipc://{path}")
                poller.register(socket, zmq.POLLIN)
                socket.send(bodies[n].pop())
            answered = 0
            begin = now = time.perf_counter()
            while now < begin + seconds:
                ready = poller.poll(5_000)
                if not ready:
                    raise Unavailable(f"{path.name} has stopped answering")
                for socket, _ in ready:
                    answer = socket.recv()
                    answered += b"accepted" in answer or len(answer) == 100
                    if waiting := bodies[sockets[socket]]:
                        socket.send(waiting.pop())
                now = time.perf_counter()
                if not any(bodies.values()):
                    break
            for socket in sockets:
                socket.close()
        return answered / (now - begin)


# --- bytes -----------------------------------------------------------------------------------------------------------
def journal_growth(setting: Setting) -> Part:
    """How much the journal grows when nothing is captured: 500 recalls and profiles."""
    with empty_home() as (where, environment), running(where, environment) as client:
        for n in range(50):
            client.remember(f"The lamp{n} stands in room{n}.")
        settle(client)
        before = _payload_bytes(client)
        for n in range(RECALLS):
            client.recall(f"where is lamp{n % 60}")
            client.profile()
        grown = _payload_bytes(client) - before
    grown_mb = Figure(name="journal at 500 recalls", value=grown / MB, unit="MB", samples=RECALLS, target=at_most(1))
    return Part(figures=(grown_mb,))


def _payload_bytes(client: Client) -> float:
    return float(client.status().size_bytes["journal"])


def on_disk(setting: Setting) -> Part:
    """Bytes on disk for each byte of accepted captures: as captured, and what distilling adds to them."""
    size_bytes = 10 * MB if setting.quick else 100 * MB
    with empty_home(QUIET) as (where, environment), running(where, environment) as client:
        empty = _data_bytes(client)
        accepted = _capture(client, size_bytes)
        raw = (_settled_bytes(client) - empty) / accepted
    with empty_home() as (where, environment), running(where, environment) as client:
        source = turns()
        first = _distilled(client, source, size_bytes // 100)  # a small store is mostly pages that are not full yet
        then = _distilled(client, source, size_bytes // 25)
    records = max(1, then[1] - first[1])
    each, said_each = max(0.0, (then[0] - first[0]) / records), then[2] / records / 1000
    derived = each / RECORD_EVERY
    size = f"{size_bytes // MB} MB"
    total = raw + derived
    figures = (
        Figure(name="disk for captures", value=total, unit="×", samples=accepted // 1000, target=at_most(2.5)),
        Figure(name=f"  as captured, {size}", value=raw, unit="×"),
        Figure(name=f"  distilled, a record every {RECORD_EVERY / 1000:.1f} kB", value=derived, unit="×"),
        Figure(name=f"  a record's bytes, of {said_each:.1f} kB said", value=each, unit="B", samples=records),
    )
    return Part(figures=figures, shows_not="a session that gives more records a byte than the five real ones did")


def _distilled(client: Client, source: Iterator[AnyEvent], size_bytes: int) -> tuple[int, int, int]:
    """Captures so much more and distils it; bytes derived and records in all, bytes captured now."""
    said = _capture(client, size_bytes, source)
    settle(client)
    return _settled_bytes(client, RAW), sum(client.status().records.values()), said


def _capture(client: Client, size_bytes: int, source: Iterator[AnyEvent] | None = None) -> int:
    """Captures so many bytes of events as they are sent, in sessions of 500; how many bytes were accepted."""
    accepted = session = 0
    source = source or turns()
    while accepted < size_bytes:
        session += 1
        origin = Origin(host="bench", session=f"s{session}", live=False)
        for batch in batches(tuple(islice(source, 500)), BATCH_EVENTS, BATCH_BYTES):
            client.capture(origin, batch)
            accepted += sum(len(msgspec.msgpack.encode(each)) for each in batch)
            if accepted >= size_bytes:
                break
    return accepted


def _settled_bytes(client: Client, but: frozenset[str] = frozenset()) -> int:
    """Bytes of the data once they stand still: the indexes commit every second, and follow what came fast later."""
    before, now = -1, _data_bytes(client, but)
    while before != now:
        time.sleep(2.5)
        before, now = now, _data_bytes(client, but)
    return now


def _data_bytes(client: Client, but: frozenset[str] = frozenset()) -> int:
    outside = {"backups", "ballast", "logs", "spool", "replaced", *but}
    return sum(part.size_bytes for part in client.disk_usage().parts if part.name not in outside)


# --- replay and opening ----------------------------------------------------------------------------------------------
def replay(setting: Setting) -> Part:
    """A journal of 100,000 records read back, applied to each projection, and a daemon that opens it."""
    records = 10_000 if setting.quick else 100_000
    with empty_home(QUIET) as (where, environment):
        setting.tell(f"filling a home with {records:,} records")
        offline(environment, "fill-home", str(records))
        setting.tell("replaying it")
        told = msgspec.json.decode(offline(environment, "replay"), type=Replayed)
        opened = median(_opening(where, environment) for _ in range(ROUNDS))
    name = f"open to serving, {records:,} records"
    opening = Figure(name=name, value=opened, unit="s", samples=ROUNDS, target=at_most(1))
    return Part(figures=(*_rates(told), opening), shows_not="a cold page cache: the files were just written")


def _rates(told: Replayed) -> Iterator[Figure]:
    for name, seconds, count, target in (
        ("replay: read, decode, chain", told.chain_s, told.operations, at_least(250_000)),
        ("replay: tables", told.tables_s, told.operations, at_least(30_000)),
        ("replay: keywords", told.keywords_s, told.operations, None),
        ("replay: vectors", told.vectors_s, told.records, None),
    ):
        yield Figure(name=name, value=count / max(seconds, 1e-9), unit="/s", samples=count, target=target)


def _opening(where: Places, environment: Mapping[str, str]) -> float:
    """Seconds from the start of a process to its first answer, after a clean stop."""
    begin = time.perf_counter()
    with running(where, environment):
        return time.perf_counter() - begin
