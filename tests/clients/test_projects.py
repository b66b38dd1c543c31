"""The invented projects on which the weights of evidence are fitted: two sets that share nothing (Q2, Q6)."""

from memd.clients.bench.read.conversations import PROJECTS, projects
from memd.clients.bench.read.ranking import PARTS, VARIANTS, CandidateList, fitted


def test_what_is_tried_was_not_fitted_on_Q2() -> None:
    train, test = projects("train"), projects("test")
    assert not {talk.name for talk in train} & {talk.name for talk in test}
    texts = {note.text for talk in train for note in talk.notes if len(note.text.split()) > 4}
    assert not texts & {note.text for talk in test for note in talk.notes}
    asked = {each.text for talk in train for each in talk.questions}
    assert not asked & {each.text for talk in test for each in talk.questions}
    assert len(asked) > 600 and sum(len(talk.questions) for talk in test) > 200


def test_every_question_has_its_lines_and_no_slot_is_left_Q2() -> None:
    for talk in (*projects("train"), *projects("test")):
        names = {note.name for note in talk.notes}
        assert len(names) == len(talk.notes)
        assert all(each.evidence and each.evidence <= names for each in talk.questions)
        assert not any("{" in text for text in (*(n.text for n in talk.notes), *(q.text for q in talk.questions)))
    assert projects("test") == projects("test")
    assert "locomo" not in PROJECTS.read_text(encoding="utf-8").lower()


def test_a_fit_weighs_what_tells_the_answers_Q2() -> None:
    import numpy as np

    chance = np.random.default_rng(3)
    lists: list[CandidateList] = []
    for number in range(60):
        parts = chance.random((12, len(PARTS)))
        parts[0, 0] += 1
        lists.append(CandidateList(number % 3, 1, parts, tuple(map(str, range(12))), frozenset({"0"})))
    weights = fitted(lists, range(len(PARTS)))
    assert weights[0] == max(weights) and weights[0] > 3 * abs(weights[1:]).max()


def test_an_ablation_leaves_out_parts_that_there_are_Q2() -> None:
    left_out = {name for options in VARIANTS.without.values() for name in options.weights}
    assert left_out <= set(PARTS) and len(VARIANTS.without) > 8
