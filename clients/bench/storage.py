"""The storage and full-size memories: captures, growth, bytes on disk, replay, opening, sleep.

The baselines of captures run alternately with memd, driven by the same 32 sockets with the same bodies.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from statistics import fmean, median, stdev

import msgspec

from ...protocol import request, wire
from ...protocol.errors import Unavailable
from ...protocol.event import AnyEvent, Origin, Said
from ..importers.transcript import BATCH_BYTES, BATCH_EVENTS, batches
from ..python.client import Client, socket_path
from .measurement import BenchOptions, Figure, PartResult, at_least, at_most, mean_figure
from .processes import ANSWER, baseline
from .session_data import turns
from .temporary_daemon import empty_home, offline, running, settle, temporary_daemon

CLIENTS = 32
ROUNDS, TURNS = 3, 7
MB = 1_000_000
RECALLS = 500
RECORD_EVERY = 134_990 / 35
"""Bytes of captures that give one record: five real sessions of Claude Code, 6.2 MB of transcripts, gave 35 records of
556 captures with 134,990 bytes. The sample gives twice as many, because every sentence of it holds a fact; therefore
the bytes that distilling adds are measured per record and multiplied by the rate of the real sessions."""

RAW = frozenset({"archive", "turns"})
NO_DISTILLING = {"MEMD_IDLE_S": "1000000"}


# --- acknowledged captures a second ----------------------------------------------------------------------------------
def captures(options: BenchOptions) -> PartResult:
    """Durable captures from 32 clients, against the smaller of an echo and of a bare group commit."""
    seconds = 0.7 if options.quick else 2.0
    rates: dict[str, list[float]] = {"echo": [], "lmdb": [], "memd": []}
    with temporary_daemon(NO_DISTILLING) as client:
        numbers, run = count(1), client.places.run
        with baseline("answer", run / "echo.sock") as echo, baseline("lmdb", run / "lmdb.sock") as bare:
            for _ in range(TURNS):
                rates["echo"].append(capture_rate(echo, seconds, numbers))
                rates["lmdb"].append(capture_rate(bare, seconds, numbers))
                rates["memd"].append(capture_rate(socket_path(client.places), seconds, numbers))
    echoed, committed, captured = (median(rates[kind]) for kind in ("echo", "lmdb", "memd"))
    figures = (
        Figure("captures acknowledged", captured, "/s", min(echoed, committed), TURNS, at_least(0.6, times=True)),
        Figure("  bare ROUTER echo", echoed, "/s", samples=TURNS),
        Figure("  bare LMDB group commit", committed, "/s", samples=TURNS),
    )
    return PartResult(figures, shows_not="the later cost of distilling the captures")


def capture_rate(path: Path, seconds: float, numbers: Iterator[int]) -> float:
    """Answers a second to 32 sockets, each with one message in flight. Raises Unavailable after five silent seconds."""
    import zmq

    def body(client: int) -> bytes:
        number = next(numbers)
        text = f"Step {number}: I keep the planting date as plain text, because a date has no zone; tests follow."
        said = Said(turn=f"t{number}", at="2026-01-01T09:00:00+01:00", role="assistant", text=text)
        origin = Origin(host="bench", session=f"client{client}", live=False)
        return wire.encode_request(request.Capture(rid=number, origin=origin, events=(said,)))

    bodies = {n: [body(n) for _ in range(int(seconds * 1000))] for n in range(CLIENTS)}
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
                answered += b"accepted" in answer or len(answer) == len(ANSWER)
                if waiting := bodies[sockets[socket]]:
                    socket.send(waiting.pop())
            now = time.perf_counter()
            if not any(bodies.values()):
                break
        for socket in sockets:
            socket.close()
    return answered / (now - begin)


# --- bytes -----------------------------------------------------------------------------------------------------------
def journal_growth(options: BenchOptions) -> PartResult:
    """How much the journal grows when nothing is captured: 500 recalls and profiles."""
    with temporary_daemon() as client:
        for n in range(50):
            client.remember(f"The lamp{n} stands in room{n}.")
        settle(client)
        before = client.status().size_bytes["journal"]
        for n in range(RECALLS):
            client.recall(f"where is lamp{n % 60}")
            client.profile()
        grown = client.status().size_bytes["journal"] - before
    return PartResult((Figure("journal at 500 recalls", grown / MB, "MB", samples=RECALLS, target=at_most(1)),))


def on_disk(options: BenchOptions) -> PartResult:
    """Bytes on disk for each byte of accepted captures: as captured, and what distilling adds to them."""
    size_bytes = 10 * MB if options.quick else 100 * MB
    with temporary_daemon(NO_DISTILLING) as client:
        empty = _data_bytes(client)
        accepted = _capture(client, size_bytes, turns())
        raw = (_settled_bytes(client) - empty) / accepted
    with temporary_daemon() as client:
        source = turns()
        # a small store is mostly pages that are not full yet
        first_bytes, first_records, _ = _distilled(client, source, size_bytes // 100)
        all_bytes, all_records, captured = _distilled(client, source, size_bytes // 25)
    records = max(1, all_records - first_records)
    record_bytes, captured_kb = max(0.0, (all_bytes - first_bytes) / records), captured / records / 1000
    derived = record_bytes / RECORD_EVERY
    figures = (
        Figure("disk for captures", raw + derived, "×", samples=accepted // 1000, target=at_most(2.5)),
        Figure(f"  as captured, {size_bytes // MB} MB", raw, "×"),
        Figure(f"  distilled, a record every {RECORD_EVERY / 1000:.1f} kB", derived, "×"),
        Figure(f"  a record's bytes, of {captured_kb:.1f} kB said", record_bytes, "B", samples=records),
    )
    return PartResult(figures, shows_not="a session that gives more records a byte than the five real ones did")


def _distilled(client: Client, source: Iterator[AnyEvent], size_bytes: int) -> tuple[int, int, int]:
    """Capture so many bytes more and distil them: derived bytes and records in all, bytes captured now."""
    captured = _capture(client, size_bytes, source)
    settle(client)
    return _settled_bytes(client, RAW), sum(client.status().records.values()), captured


def _capture(client: Client, size_bytes: int, source: Iterator[AnyEvent]) -> int:
    """Capture events in sessions of 500 until so many bytes are accepted, and return how many were."""
    accepted = session = 0
    while accepted < size_bytes:
        session += 1
        origin = Origin(host="bench", session=f"s{session}", live=False)
        for batch in batches(tuple(islice(source, 500)), BATCH_EVENTS, BATCH_BYTES):
            client.capture(origin, batch)
            accepted += sum(len(msgspec.msgpack.encode(event)) for event in batch)
            if accepted >= size_bytes:
                break
    return accepted


def _settled_bytes(client: Client, but: frozenset[str] = frozenset()) -> int:
    """Bytes of the data once they no longer change: the indexes commit every second, and lag behind fast captures."""
    before, now = -1, _data_bytes(client, but)
    while before != now:
        time.sleep(2.5)
        before, now = now, _data_bytes(client, but)
    return now


def _data_bytes(client: Client, but: frozenset[str] = frozenset()) -> int:
    outside = {"backups", "ballast", "logs", "spool", "replaced", *but}
    return sum(part.size_bytes for part in client.disk_usage().parts if part.name not in outside)


# --- full size, measured by the daemon's own offline commands --------------------------------------------------------
def replay(options: BenchOptions) -> PartResult:
    """A journal of 100,000 records read back, applied to each projection, and a daemon that opens it."""
    records = 10_000 if options.quick else 100_000
    with empty_home(NO_DISTILLING) as (home, environment):
        options.progress(f"filling a home with {records:,} records")
        offline(environment, "fill-home", str(records))
        options.progress("replaying it")
        times = _numbers(offline(environment, "replay"))

        def opening() -> float:
            """Seconds from the start of a process to its first answer, after a clean stop."""
            begin = time.perf_counter()
            with running(home, environment):
                return time.perf_counter() - begin

        opened = median(opening() for _ in range(ROUNDS))
    operations = int(times["operations"])
    rates = (
        Figure(f"replay: {name}", count / max(seconds, 1e-9), "/s", samples=count, target=target)
        for name, seconds, count, target in (
            ("read, decode, chain", times["chain_s"], operations, at_least(250_000)),
            ("tables", times["tables_s"], operations, at_least(30_000)),
            ("keywords", times["keywords_s"], operations, None),
            ("vectors", times["vectors_s"], int(times["records"]), None),
        )
    )
    opening_figure = Figure(f"open to serving, {records:,} records", opened, "s", samples=ROUNDS, target=at_most(1))
    return PartResult((*rates, opening_figure), shows_not="a cold page cache: the files were just written")


def _numbers(output: bytes) -> dict[str, float]:
    """The output of an offline command: counts, seconds of CPU (`_s`), milliseconds (`_ms`)."""
    return msgspec.json.decode(output, type=dict[str, float])


def ten_years(options: BenchOptions) -> PartResult:
    """Ten years of sleeps and counts over 100,000 records, replayed into every projection."""
    divisor = 10 if options.quick else 1
    records, sleeps, counts = 100_000 // divisor, 3_650 // divisor, 1_000_000 // divisor
    with empty_home() as (_, environment):
        options.progress(f"writing ten years of operations on {records:,} records")
        offline(environment, "fill-years", str(records), str(sleeps), str(counts))
        options.progress("replaying them")
        times = _numbers(offline(environment, "replay"))
    parts = {
        "read, decode, chain": times["chain_s"],
        "tables, counters among them": times["tables_s"],
        "keywords": times["keywords_s"],
        "vectors": times["vectors_s"],
    }
    samples, name = int(times["operations"]), f"{sleeps:,} sleeps, {counts:,} counts replayed"
    total = Figure(name, sum(parts.values()), "s", samples=samples, target=at_most(60))
    return PartResult(
        (total, *(Figure(name, seconds, "s", samples=samples) for name, seconds in parts.items())),
        shows_not="a cold page cache; vectors are read, not computed",
    )


def sleep(options: BenchOptions) -> PartResult:
    """Sleep over 100,000 records: its commit, the search for weak records, archiving them in slices."""
    records = 10_000 if options.quick else 100_000
    with empty_home() as (_, environment):
        options.progress(f"filling a home with {records:,} records")
        offline(environment, "fill-home", str(records))
        options.progress("sleeping through sixty days")
        times = _numbers(offline(environment, "measure-sleep"))
    slices = int(times["slices"])
    figures = (
        Figure("sleep committed", times["commit_ms"], "ms", samples=180, target=at_most(5)),
        Figure("  99 of 100 within", times["commit_p99_ms"], "ms", samples=180),
        Figure("sweep: the look at every record", times["look_ms"], "ms", target=at_most(300)),
        Figure("  a slice archived", times["slice_ms"], "ms", samples=slices, target=at_most(300)),
        Figure("  the slowest slice", times["slowest_slice_ms"], "ms", samples=slices),
        Figure("records archived, at most 5 %", times["archived"], samples=int(times["records"])),
    )
    shows_not = "waiting for the disk, and captures that arrive meanwhile: they are committed between two slices"
    return PartResult(figures, shows_not=shows_not)


class ForgettingComparison(msgspec.Struct, frozen=True):
    """The output of `measure-forgetting`, with forgetting on and off: by subject the share of its answers that are
    still true, by seldom used fact whether it is found."""

    precision_on: list[float]
    precision_off: list[float]
    recall_on: list[float]
    recall_off: list[float]
    live_on: int
    live_off: int


def forgetting(options: BenchOptions) -> PartResult:
    """Half a year of facts that change without a word: are more answers true with forgetting on than off?"""
    with empty_home() as (_, environment):
        options.progress("simulating half a year twice")
        outcome = msgspec.json.decode(offline(environment, "measure-forgetting"), type=ForgettingComparison)
    gains = [on - off for on, off in zip(outcome.precision_on, outcome.precision_off, strict=True)]
    recall_gain = fmean(outcome.recall_on) - fmean(outcome.recall_off)
    half, gain = 1.96 * stdev(gains) / math.sqrt(len(gains)), fmean(gains)
    rare = len(outcome.recall_on)
    figures = (
        Figure("precision gained", gain, "", 0.0, len(gains), at_least(0.05), gain - half, gain + half),
        mean_figure("  with forgetting", outcome.precision_on),
        mean_figure("  without", outcome.precision_off),
        Figure("seldom used facts found, more or less", recall_gain, samples=rare, target=at_least(-0.02)),
        Figure("live records with forgetting", outcome.live_on, floor=outcome.live_off),
    )
    shows_not = "how often stale facts are never corrected in real work: here none of them is ever contradicted"
    return PartResult(figures, shows_not=shows_not)
