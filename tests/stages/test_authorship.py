"""Authorship: which parts of a user's turn somebody else wrote (P-19)."""

import numpy as np
import pytest

from memd.stages.authorship import parts, states
from memd.stages.speakers import foreign_passages


def own(text: str) -> str:
    """What of a turn is left as the user's."""
    left, at = "", 0
    for start, end, _ in foreign_passages(text):
        left += text[at:start]
        at = end
    return " ".join((left + text[at:]).split())


def test_a_turn_is_cut_into_lines_and_sentences_P19() -> None:
    text = "see below: it fails. e.g. here\n\n- second line"
    assert [part.text for part in parts(text)] == ["see below:", "it fails.", "e.g. here", "- second line"]
    assert [text[part.start : part.end].strip() for part in parts(text)] == [part.text for part in parts(text)]
    assert [part.opens_paragraph for part in parts(text)] == [True, False, False, True]


def test_states_follow_the_likeliest_path_and_not_each_part_P19() -> None:
    scores = np.array([[-1.0, -1.0, 0.0], [3.0, -1.0, -2.0], [-1.0, -1.0, -2.0], [3.0, -1.0, -2.0], [-4.0, -1.0, 0.0]])
    assert states(scores) == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("text", "others"),
    [
        (
            "the support lead had three wishes for us.\n"
            "First she said that we answer within an hour, always. "
            "Then that nobody uses the old template any more.\n"
            "i only want to do the first one",
            "nobody uses the old template",
        ),
        (
            "what do you make of this thread?\n\n"
            "Nora Blum, 14 May, 10:02\nI never merge on Fridays, it is my rule.\n"
            "Piet Vos, 14 May, 10:05\nSame here. We always wait for Monday.\n\n"
            "for us friday is fine, can you change the pipeline so it runs then",
            "I never merge on Fridays",
        ),
        (
            "shorten this for the web page\n\n"
            "Speaker bio\nI am Ilse and I have built compilers for ten years. I never use an IDE.\n\n"
            "and please keep it below 30 words",
            "I never use an IDE",
        ),
    ],
)
def test_what_goes_on_behind_an_announcement_is_not_the_users_P19(text: str, others: str) -> None:
    left = own(text)
    assert others not in left and text.rpartition("\n")[2] in left


@pytest.mark.parametrize(
    "text",
    [
        "please stop adding comments to every line. I read the code, I don't need them. And leave the tests alone, "
        "they are mine",
        "what i want from now on:\n- short functions\n- no mocks\n- commit messages in english",
        "Hi Claude,\n\nI took over a small shop and I use Windows. Please show me each command first.\n\nThanks, Tilda",
        "Bob and I talked and we decided: we use make, nothing else.",
    ],
)
def test_the_users_own_lists_and_letters_stay_the_users_P19(text: str) -> None:
    assert foreign_passages(text) == ()
