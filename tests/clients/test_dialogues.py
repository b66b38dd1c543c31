"""The invented dialogues on which the weights of evidence are fitted: two sets that share nothing (Q2, Q6)."""

from itertools import pairwise

import pytest

from memd.clients.bench.read.conversations import DIALOGUES, QUESTION_TYPES, Conversation, dialogues

TALKS = [*dialogues("train"), *dialogues("test")]


def test_nobody_who_is_fitted_on_is_tried_Q2() -> None:
    train, test = dialogues("train"), dialogues("test")
    assert len(train) == 6 and len(test) == 4 and train == dialogues("train")
    assert not {note.author for talk in train for note in talk.notes} & {n.author for talk in test for n in talk.notes}
    assert not {note.text for talk in train for note in talk.notes} & {n.text for talk in test for n in talk.notes}


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.name)
def test_a_dialogue_runs_over_months_and_every_question_has_its_lines_and_names_somebody_Q2(talk: Conversation) -> None:
    sessions = list(dict.fromkeys(note.session for note in talk.notes))
    days = [next(note.at for note in talk.notes if note.session == each)[:10] for each in sessions]
    assert 8 <= len(sessions) <= 10 and days == sorted(days)
    assert all(first[:7] != then[:7] for first, then in pairwise(days))
    assert all(14 <= sum(note.session == each for note in talk.notes) <= 22 for each in sessions)
    names = {note.name for note in talk.notes}
    assert len(names) == len(talk.notes)
    people = {note.author for note in talk.notes}
    assert 35 <= len(talk.questions) <= 45
    assert {each.category for each in talk.questions} == set(range(1, len(QUESTION_TYPES) + 1))
    assert all(each.evidence and each.evidence <= names for each in talk.questions)
    assert all(any(name in each.text for name in people) for each in talk.questions)


def test_what_is_asked_is_worded_anew_Q2() -> None:
    for talk in TALKS:
        said = [note.text.lower() for note in talk.notes]
        for asked in talk.questions:
            words = asked.text.lower().rstrip("?").split()
            runs = [" ".join(words[at : at + 5]) for at in range(len(words) - 4)]
            assert not [run for run in runs if any(run in text for text in said)]
    assert "locomo" not in DIALOGUES.read_text(encoding="utf-8").lower()
