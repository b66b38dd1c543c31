"""Which records an answer used: by a rare tag, by a sentence that is alike, never by being recalled alone (T3)."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memd.daemon.forgetting_rules import Rules
from memd.daemon.services.lifecycle.counting import UseCounter
from memd.daemon.services.lifecycle.usage import WINDOW_S, UseDetector
from memd.models.query import QueryTable
from memd.models.trunk import Trunk
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.operation import Added
from tests.daemon.living import AT, WHY, Running, record

STATEMENTS = (
    "Jobs reach the ingest worker through RabbitMQ.",
    "Nothing lands on trunk without its commits being squashed into one.",
    "The payments repository belongs to Halvard.",
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Three records with their vectors."""
    found = Running(tmp_path / "data")
    rows = np.asarray(Trunk().embed(list(STATEMENTS)), np.float32)
    found.stores.vector_store.put((text, row.tobytes()) for text, row in zip(STATEMENTS, rows, strict=True))
    tags = (("fact", "rabbitmq"), ("convention", "trunk"), ("fact", "halvard"))
    for number, text in enumerate(STATEMENTS):
        made = record(number, content=text, description=text, tags=tags[number])
        found.stores.commit([Added(record=made, decision=WHY)])
    yield found
    found.close()


def usage_of(running: Running) -> UseDetector:
    counting = UseCounter(running.stores, running.writer, Rules)
    encode = QueryTable().encode
    return UseDetector(running.stores, counting, Rules, lambda: encode, running.world.monotonic, lambda _: ["personal"])


def answer(running: Running, turn: str, text: str, **more: Any) -> None:
    event = Said(turn=turn, at=AT, role=more.pop("role", "assistant"), text=text)
    running.stores.take([Captured(document="claude-code:s", event=event, **more)])


IDS = ["id0", "id1", "id2"]


def test_a_rare_tag_in_the_answer_shows_a_use_unless_it_was_asked_for_T3(running: Running) -> None:
    usage = usage_of(running)
    assert usage.used_in("I will ask Halvard about it first.", "who can I ask", set(IDS)) == {"id2"}
    assert usage.used_in("Halvard? I don't know.", "who is halvard", set(IDS)) == set()


def test_a_sentence_that_is_alike_shows_a_use_T3(running: Running) -> None:
    usage = usage_of(running)
    said = "Done. All commits are squashed into one before anything lands on trunk. The weather is nice today."
    assert usage.used_in(said, "how do I merge to trunk", set(IDS)) == {"id1"}
    assert usage.used_in("I have renamed the function and run the tests again.", "rename it", set(IDS)) == set()


def test_a_common_tag_shows_nothing_T3(running: Running) -> None:
    common = [record(10 + n, tags=("fact", "halvard"), description=f"halvard {n}") for n in range(5)]
    running.stores.commit([Added(record=each, decision=WHY) for each in common])
    assert usage_of(running).used_in("I will ask Halvard about it.", "who can I ask", {"id2"}) == set()


def test_an_answer_after_the_recall_is_counted_once_T3(running: Running) -> None:
    usage = usage_of(running)
    answer(running, "1", "Ask Halvard.")
    usage.recalled("who can I ask", ["personal"], IDS)
    answer(running, "2", "Shall I ask Halvard?", role="user")
    answer(running, "3", "I asked Halvard.", live=False)
    assert usage.heard() == 0, "before the recall, of the user, of an import"
    answer(running, "4", "I asked Halvard, the payments repository is his.")
    assert usage.heard() == 1
    running.writer.run(lambda: None).result()
    assert running.signal(2).access_count == 1 and running.signal(0).access_count == 0
    answer(running, "5", "Halvard agreed.")
    assert usage.heard() == 0, "once a recall"


def test_a_recall_that_nobody_answers_is_let_go_T3(running: Running) -> None:
    usage = usage_of(running)
    usage.recalled("who can I ask", ["personal"], IDS)
    running.now += int((WINDOW_S + 1) * 1e6)
    answer(running, "1", "I asked Halvard.")
    assert usage.heard() == 0 and not usage.is_waiting


def test_ranking_learns_from_a_use_that_nobody_reports_Q6_T3(daemon: Any) -> None:
    here = Origin(host="claude-code", session="s")
    with daemon.client() as client:
        ids = [
            client.remember(words).record.id
            for words in ("The payments repository belongs to Halvard.", "The payments service runs in Zurich.")
        ]
        daemon.settle()
        asked = client.recall("who owns the payments repository", perspective="risk")
        assert ids[0] in {hit.record.id for hit in asked.hits}
        words = "I asked about it: the payments repository belongs to Halvard."
        client.capture(here, [Said(turn="1", at=AT, role="assistant", text=words)])
        end = time.monotonic() + 90
        while not client.why(ids[0]).record.signal.access_count and time.monotonic() < end:
            time.sleep(0.1)
        signal = client.why(ids[0]).record.signal
        assert signal.access_count == 1 and "risk" in signal.strength_by
        told = client.feedback(asked.recall, used=ids[:1])
        assert told.samples and told.learnt_from > told.samples
