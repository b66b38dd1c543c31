"""A session's turns in order, with the records that cite them (Q3, O2): hidden words are covered."""

from typing import Any

import pytest

from memd.protocol.errors import NotFound
from memd.protocol.event import Origin, Said
from tests.daemon.test_deep import AT, done

PREFERENCE = "I always prefer tabs over spaces in Python files."


@pytest.fixture
def told(daemon: Any) -> Any:
    origin = Origin(host="test", session="s1")
    texts = ["Hello.", "Let us look at the parser.", PREFERENCE, "Thanks, run the tests.", "Bye."]
    turns = [Said(turn=f"t{number}", at=AT, role="user", text=text) for number, text in enumerate(texts)]
    with daemon.client() as client:
        client.capture(origin, turns)
        daemon.settle()
        yield client


def test_turns_are_read_in_order_around_one_of_them_Q3(told: Any) -> None:
    whole = told.transcript("test:s1")
    assert [turn.turn for turn in whole.turns] == ["t0", "t1", "t2", "t3", "t4"] and whole.before == whole.after == 0
    part = told.transcript("s1", around="t2", limit=3)
    assert [turn.turn for turn in part.turns] == ["t1", "t2", "t3"] and (part.before, part.after) == (1, 1)
    end = told.transcript("s1", around="t4", limit=3)
    assert [turn.turn for turn in end.turns] == ["t3", "t4"] and (end.before, end.after) == (3, 0)
    with pytest.raises(NotFound):
        told.transcript("s1", around="t9")
    with pytest.raises(NotFound):
        told.transcript("no such session")


def test_a_turn_names_the_records_that_cite_it_until_they_are_hidden_Q3(told: Any) -> None:
    turn = told.transcript("s1", around="t2", limit=1).turns[0]
    (cited,) = turn.cited
    assert turn.text[cited.start : cited.end] in PREFERENCE and told.get(cited.record).status == cited.status
    told.propose_forget([cited.record], hide=True)
    hidden = told.transcript("s1", around="t2", limit=1).turns[0]
    assert (
        not hidden.cited
        and hidden.text == f"{PREFERENCE[: cited.start]}{'█' * (cited.end - cited.start)}{PREFERENCE[cited.end :]}"
    )
    done(told, told.forget([cited.record]))
    assert all("tabs" not in turn.text for turn in told.transcript("s1").turns)


def test_a_revoked_source_has_no_transcript_A3(told: Any) -> None:
    told.revoke(source="test")
    with pytest.raises(NotFound, match="revoked"):
        told.transcript("s1")
    told.grant("", sources=["test"], back=True)
    assert told.transcript("s1").turns
