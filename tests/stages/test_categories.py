"""Category words of what a text names; an ambiguous name counts only in context (Q7)."""

import pytest

from memd.stages.categories import MOST, categories
from memd.stages.rules import rows


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("We use ruff for Python.", "linter formatter"),
        ("my dog hates thunder", "pet"),
        ("Two cats and three guinea pigs live here", "pet"),
        ("My wife's sister came", "spouse sibling"),
        ("I switched from vim to VS Code", "editor"),
        ("Tasks moved to Linear last week", "tracker"),
        ("`make` starts it", "build"),
        ("the backend is written in rust", "language"),
        ("pytest runs behind tox", "runner"),
    ],
)
def test_a_name_has_the_words_that_people_ask_with_Q7(text: str, asked: str) -> None:
    assert set(asked.split()) <= set(categories(text))


@pytest.mark.parametrize(
    "text",
    [
        "There is rust on the old gate",
        "Linear growth is enough",
        "they go out and make tea with a flask",
        "payments go out just before noon",
        "We flew swift and low",
        "",
    ],
)
def test_an_ordinary_word_is_no_name_Q7(text: str) -> None:
    assert not {"language", "tracker", "framework", "build"} & set(categories(text))


def test_a_text_of_many_names_has_few_category_words_Q7() -> None:
    assert len(categories("ruff vim jira stripe.js redis kafka nginx docker pytest webpack figma zsh dog wife")) == MOST


def test_every_line_of_the_table_can_be_found_Q7() -> None:
    for domain, words, names in rows("categories"):
        assert domain in {"software", "life"}
        for name in names.split(", "):
            if name[-1] not in "?!":
                assert set(words.split()) & set(categories(f"it was {name} again")), name
