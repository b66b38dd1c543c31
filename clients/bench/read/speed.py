"""Latency of a recall over the real socket, beside a bare echo and the bare libraries, in a pool that grows.

Comes in: sizes. Goes out: figures, each beside its floor. Invariants: one pool holds everything, a fifth of it active;
memd, tantivy, hnswlib and the echo take turns, question by question, so that a busy moment hits all; the libraries are
called as they are, over the same active texts and as many vectors, for as many candidates.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ....protocol import wire
from ....protocol.recall import Recall, Recalled
from ...python.client import Client, socket_path
from ...python.zmtp import Connection, Deadline
from ..echo import echoing
from ..figure import Figure, at_most, percentile
from ..home import empty_home, running
from ..offline import offline
from ..part import Part, Setting
from ..processes import memory_bytes

SIZES, QUICK = (1_000, 10_000, 100_000), (1_000, 5_000)
ACTIVE = 20
ROUNDS, WARM = 400, 30
CANDIDATES, DIMENSION = 100, 384
CLIENTS, SECONDS = 8, 4.0
START_S = 120.0
MARGIN_MS = 0.5
MB = 1_000_000


def speed(setting: Setting) -> Part:
    """A recall in one pool of 1,000, 10,000 and 100,000 records, a fifth of them active."""
    sizes = QUICK if setting.quick else SIZES
    figures: list[Figure] = []
    medians: list[float] = []
    with empty_home() as (where, environment), running(where, environment) as client:
        figures.append(_memory("memory, idle, empty", client, at=110))
    for size in sizes:
        setting.tell(f"read/speed: {size:,} records")
        with empty_home() as (where, environment):
            offline(environment, "fill-home", str(size), str(ACTIVE))
            with running(where, environment, START_S) as client:
                texts = _texts(client)
                questions = _questions(texts)
                client.recall(questions[0])
                figures.append(_memory(f"memory, {size:,} records", client, at=350 if size == 100_000 else 0))
                times = _in_turns(client, where.run / "echo.sock", texts, questions)
                medians.append(percentile(times[0], 50))
                figures += _figures(size, times)
                if size == sizes[-1]:
                    figures += _crowd(socket_path(where), questions)
    if len(medians) == len(SIZES):
        growth = medians[-1] / medians[-2]
        figures.append(Figure(name="growth of p50, 10,000 to 100,000", value=growth, unit="×", target=at_most(3.0)))
    return Part(figures=tuple(figures), shows_not="a memory that is written to meanwhile")


def _memory(name: str, client: Client, at: int) -> Figure:
    time.sleep(1.0)
    used = memory_bytes(client.status().pid) / MB
    return Figure(name=name, value=used, unit="MB", target=at_most(at) if at else None)


def _texts(client: Client) -> list[str]:
    """The texts of the active records."""
    texts: list[str] = []
    after = ""
    while True:
        page = client.list(pools=("personal",), statuses=("active",), after=after, limit=500)
        texts += [record.description for record in page.records]
        if not (after := page.next):
            return texts


def _questions(texts: Sequence[str]) -> list[str]:
    chance = random.Random(3)
    return [" ".join(chance.sample(chance.choice(texts).split(), 5)) for _ in range(ROUNDS + WARM)]


def _in_turns(client: Client, echo: Path, texts: Sequence[str], questions: Sequence[str]) -> list[list[float]]:
    """Milliseconds of memd, of the bare libraries and of the echo, question by question."""
    size = len(wire.encode_data(client.recall(questions[0]), 0, "msgpack"))
    words, vectors = bare_words(texts), bare_vectors(len(texts))
    with echoing(echo) as path:
        bare = Connection(path, Deadline(60_000))

        def sent(_: str) -> None:
            deadline = Deadline(5_000)
            bare.send(bytes(size), deadline)
            bare.receive(deadline)

        calls: list[Callable[[str], object]] = [client.recall, words, vectors, sent]
        times: list[list[float]] = [[] for _ in calls]
        for number, question in enumerate(questions):
            for call, took in zip(calls, times, strict=True):
                begin = time.perf_counter()
                call(question)
                if number >= WARM:
                    took.append((time.perf_counter() - begin) * 1000)
        bare.close()
    return [times[0], [a + b for a, b in zip(times[1], times[2], strict=True)], times[3]]


def bare_words(texts: Sequence[str]) -> Callable[[str], object]:
    """tantivy alone over these texts: a question's best, with their numbers."""
    import tantivy

    folder = tempfile.TemporaryDirectory(prefix="memd-bench-bare-")
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("number", fast=True)
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    schema: Any = builder.build()
    index = tantivy.Index(schema, folder.name)
    writer = index.writer(15_000_000, 1)
    for number, text in enumerate(texts):
        document = tantivy.Document()
        document.add_unsigned("number", number)
        document.add_text("terms", text)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()

    def search(question: str, _folder: object = folder) -> object:
        query, searcher = tantivy.Query, index.searcher()
        terms = [(tantivy.Occur.Should, query.term_query(schema, "terms", term)) for term in question.split()]
        hits = searcher.search(query.boolean_query(terms), CANDIDATES, count=False).hits
        return searcher.fast_field_values("number", [address for _, address in hits])

    return search


