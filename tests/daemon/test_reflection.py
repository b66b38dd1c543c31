"""Statements of another reader than memd's own model: nothing but the words of the session is taken (W4)."""

import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memd.clients.python.client import Client
from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.event import AnyEvent, Origin, Returned, Said, ToolCalled
from memd.protocol.record import Record
from memd.protocol.reflection import Statement

NOW = datetime.now(UTC).isoformat()
DOCUMENT = "claude-code:one"
PLAN = "Shall I keep the apple ledger in SQLite rather than in the shared spreadsheet?"
TURNS: list[AnyEvent] = [
    Said(turn="1", at=NOW, role="user", text="The press squeaks again. Don’t oil the left bearing — it’s sealed."),
    Said(
        turn="2", at=NOW, role="assistant", text="The squeak comes from the worn idler pulley, as the wear marks show."
    ),
    Said(turn="3", at=NOW, role="assistant", text=PLAN),
    Said(turn="4", at=NOW, role="user", text="yes"),
    ToolCalled(turn="5", at=NOW, name="Bash", arguments="cat /etc/orchard/press.conf with torque limits", outcome="ok"),
    Returned(turn="6", at=NOW, call="5", text="The harvest quota is forty crates for every picker."),
]


def statement(type_: Any, *quotes: str, about: Any = "") -> Statement:
    return Statement(type=type_, quotes=quotes, about=about)


@pytest.fixture
def orchard(tmp_path: Path) -> str:
    folder = tmp_path / "orchard"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return str(folder)


@pytest.fixture
def client(daemon: Any, orchard: str) -> Iterator[Client]:
    with daemon.client() as connected:
        connected.capture(Origin(host="claude-code", session="one", cwd=orchard), TURNS)
        settle(connected)
        yield connected


def settle(client: Client) -> None:
    client.distil()
    deadline = time.monotonic() + 60
    while client.status().pending:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def by_reader(client: Client) -> list[Record]:
    records = client.list(document=DOCUMENT, limit=200).records
    return [record for record in records if record.provenance.distiller.startswith("agent:")]


def test_a_statement_is_kept_in_the_words_of_the_archive_and_names_its_reader_W4(client: Client) -> None:
    quote = "the squeak comes from the worn idler pulley, as the wear marks show"
    taken = client.reflect(DOCUMENT, statements=[statement("lesson", quote)])
    assert (taken.taken, taken.refused) == (1, ())
    settle(client)
    (record,) = by_reader(client)
    assert record.content == "The squeak comes from the worn idler pulley, as the wear marks show"
    assert (record.provenance.distiller, record.provenance.trust) == ("agent:claude-code", "assistant")
    assert record.status == "quarantined", "memd's own model does not believe an agent either"


def test_an_approved_proposal_rests_on_both_turns_W4(client: Client) -> None:
    client.reflect(DOCUMENT, statements=[statement("decision", PLAN, "yes")])
    settle(client)
    (record,) = [record for record in by_reader(client) if "ledger" in record.content]
    assert record.content == f"{PLAN} → yes"
    assert {span.turn for span in record.provenance.spans} == {"3", "4"}
    assert record.provenance.trust == "user"


def test_passages_stand_in_the_order_of_the_session_W4(client: Client) -> None:
    finding = "The squeak comes from the worn idler pulley, as the wear marks show"
    client.reflect(DOCUMENT, statements=[statement("lesson", finding, "The press squeaks again")])
    settle(client)
    (record,) = by_reader(client)
    assert record.content == f"The press squeaks again → {finding}"
    assert record.provenance.trust == "assistant", "the agent has the last word"


@pytest.mark.parametrize(
    ("quotes", "reason"),
    [
        (("The squeak comes from the worn idler pulleys, as the wear marks show.",), "not found"),
        (("We always ship on Fridays.",), "not found"),
        (("yes",), "too short"),
        (("cat /etc/orchard/press.conf with torque limits",), "not prose"),
        ((PLAN, "no"), "not found"),
        (("squeak comes from the worn idler pull",), "not found"),
    ],
)
def test_what_the_session_does_not_say_is_refused_W4(client: Client, quotes: tuple[str, ...], reason: str) -> None:
    taken = client.reflect(DOCUMENT, statements=[statement("fact", *quotes)])
    assert (taken.taken, [refused.reason for refused in taken.refused]) == (0, [reason])
    settle(client)
    assert not by_reader(client)


def test_the_words_of_another_session_are_not_found_W4(client: Client, orchard: str) -> None:
    words = "The cider goes into the green barrels before November."
    client.capture(
        Origin(host="claude-code", session="two", cwd=orchard), [Said(turn="1", at=NOW, role="user", text=words)]
    )
    assert client.reflect(DOCUMENT, statements=[statement("fact", words)]).taken == 0
    assert client.reflect("claude-code:two", statements=[statement("fact", words)]).taken == 1


def test_an_empty_reflection_and_an_unknown_session_are_refused_W4(client: Client) -> None:
    with pytest.raises(InvalidRequest):
        client.reflect(DOCUMENT)
    with pytest.raises(NotFound):
        client.reflect("claude-code:nobody", title="Nothing")


def test_open_items_are_checked_like_those_of_a_hand_over_W4_C1(client: Client) -> None:
    taken = client.reflect(DOCUMENT, open=["order a new idler pulley", "mend src/press/idler.py line 4711"])
    assert (taken.open, taken.refused_open) == (1, ("mend src/press/idler.py line 4711",))


def test_forgotten_words_are_not_taken_again_W4_T10(client: Client) -> None:
    quote = "The squeak comes from the worn idler pulley, as the wear marks show"
    client.reflect(DOCUMENT, statements=[statement("lesson", quote)])
    settle(client)
    (record,) = by_reader(client)
    job = client.forget(ids=[record.id])
    while job.state == "running":
        job = client.job(job.id)
    taken = client.reflect(DOCUMENT, statements=[statement("lesson", quote)])
    assert taken.taken == 0 and taken.refused
