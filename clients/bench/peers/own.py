"""memd itself among its peers: over its socket, as shipped, on the same texts.

Comes in: texts and questions. Goes out: what a driver gives of a peer. Invariant: reading begins when everything is
distilled, so that what is asked is what memd made of the texts.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ....protocol.errors import MemdError
from ....protocol.event import Origin
from ....protocol.request import Remember
from ...python import launch
from ...python.client import Client, now
from ..home import PATIENCE_MS, START_S, empty_home, running, settle
from ..processes import memory_bytes

TOP = 10
WRITERS, EACH, KILL_AFTER = 8, 25, 40


def _wish(number: int, text: str, session: str = "peers") -> Remember:
    return Remember(text=text, turn=f"t{number}", at=now(), origin=Origin(host="bench", session=session))


def measured_by_memd(texts: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    """Milliseconds of each remember and recall, the texts found, and the memory of daemon and worker at most."""
    writes: list[float] = []
    reads: list[float] = []
    found: list[list[str]] = []
    with empty_home() as (where, environment), running(where, environment) as client:
        for number, text in enumerate(texts):
            begin = time.perf_counter()
            client.remember(_wish(number, text))
            writes.append((time.perf_counter() - begin) * 1000)
        settle(client, 1_800)
        memory = memory_bytes(client.status().pid)
        for question in questions:
            begin = time.perf_counter()
            told = client.recall(question, limit=TOP, budget_tokens=100_000)
            reads.append((time.perf_counter() - begin) * 1000)
            heard = [(hit.score, hit.record.content) for hit in told.hits]
            heard += [(turn.score, turn.quote) for turn in told.turns]
            ranked = sorted(heard, key=lambda each: -each[0])
            found.append(list(dict.fromkeys(text for _, text in ranked))[:TOP])
    return {"writes_ms": writes, "reads_ms": reads, "found": found, "memory_bytes": memory}


def acknowledged_by_memd(texts: Sequence[str]) -> tuple[int, int, float, int]:
    """As of a peer: lost by SIGKILL, acknowledged before it, writes a second of eight clients, and how many failed."""
    with empty_home() as (where, environment):
        process, begin = launch.spawn(where, environment)
        launch.wait(process, where, begin, START_S)
        with Client(where, PATIENCE_MS) as client:
            ids = [client.remember(_wish(number, text)).record.id for number, text in enumerate(texts[:KILL_AFTER])]
        process.send_signal(signal.SIGKILL)
        process.wait()
        with running(where, environment) as client:
            lost = sum(not _is_held(client, id) for id in ids)
    with empty_home() as (where, environment), running(where, environment):
        failed: list[int] = []

        def write(writer: int) -> None:
            try:
                with Client(where, PATIENCE_MS) as client:
                    for number, text in enumerate(texts[:EACH]):
                        client.remember(_wish(number, text, f"writer{writer}"))
            except MemdError:
                failed.append(writer)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rate = (WRITERS - len(failed)) * EACH / (time.perf_counter() - started)
    return lost, len(ids), rate, len(failed)


def _is_held(client: Client, id: str) -> bool:
    with suppress(MemdError):
        return client.get(id).id == id
    return False
