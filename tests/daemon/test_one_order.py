"""Records and turns answer in one order, on one scale, above one floor (Q4, P-23)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.daemon.services.recall.coverage import INFORMATIVE, Asked
from memd.daemon.services.recall.evidence import Proficiency
from memd.protocol.event import Origin, Said
from memd.protocol.request import Remember

TALK = Origin(host="test", session="order")
SAID = (
    "The nightly export writes to the harbour bucket because the old one had no versioning.",
    "Let me look at the export first.",
    "The crane schedule is printed on Mondays, and the pilots read it in the canteen.",
    "The canteen closes at three.",
    "A pilot asked whether the harbour office opens on Sundays; nobody knew.",
)
WEIGHTS = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.floats(0.01, 9), min_size=1, max_size=12)


@pytest.fixture
def told(daemon: Any) -> Any:
    with daemon.client() as client:
        turns = [
            Said(turn=str(n), at=f"2026-05-0{n + 1}T10:00:00Z", role="assistant" if n == 1 else "user", text=text)
            for n, text in enumerate(SAID)
        ]
        client.capture(TALK, turns)
        client.remember(Remember(text="Crane seven is out of order.", turn="r", at="2026-05-09T10:00:00Z", origin=TALK))
        daemon.settle()
        yield client


def order(client: Any, question: str, limit: int) -> list[str]:
    answer = client.recall(question, limit=limit)
    found = sorted((*answer.hits, *answer.turns), key=lambda each: -each.score)
    return [each.record.id if hasattr(each, "record") else each.turn for each in found]


@pytest.mark.parametrize("question", ["Where does the nightly export write?", "Who reads the crane schedule?"])
def test_a_longer_answer_begins_with_the_shorter_one_Q4(told: Any, question: str) -> None:
    longest = order(told, question, 8)
    assert longest
    for limit in range(1, 8):
        assert order(told, question, limit) == longest[:limit]


def test_a_turn_is_not_told_beside_a_record_that_has_its_words_Q4(told: Any) -> None:
    answer = told.recall("Which crane is out of order?", limit=8)
    assert answer.hits[0].record.provenance.quote == "Crane seven is out of order."
    assert "r" not in {turn.turn for turn in answer.turns}


def test_nothing_is_told_that_only_shares_common_words_P23(told: Any) -> None:
    answer = told.recall("Which database does the office of the lighthouse use?")
    assert answer.abstained and not answer.turns and not answer.hits and answer.reason


@given(WEIGHTS, st.sets(st.text("abcdef", min_size=1, max_size=3)), st.sets(st.text("abcdef", min_size=1, max_size=3)))
def test_more_of_a_question_covers_more_of_it_Q4(weights: dict[str, float], some: set[str], more: set[str]) -> None:
    asked = Asked(weights, Proficiency())
    assert 0 <= asked.covered(some) <= asked.covered(some | more) + 1e-9 <= 1 + 2e-9
    assert asked.covered(weights.keys()) == pytest.approx(1)
    assert asked.answered(some, 0.2) <= asked.answered(some, 0.6)


def test_a_story_around_a_question_does_not_hide_the_answer_Q4() -> None:
    short = dict.fromkeys("abcd"[:INFORMATIVE], 3.0)
    long = short | dict.fromkeys("efghijkl", 1.0)
    assert Asked(long, Proficiency()).covered(short) == Asked(short, Proficiency()).covered(short) == 1