def bare_vectors(count: int) -> Callable[[str], object]:
    """hnswlib alone over so many vectors, exact as it is while a pool is small: the nearest to one."""
    import hnswlib
    import numpy as np

    rows = np.random.default_rng(7).standard_normal((count, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = hnswlib.BFIndex("ip", DIMENSION)
    index.init_index(count)
    index.set_num_threads(1)
    index.add_items(rows, np.arange(count))
    return lambda question: index.knn_query(rows[:1], k=min(CANDIDATES, count))


def _figures(size: int, times: Sequence[list[float]]) -> list[Figure]:
    ours, bare, echo = times
    allowed = 2 * percentile(bare, 50) + MARGIN_MS
    large = size == 100_000
    return [
        Figure(
            name=f"p50, {size:,} records",
            value=percentile(ours, 50),
            unit="ms",
            floor=percentile(bare, 50),
            samples=len(ours),
            target=at_most(round(min(allowed, 3.0) if large else allowed, 2)),
        ),
        Figure(
            name=f"p99, {size:,} records",
            value=percentile(ours, 99),
            unit="ms",
            floor=percentile(bare, 99),
            samples=len(ours),
            target=at_most(10.0) if large else None,
        ),
        Figure(name="  bare echo p50", value=percentile(echo, 50), unit="ms", samples=len(echo)),
    ]


def _crowd(path: Path, questions: Sequence[str]) -> list[Figure]:
    """Recalls a second by one client, and by eight in processes of their own."""
    one = sum(_asking(path, questions, 1))
    eight = sum(_asking(path, questions, CLIENTS))
    return [
        Figure(name="recalls/s, one client", value=one, unit="/s"),
        Figure(name="recalls/s, eight clients", value=eight, unit="/s", floor=one, target=at_least_as(one)),
    ]


def at_least_as(rate: float):
    """Eight clients together keep the rate of one; a tenth less is noise."""
    from ..figure import at_least

    return at_least(round(0.9 * rate, 1))


def _asking(path: Path, questions: Sequence[str], clients: int) -> list[float]:
    command = [sys.executable, "-P", "-m", __spec__.name if __spec__ else __name__, str(path), *questions[:50]]
    asking = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(clients)]
    return [float(process.communicate()[0]) for process in asking]


def _ask_on(path: str, questions: Sequence[str]) -> float:
    """Recalls a second of one connection that asks without a pause."""
    connection, count = Connection(Path(path), Deadline(60_000)), 0
    end = (begin := time.monotonic()) + SECONDS
    while time.monotonic() < end:
        deadline = Deadline(10_000)
        connection.send(wire.encode_request(Recall(query=questions[count % len(questions)], rid=count)), deadline)
        wire.decode_reply(connection.receive(deadline), Recalled)
        count += 1
    return count / (time.monotonic() - begin)


if __name__ == "__main__":
    print(_ask_on(sys.argv[1], sys.argv[2:]))
