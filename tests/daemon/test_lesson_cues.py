"""Lessons of a session teach by the keywords of its agent's perspectives, and lead to the records near them (O4)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memd.clients.python.client import Client
from memd.protocol.event import Origin, Said
from memd.protocol.record import RELATED, Record
from memd.protocol.reflection import ReflectedLearning
from tests.daemon.test_reflection import settle, wait

NOW = datetime.now(UTC).isoformat()
DOCUMENT = "claude-code:one"
CONVENTION = "From now on we always oil the pulleys before a long run."
FINDING = "The squeak of the press comes from the worn idler pulley, as the wear marks show."
NEAR = "The idler pulley of the press was replaced in May, it came from Hartmann."
OTHER = "From now on we always pick the plums before noon."


@pytest.fixture
def client(daemon: Any, tmp_path: Path) -> Iterator[Client]:
    with daemon.client() as connected:
        connected.open_agent("claude-code", role="mechanic", perspectives=["maintenance: pulley, drive belt", "cost"])
        yield connected


def say(client: Client, tmp_path: Path, *texts: str, agent: str = "claude-code") -> None:
    origin = Origin(host="claude-code", session="one", cwd=str(tmp_path), agent=agent)
    said = [Said(turn=str(number), at=NOW, role="user", text=text) for number, text in enumerate(texts)]
    client.capture(origin, said)
    settle(client)


def record_of(client: Client, words: str) -> Record:
    (record,) = (record for record in client.list(limit=100).records if words in record.content)
    return record


def test_a_convention_with_a_keyword_teaches_under_that_perspective_O4(client: Client, tmp_path: Path) -> None:
    say(client, tmp_path, CONVENTION, OTHER)
    taught = record_of(client, "oil the pulleys")
    assert taught.type == "convention" and taught.learnings == {"maintenance": taught.description}
    assert record_of(client, "plums").learnings == {}


def test_a_session_of_an_agent_without_perspectives_teaches_nothing_O4(client: Client, tmp_path: Path) -> None:
    say(client, tmp_path, CONVENTION, agent="other")
    assert record_of(client, "oil the pulleys").learnings == {}


def test_what_the_agent_says_it_learnt_takes_the_place_of_a_cue_O4(client: Client, tmp_path: Path) -> None:
    say(client, tmp_path, CONVENTION)
    learnt = ReflectedLearning(perspective="maintenance", text="Oil first, then run.", quotes=(CONVENTION,))
    assert client.reflect(DOCUMENT, learnings=[learnt]).learnings == 1
    settle(client)
    assert record_of(client, "oil the pulleys").learnings == {"maintenance": "Oil first, then run."}


def test_a_learning_relates_to_the_records_near_it_and_a_deep_recall_follows_it_O4(
    client: Client, tmp_path: Path
) -> None:
    client.remember(NEAR)
    say(client, tmp_path, "The press squeaks.", FINDING)
    learnt = ReflectedLearning(perspective="maintenance", text="Look at the wear marks first.", quotes=(FINDING,))
    assert client.reflect(DOCUMENT, learnings=[learnt]).learnings == 1
    settle(client)
    record, near = record_of(client, "wear marks show"), record_of(client, "Hartmann")
    assert record.relates_to == (near.id,) and len(record.relates_to) <= RELATED
    answer = client.recall("Why do the wear marks show?", cwd=str(tmp_path), deep=True, limit=1)
    assert [hit.record.id for hit in answer.hits] == [record.id]
    assert [(link.record.id, link.via) for link in answer.linked] == [(near.id, record.id[:8])]
    wait(client, client.forget([near.id]))
    assert not client.recall("Why do the wear marks show?", cwd=str(tmp_path), deep=True, limit=1).linked
