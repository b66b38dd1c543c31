"""Latency of a recall in a pool that grows, alternating with a bare echo and with the bare libraries over the same
texts and as many vectors; a fifth of the records is active."""

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
from ..latency import echo_call, exchange
from ..measurement import BenchOptions, Figure, PartResult, at_least, at_most, elapsed_ms, percentile, percentile_figure
from ..processes import memory_bytes
from ..session_data import records
from ..temporary_daemon import empty_home, measure, running, temporary_daemon

SIZES, QUICK = (1_000, 10_000, 100_000), (1_000, 5_000)
ACTIVE = 20
ROUNDS, WARM = 400, 30
CANDIDATES, DIMENSION = 100, 384
CLIENTS, SECONDS = 8, 4.0
START_S = 120.0
MARGIN_MS = 0.5
MB = 1_000_000


def speed(options: BenchOptions) -> PartResult:
    """A recall in one pool of 1,000, 10,000 and 100,000 records, a fifth of them active."""
    sizes = QUICK if options.quick else SIZES
    figures, medians = list[Figure](), list[float]()
    with temporary_daemon() as client:
        figures.append(_memory("memory, idle, empty", client, most=110))
    for size in sizes:
        options.progress(f"read/speed: {size:,} records")
        with empty_home() as (home, environment):
            measure(environment, "fill-home", str(size), str(ACTIVE))
            with running(home, environment, START_S) as client:
                texts = [item.description for item in records(client, pools=("personal",), statuses=("active",))]
                questions = _questions(texts)
                client.recall(questions[0])
                figures.append(_memory(f"memory, {size:,} records", client, most=350 if size == 100_000 else 0))
                ours, bare, echo = _alternated(client, texts, questions)
                medians.append(percentile(ours, 50))
                figures += _figures(size, ours, bare, echo)
                if size == sizes[-1]:
                    figures += _throughput(socket_path(home), questions)
    if len(medians) == len(SIZES):
        growth = medians[-1] / medians[-2]
        figures.append(Figure("growth of p50, 10,000 to 100,000", growth, "×", target=at_most(3.0)))
    return PartResult(tuple(figures), shows_not="a memory that is written to meanwhile")


def _memory(name: str, client: Client, most: int) -> Figure:
    time.sleep(1.0)
    return Figure(name, memory_bytes(client.status().pid) / MB, "MB", target=at_most(most) if most else None)


def _questions(texts: Sequence[str]) -> list[str]:
    chance = random.Random(3)
    return [" ".join(chance.sample(chance.choice(texts).split(), 5)) for _ in range(ROUNDS + WARM)]


def _alternated(
    client: Client, texts: Sequence[str], questions: Sequence[str]
) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of memd, of the bare libraries together and of the echo, question by question."""
    size = len(wire.encode_data(client.recall(questions[0]), 0, "msgpack"))
    words, vectors = bare_words(texts), bare_vectors(len(texts))
    ours, bare, echoed = list[float](), list[float](), list[float]()
    with echo_call(client.places.run / "echo.sock", size) as echo:
        for question in questions:
            ours.append(elapsed_ms(client.recall, question))
            bare.append(elapsed_ms(words, question) + elapsed_ms(vectors, question))
            echoed.append(elapsed_ms(echo))
    return ours[WARM:], bare[WARM:], echoed[WARM:]


def bare_words(texts: Sequence[str]) -> Callable[[str], object]:
    """A search with tantivy alone over these texts, for the numbers of the best."""
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
    """A search with numpy alone over so many vectors, exact as memd's is while a pool is small."""
    import numpy as np

    rows = np.random.default_rng(7).standard_normal((count, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return lambda question: np.argpartition(rows @ rows[0], -min(CANDIDATES, count))


def _figures(size: int, ours: list[float], bare: list[float], echo: list[float]) -> list[Figure]:
    allowed = 2 * percentile(bare, 50) + MARGIN_MS
    large = size == 100_000
    median = at_most(round(min(allowed, 3.0) if large else allowed, 2))
    return [
        percentile_figure(f"p50, {size:,} records", ours, 50, bare, median),
        percentile_figure(f"p99, {size:,} records", ours, 99, bare, at_most(10.0) if large else None),
        percentile_figure("  bare echo p50", echo, 50),
    ]


def _throughput(path: Path, questions: Sequence[str]) -> list[Figure]:
    """Recalls a second by one client, and by eight in processes of their own; a tenth less than one's is noise."""

    def rate(clients: int) -> float:
        command = [sys.executable, "-P", "-m", __spec__.name if __spec__ else __name__, str(path), *questions[:50]]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(clients)]
        return sum(float(process.communicate()[0]) for process in processes)

    alone, together = rate(1), rate(CLIENTS)
    return [
        Figure("recalls/s, one client", alone, "/s"),
        Figure("recalls/s, eight clients", together, "/s", alone, target=at_least(round(0.9 * alone, 1))),
    ]


def _recall_rate(path: str, questions: Sequence[str]) -> float:
    connection, count = Connection(Path(path), Deadline(60_000)), 0
    end = (begin := time.monotonic()) + SECONDS
    while time.monotonic() < end:
        wish = Recall(query=questions[count % len(questions)], rid=count)
        wire.decode_reply(exchange(connection, wire.encode_request(wish)), Recalled)
        count += 1
    return count / (time.monotonic() - begin)


if __name__ == "__main__":
    print(_recall_rate(sys.argv[1], sys.argv[2:]))
