"""What replaced something outlives its forgetting, without a word of it; what only says it goes too (T10)."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from memd.clients.python import Client
from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Origin, Said
from memd.protocol.record import Record
from tests.daemon.test_forget import believed, ended, files_with, others, said, verified

OLD = "The gizmotron server listens on port 45119067"
NEW = "The billing daemon answers on 9922 instead"
LAST = "The ledger gateway waits behind socket 7733"


@pytest.fixture
def client(daemon: Any) -> Iterator[Client]:
    with daemon.client() as client:
        yield client


def remember(daemon: Any, client: Client, text: str, turn: str) -> str:
    id = client.remember(said(text, turn)).record.id
    daemon.settle()
    return id


def forget(client: Client, *ids: str, **scope: Any) -> tuple[int, int]:
    """Forget, with the proof that nothing is left: records that are gone, and captures."""
    plan = client.preview_forget(list(ids), **scope)
    report = ended(client, client.forget(list(ids), **scope))
    assert report["left"] == [] and (plan.record_count, plan.captures) == (report["records"], report["captures"])
    return report["records"], report["captures"]


def replayed(daemon: Any, client: Client) -> dict[str, Record]:
    """What is believed after a replay of what is left of the journal; the same as before it."""
    before = believed(client)
    daemon.terminate()
    verified(daemon)
    for name in ("projections", "vectors"):
        subprocess.run(["rm", "-r", str(daemon.places.data / name)], check=True)
    daemon.start()
    with daemon.client() as fresh:
        assert believed(fresh) == before
    return before


def test_a_correction_outlives_what_it_corrected_without_a_word_of_it_T10(daemon: Any, client: Client) -> None:
    old = remember(daemon, client, OLD, "t01")
    new = client.correct(old, NEW).record
    plan = client.preview_forget([old])
    assert [(each.id, each.why) for each in plan.records] == [(old, "chosen"), (new.id, "loses a source")]
    assert forget(client, old) == (1, 1)
    row = client.get(new.id)
    assert (row.status, row.content, row.provenance.quote) == ("active", NEW, NEW)
    assert [span.document for span in row.provenance.spans] == [f"memd:corrections/{old}"]
    assert client.why(new.id).quote_holds
    for word in ("gizmotron", "45119067"):
        assert files_with(daemon, word) == []
    assert replayed(daemon, client)[new.id] == row
    with daemon.client() as fresh:
        assert forget(fresh, new.id) == (1, 1)
    assert files_with(daemon, "9922 instead") == []


@pytest.mark.parametrize("way", ["correct", "edit"])
def test_new_words_have_no_keyword_of_the_words_before_T1(daemon: Any, client: Client, way: str) -> None:
    old = client.get(remember(daemon, client, OLD, "t01"))
    assert {"gizmotron", "server"} <= {*old.tags}
    right = getattr(client, way)(old.id, "The billing server answers on 9922 instead").record
    assert right.tags[0] == old.tags[0] and {*right.tags[1:]} <= {"server", "instead", "billing", "answers", "9922"}


def test_what_was_replaced_twice_names_what_stands_now_R4(daemon: Any, client: Client) -> None:
    old = remember(daemon, client, OLD, "t01")
    last = client.correct(client.correct(old, NEW).record.id, LAST).record.id
    for change in (client.correct, client.edit):
        with pytest.raises(InvalidRequest) as raised:
            change(old, "It listens nowhere")
        assert last[:8] in raised.value.hint


@pytest.mark.parametrize("scope", [{"query": "gizmotron"}, {"session": "cli:here"}])
def test_a_correction_outlives_it_however_it_is_named_T10(daemon: Any, client: Client, scope: dict[str, str]) -> None:
    new = client.correct(remember(daemon, client, OLD, "t01"), NEW).record.id
    assert forget(client, **scope) == (1, 1)
    assert list(believed(client)) == [new] and client.get(new).content == NEW
    assert files_with(daemon, "gizmotron") == []


def test_forgetting_a_correction_brings_nothing_back_and_takes_nothing_along_T10(daemon: Any, client: Client) -> None:
    old = remember(daemon, client, OLD, "t01")
    client.correct(old, NEW)
    row = client.get(old)
    assert forget(client, session=f"memd:corrections/{old}") == (1, 1)
    assert client.get(old) == row and row.status == "retired" and list(believed(client)) == [old]
    assert files_with(daemon, "9922 instead") == []
    assert replayed(daemon, client)[old] == row


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(3))
def test_any_of_a_chain_of_three_corrections_goes_alone_T10(daemon: Any, client: Client, nth: int) -> None:
    ids = [remember(daemon, client, OLD, "t01")]
    for words in (NEW, LAST):
        ids.append(client.correct(ids[-1], words).record.id)
    stands = {id: (row.status, row.content, row.superseded_by) for id, row in believed(client).items()}
    assert forget(client, ids[nth]) == (1, 1)
    del stands[ids[nth]]
    assert {id: (row.status, row.content, row.superseded_by) for id, row in believed(client).items()} == stands
    assert files_with(daemon, (OLD, NEW, LAST)[nth]) == []
    replayed(daemon, client)


@pytest.mark.slow
def test_a_statement_that_replaced_another_outlives_it_T10(daemon: Any, client: Client) -> None:
    old = remember(daemon, client, "I prefer tabs for indentation.", "t01")
    new = remember(daemon, client, "I prefer spaces for indentation.", "t02")
    assert client.get(old).superseded_by == new
    row = client.get(new)
    assert forget(client, old) == (1, 1)
    assert client.get(new) == row
    decisions = [change.decision for change in client.why(new).changes if change.decision]
    assert "replaced a forgotten record" in [each.reason for each in decisions] and old not in str(decisions)
    assert files_with(daemon, "tabs for") == []
    assert replayed(daemon, client)[new] == row


@pytest.mark.slow
def test_an_edited_correction_and_what_restates_it_outlive_the_old_value_T10(daemon: Any, client: Client) -> None:
    old = remember(daemon, client, OLD, "t01")
    new = client.correct(old, NEW).record.id
    client.edit(new, LAST)
    client.capture(
        Origin(host="cli", session="later"), [Said(turn="u1", at="2026-01-05T00:00:00Z", role="user", text=LAST + ".")]
    )
    daemon.settle()
    assert forget(client, old) == (1, 1)
    assert client.get(new).content == LAST and files_with(daemon, "gizmotron") == []
    assert forget(client, session=f"memd:edits/{new}")[0] == 0
    assert client.get(new).content in (NEW, LAST, LAST + ".")
    assert replayed(daemon, client)


@pytest.mark.slow
def test_what_says_the_old_value_in_no_turn_of_its_own_goes_with_it_T10(daemon: Any, client: Client) -> None:
    turn = Said(
        turn="u1",
        at="2026-01-01T00:00:00Z",
        role="user",
        text="I prefer tabs for indentation. I prefer the xylofon editor.",
    )
    client.capture(Origin(host="cli", session="one"), [turn])
    daemon.settle()
    first, *rest = believed(client)
    assert rest
    assert forget(client, first) == (1 + len(rest), 1)
    assert others(client) == [] and files_with(daemon, "xylofon") == []
