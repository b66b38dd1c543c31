"""A slip in a question is corrected by the words of the records, and nothing else is (Q2, Q4)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.daemon.services.recall.spelling import KnownText, corrected, is_slip
from memd.protocol.event import Origin
from tests.daemon.test_beside import said
from tests.daemon.test_recall import bring, record

REFUNDS = record("personal", "shop", 1, "Partial refunds are only allowed per order line.")
WORDS = st.text("abcdefgh", min_size=5, max_size=9)


def test_a_misspelt_question_finds_what_it_means_Q2(daemon: Any) -> None:
    with daemon.client() as client:
        bring(client, [REFUNDS, record("personal", "shop", 2, "The cello is at home.")])
        answer = client.recall("partial refnuds, how alowed?")
        assert [hit.record.id for hit in answer.hits] == [REFUNDS.id]
        assert answer.corrected == "partial refunds, how allowed?"
        assert not client.recall("partial refunds").corrected
        assert not client.recall("reginds of the moon").hits, "two letters differ"


def test_the_words_of_another_pool_correct_nothing_P1_Q2(daemon: Any) -> None:
    with daemon.client() as client:
        other = record("project/a8a1b2c3d4e5f607", "shop", 1, "Partial refunds are only allowed per order line.")
        bring(client, [other, record("personal", "shop", 2, "The cello is at home.")])
        assert not client.recall("refnuds of the cello", pools=("personal",)).corrected


def test_an_answer_says_whether_turns_were_searched_Q4(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(Origin(host="test", session="talk"), [said("t1", "The regatta begins at nine.")])
        assert client.recall("regatta").method == "records and turns"
        assert client.recall("regatta", types=("note",)).method == "records"
        assert client.recall("regatta", believed_at="2026-01-01T00:00:00Z").method == "records"


@pytest.mark.parametrize("question", ["the brauch", "src/brnch.py", "my-brnch", "brnch_name", "a.brnch"])
def test_known_words_and_parts_of_names_stay_Q2(question: str) -> None:
    assert corrected(question, {"brnch"}, [KnownText("The branch.", {"branch"})], lambda word: 2) == question


def test_a_word_that_the_model_knows_stays_Q2() -> None:
    assert corrected("a horse", {"hors"}, [KnownText("The house.", {"house"})], lambda word: 1) == "a horse"
    texts = [KnownText("A branch.", {"a", "branch"}), KnownText("brunch", {"brunch"})]
    assert corrected("which brnch?", {"brnch"}, texts, lambda word: 2) == "which branch?"


@given(WORDS, st.data())
def test_one_slip_is_known_as_one_Q2(word: str, data: Any) -> None:
    at = data.draw(st.integers(1, len(word) - 2))
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    slips = {swapped, word[:at] + word[at + 1 :], f"{word[:at]}x{word[at:]}", f"{word[:at]}x{word[at + 1 :]}"} - {word}
    assert all(is_slip(slip, word) and is_slip(word, slip) for slip in slips if len(slip) >= 5)


@given(WORDS, WORDS)
def test_a_slip_is_the_same_from_both_sides_Q2(one: str, other: str) -> None:
    assert is_slip(one, other) == is_slip(other, one)
    assert not is_slip(one, one)
