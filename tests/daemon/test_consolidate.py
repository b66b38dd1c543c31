"""Repeated episodes get one successor, and are archived once it can be found (T11)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from memd.daemon.forgetting_rules import Rules
from memd.daemon.services.lifecycle.consolidate import Consolidation
from memd.models.trunk import Trunk
from memd.protocol.fading import Restored
from memd.protocol.operation import Added
from memd.protocol.record import Evidence, Record, Span
from tests.daemon.living import AT, WHY, Running, record

EPISODES = (
    "On Monday, the staging deploy ran out of disk.",
    "The staging deploy ran out of disk on Thursday.",
    "The staging deploy ran out of disk last night.",
)
OTHER = "The payments repository belongs to Halvard."


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Stores with a write thread."""
    found = Running(tmp_path / "data")
    yield found
    found.close()


def embed(running: Running, texts: Sequence[str]) -> None:
    rows = np.asarray(Trunk().embed(list(texts)), np.float32)
    running.stores.vector_store.put((text, row.tobytes()) for text, row in zip(texts, rows, strict=True))


def episode(number: int, text: str, document: str, type_: str = "lesson") -> Record:
    made = record(number, content=text, description=text, tags=(type_,))
    spans = (Span(document, f"t{number}", 0, len(text)),)
    return replace(made, provenance=replace(made.provenance, source=document, spans=spans, quote=text, said_at=AT))


def test_three_episodes_of_two_sessions_become_one_clause_of_theirs_T11(running: Running) -> None:
    stores = running.stores
    embed(running, [*EPISODES, OTHER])
    made = [episode(n, text, f"h:s{n % 2}") for n, text in enumerate(EPISODES)] + [episode(9, OTHER, "h:s0")]
    stores.commit([Added(record=each, decision=WHY) for each in made])
    consolidation = Consolidation(stores, running.writer, Rules)
    (id,) = consolidation.run("personal")
    successor = stores.records.get(id)
    assert successor is not None and successor.content == "The staging deploy ran out of disk."
    assert set(successor.supersedes) == {"id0", "id1", "id2"} and successor.valid_from == ""
    assert len(successor.provenance.evidence) == 2 and successor.provenance.quote in EPISODES
    assert {running.status(n) for n in range(3)} == {"active"}, "it can't be found by its sense yet"
    assert consolidation.run("personal") == (), "never twice"
    assert {running.status(n) for n in range(3)} == {"active"}
    rows = np.asarray(Trunk().embed([successor.description]), np.float32)
    stores.vectors.fill([(id, successor.description, rows[0].tobytes())])
    assert consolidation.run("personal") == ()
    assert {running.status(n) for n in range(3)} == {"archived"} and running.status(9) == "active"
    first = stores.records.get("id0")
    assert first is not None and first.superseded_by == id
    stores.commit([Restored(ids=("id0",))])
    assert consolidation.run("personal") == () and running.status(0) == "active", "whoever restored it wants it"


def test_episodes_of_one_session_and_too_few_of_them_stay_T11(running: Running) -> None:
    stores = running.stores
    embed(running, EPISODES)
    stores.commit([Added(record=episode(n, text, "h:s"), decision=WHY) for n, text in enumerate(EPISODES)])
    consolidation = Consolidation(stores, running.writer, Rules)
    assert consolidation.run("personal") == ()
    stores.commit([Added(record=replace(episode(0, EPISODES[0], "h:t"), pool="project/a"), decision=WHY)])
    assert consolidation.run("project/a") == ()


def successors(running: Running, *records: Record) -> list[str]:
    """The contents of the successors of these records."""
    embed(running, [each.description for each in records])
    running.stores.commit([Added(record=each, decision=WHY) for each in records])
    ids = Consolidation(running.stores, running.writer, Rules).run("personal")
    return [made.content for made in running.stores.records.many(ids).values()]


def test_events_and_lessons_join_and_the_believed_clause_is_taken_T11(running: Running) -> None:
    first, second, third = (
        episode(n, text, f"h:s{n}", type_)
        for n, (text, type_) in enumerate(zip(EPISODES, ("event", "lesson", "event"), strict=True))
    )
    noted = [replace(each, status="quarantined") for each in (first, second)]
    assert successors(running, *noted, third) == ["The staging deploy ran out of disk."]
    (made,) = [each for each in running.stores.records.recent("personal", None, 9) if each.content not in EPISODES]
    assert made.status == "active" and made.provenance.quote == EPISODES[2]


def test_one_record_told_on_several_days_becomes_general_T11(running: Running) -> None:
    text = "Yesterday the staging deploy ran out of disk."
    made = episode(0, text, "h:s0", "event")
    days = [("h:s1", "2026-03-08T09:00:00+01:00"), ("h:s2", "2026-03-15T09:00:00+01:00")]
    again = tuple(
        Evidence(kind="restated", span=Span(document, "t", 0, len(text)), trust=made.provenance.trust, at=at)
        for document, at in days
    )
    told = replace(made, provenance=replace(made.provenance, evidence=again))
    assert successors(running, told) == ["The staging deploy ran out of disk."]


def test_no_successor_keeps_a_date_T11(running: Running) -> None:
    texts = [f"The deploy meeting was on {day}." for day in ("Monday", "Tuesday", "Thursday")]
    assert successors(running, *(episode(n, text, f"h:s{n}", "event") for n, text in enumerate(texts))) == []
