"""A change is found by what it changed; earlier states stand below the newest one, and turns say what no longer holds
(Q5, Q12, T1, T10, P1)."""

from typing import Any

import msgspec
import pytest

from memd.clients.cli.recall import recalled_lines
from memd.daemon.projections.keywords import predecessors
from memd.daemon.services.recall.states import asks_for_history
from memd.protocol.event import Origin, Said
from memd.protocol.record import Record
from memd.protocol.request import Remember
from tests.daemon.test_deep import done
from tests.daemon.test_forget import ended
from tests.daemon.test_recall import bring, record

OLD, NEXT, LAST = "My editor is vim.", "I switched to VS Code.", "Zed it is now."
QUESTION = "Which editor do I use?"


def tell(client: Any, text: str, turn: str, at: str = "2026-05-01T10:00:00Z") -> str:
    origin = Origin(host="test", session=f"s{turn}")
    return client.remember(Remember(text=text, turn=turn, at=at, origin=origin)).record.id


def answers(client: Any, question: str, **options: Any) -> list[str]:
    return [hit.record.content for hit in client.recall(question, **options).hits]


@pytest.fixture
def changed(daemon: Any) -> Any:
    """A client, and the ids of three states of one thing."""
    with daemon.client() as client:
        old = tell(client, OLD, "a")
        tell(client, "The cello is at home.", "b")
        daemon.settle()
        after = client.correct(old, NEXT).record.id
        last = client.correct(after, LAST).record.id
        daemon.settle()
        yield client, (old, after, last)


def test_a_change_is_found_by_what_it_changed_Q5(changed: Any) -> None:
    client, _ = changed
    assert answers(client, QUESTION) == [LAST]
    assert b"vim" not in msgspec.json.encode(client.recall(QUESTION).hits)
    done(client, client.rebuild("keywords"))
    assert answers(client, QUESTION) == [LAST]
    done(client, client.job(client.verify().id))


def test_forgotten_words_no_longer_find_what_replaced_them_T10(changed: Any) -> None:
    client, (old, _, last) = changed
    report = ended(client, client.forget([old]))
    assert report["left"] == [] and client.get(last).status == "active"
    assert answers(client, "Who uses vim?") == []
    done(client, client.job(client.verify().id))


@pytest.mark.parametrize("options", [{"query": "which editor did I use before?"}, {"query": "vim", "all": True}])
def test_the_newest_state_leads_and_earlier_ones_have_their_dates_Q12(changed: Any, options: dict[str, Any]) -> None:
    client, _ = changed
    answer = client.recall(options["query"], include_retired="all" in options)
    states = [hit.record for hit in answer.hits]
    assert states[0].content == LAST and [state.status for state in states[1:]] == ["retired"] * (len(states) - 1)
    assert states[-1].content == OLD and states[-1].valid_to
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
    assert "true from 2026-05-01" in "\n".join(recalled_lines(answer))


def test_a_question_of_the_present_gets_no_earlier_state_Q12(changed: Any) -> None:
    client, _ = changed
    assert OLD not in answers(client, "Do I use vim?")


def test_only_states_of_the_same_pool_and_visibility_find_it_P1() -> None:
    class Rows(dict[str, Record]):
        def many(self, ids: Any) -> dict[str, Record]:
            return {id: self[id] for id in ids if id in self}

    old = record("personal", "x", 1, OLD, status="retired")
    hidden = msgspec.structs.replace(old, id="hidden", status="hidden")
    elsewhere = msgspec.structs.replace(old, id="elsewhere", pool="project/orchard")
    live = record("personal", "y", 2, NEXT, supersedes=(old.id, "hidden", "elsewhere", "gone"))
    rows: Any = Rows({each.id: each for each in (old, hidden, elsewhere, live)})
    assert [each.id for each in predecessors(rows, live)] == [old.id]
    assert predecessors(rows, msgspec.structs.replace(live, status="hidden")) == []


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("what did the jobs run on before the switch?", True),
        ("which formats did we have earlier?", True),
        ("what was our previous database", True),
        ("the history of our build tool", True),
        ("welche Datenbank hatten wir früher?", True),
        ("以前は何を使っていましたか", True),
        ("what must run before a release?", False),
        ("which editor do I use?", False),
        ("who signs the cards first?", False),
    ],
)
def test_a_question_for_the_past_is_recognised_Q12(question: str, asks: bool) -> None:
    assert asks_for_history(question) is asks


def test_a_turn_tells_what_no_longer_holds_of_it_T1(daemon: Any) -> None:
    crane = "The harbour crane is yellow."
    text = f"{crane} The ferry office opens at seven on weekdays. The canteen of the quay has no coffee on Sundays."
    origin = Origin(host="test", session="talk")
    with daemon.client() as client:
        client.capture(origin, [Said(turn="one", at="2026-05-01T10:00:00Z", role="user", text=text)])
        daemon.settle()
        old = next(hit.record for hit in client.recall("harbour crane").hits if hit.record.provenance.quote == crane)
        now = client.correct(old.id, "The harbour crane is red.").record
        daemon.settle()
        answer = client.recall("harbour crane, ferry office, canteen of the quay")
        parts = [msgspec.structs.astuple(part) for part in answer.turns[0].outdated]
        assert parts == [(0, len(crane), old.id, now.id)]
        assert f"outdated: “{crane}” · replaced by {now.id[:8]}" in "\n".join(recalled_lines(answer))


def test_a_corrected_turn_does_not_come_back_T1(changed: Any) -> None:
    client, _ = changed
    assert all(turn.quote != OLD for turn in client.recall("vim editor", deep=True).turns)


def test_a_turn_that_names_a_month_answers_for_it_Q12(daemon: Any) -> None:
    with daemon.client() as client:
        said = [
            Said(turn="1", at="2026-06-25T10:00:00Z", role="user", text="Last month we decided to close the old quay."),
            Said(turn="2", at="2026-02-03T10:00:00Z", role="user", text="We decided to paint the old quay green."),
        ]
        client.capture(Origin(host="test", session="quay"), said)
        daemon.settle()
        answer = client.recall("What did we decide about the old quay in May 2026?")
        texts = [*(hit.record.provenance.quote for hit in answer.hits), *(turn.quote for turn in answer.turns)]
        assert texts and all("close" in text for text in texts)


def test_a_link_between_pools_is_no_answer_Q5(daemon: Any) -> None:
    with daemon.client() as client:
        bring(client, [record("project/orchard", "far", 1, "The orchard repository needs Python 3.12.")])
        daemon.settle()
        found = client.recall("What does the user work on?", include_retired=True)
        assert all(hit.record.provenance.source != "memd:projects" for hit in found.hits)
