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
from memd.protocol.record import Record, Span
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


def episode(number: int, text: str, document: str) -> Record:
    made = record(number, content=text, description=text, tags=("lesson",))
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
