"""A question without a subject of its own gets an overview of what it asks for (Q2, P1, A1)."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.daemon.services.recall.general_questions import GENERAL, WANTED, GeneralQuestions, relevances
from memd.protocol.record import Record
from tests.daemon.test_recall import bring, record

PROJECT = "project/a8a1b2c3d4e5f607"


WORDS = frozenset(("todo", "open"))


def of_type(type: str, number: int, text: str, pool: str = PROJECT) -> Record:
    return msgspec.structs.replace(record(pool, type, number, text), tags=(type,), language="en")


TOLD = [
    of_type("purpose", 1, "Orchard plans the picking of apples."),
    of_type("decision", 2, "We chose barges over lorries because the road is narrow."),
    of_type("convention", 3, "Every crate gets a label before noon."),
    of_type("preference", 4, "I like long ladders.", "personal"),
    of_type("identity", 5, "I am a gardener in Lisbon.", "personal"),
    of_type("commitment", 6, "Order the nets before May."),
    of_type("open question", 7, "It is undecided whether pears are picked too."),
]


@pytest.fixture
def told(daemon: Any) -> Any:
    with daemon.client() as client:
        bring(client, TOLD)
        yield client


def found(client: Any, question: str, **more: Any) -> list[str]:
    return [hit.record.content for hit in client.recall(question, pools=(PROJECT, "personal"), **more).hits]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What should I know about this project?", 0),
        ("which decisions did we make?", 1),
        ("project conventions", 2),
        ("user preferences", 3),
        ("What do you know about me?", 4),
    ],
)
def test_a_general_question_is_answered_by_its_kind_Q2(told: Any, question: str, first: int) -> None:
    answer = told.recall(question, pools=(PROJECT, "personal"))
    assert answer.method == "overview" and not answer.abstained and not answer.turns
    assert answer.hits[0].record.content == TOLD[first].content
    assert found(told, question, limit=1) == found(told, question)[:1]


def test_what_is_open_is_listed_and_nothing_else_Q2(told: Any) -> None:
    assert set(found(told, "list all open points")) == {TOLD[5].content, TOLD[6].content}


def test_an_overview_of_a_project_has_nothing_personal_P1(told: Any) -> None:
    overview = found(told, "What should I know about this project?")
    assert not {TOLD[3].content, TOLD[4].content} & set(overview) and len(overview) == 5
    assert all(each.pool == "personal" for each in (hit.record for hit in told.recall("who am I").hits))


def test_a_question_with_a_subject_gets_no_overview_Q2(told: Any) -> None:
    for question in ("what did we decide about barges", "which convention do we have for crates"):
        assert told.recall(question, pools=(PROJECT, "personal")).method != "overview"
    assert told.recall("project conventions", pools=(PROJECT,), types=("decision",)).method == "records"


@given(st.lists(st.sampled_from(TOLD), unique_by=lambda each: each.id), st.sampled_from(sorted(WANTED)))
def test_the_first_of_each_type_comes_before_a_second_one_Q2(records: list[Record], kind: str) -> None:
    weighed = relevances(records, kind, (PROJECT, "personal"))
    assert all(0 < weight <= GENERAL for weight in weighed.values())
    assert weighed == relevances(records[::-1], kind, (PROJECT, "personal"))


def test_a_model_that_is_saved_answers_as_before_Q2(tmp_path: Any) -> None:
    model = GeneralQuestions(("open", "specific"), np.eye(2, dtype=np.float32) * 4, np.zeros(2, np.float32), WORDS)
    assert model.kind(np.array([1, 0], np.float32), ["todo", "list"]) == "open"
    assert not model.kind(np.array([1, 0], np.float32), ["approv", "everi", "request"])
    assert not model.kind(np.array([0, 1], np.float32), ["todo"]) and not model.kind(np.array([0, 0]), ["todo"])
    model.save(tmp_path / "general.npz")
    with np.load(tmp_path / "general.npz") as stored:
        assert stored["weights"].tolist() == model.weights.tolist() and set(stored["words"]) == WORDS
