"""Selection and ownership: what of a user's turn is kept, how far it is trusted, and whose it is (P-5, P-17)."""

from collections.abc import Callable

import pytest

from memd.models.distiller import Distiller
from memd.protocol.event import Said
from memd.stages.batch import Batch
from memd.stages.clauses import Clause
from memd.stages.linear_model import LinearModel
from memd.stages.ownership import about_user
from memd.stages.selection import Place, Selection, features, selection

AT = "2026-03-10T09:00:00+01:00"
Distil = Callable[..., Batch]


def said(distil: Distil, text: str) -> Batch:
    return distil(Said(turn="t", at=AT, role="user", text=text), project="project/x")


@pytest.mark.parametrize(
    "words",
    [
        "the offset should be stored with the consumer, not in a table of its own",
        "add a column for the currency, every ledger line needs one",
        "it has to work offline as well, the tills lose the network twice a day",
    ],
)
def test_a_decision_in_the_form_of_a_request_is_kept_P5(distil: Distil, words: str) -> None:
    assert [candidate.quote for candidate in said(distil, words).candidates] == [words]


def test_what_is_less_certain_is_kept_unconfirmed_P5(distil: Distil) -> None:
    candidates = said(distil, "could the exporter maybe write one file a month instead of one a day?").candidates
    assert [candidate.status for candidate in candidates] == ["quarantined"]


@pytest.mark.parametrize("words", ["run it again", "thanks, looks good", "fix the failing test", "ok go on"])
def test_a_request_of_the_moment_is_left_out_P5(distil: Distil, words: str) -> None:
    assert said(distil, words).candidates == ()


def test_a_statement_in_a_language_that_is_not_read_counts_by_its_form_P22() -> None:
    place = Place(is_user=True, at=0, clauses=1, characters=60)
    words = "Все отчёты хранятся в отдельной базе и обновляются каждую ночь."
    assert selection().probability(features(place, Clause(0, 60, words), None)) > 0.1


def test_features_that_are_not_given_count_as_their_mean_P5() -> None:
    model = LinearModel(weights=(1.0, 5.0), means=(0.0, 3.0), deviations=(1.0, 1.0), bias=0.0)
    assert model.probability([0.0]) == model.probability([0.0, 3.0]) == 0.5


def test_a_tier_is_the_highest_whose_threshold_is_reached_P5() -> None:
    model = Selection(weights=(), means=(), deviations=(), bias=0.0, believed=0.6, noted=0.4)
    assert [model.tier(likely) for likely in (0.7, 0.6, 0.5, 0.3)] == ["believed", "believed", "noted", ""]


@pytest.mark.parametrize(
    ("words", "is_about_user"),
    [
        ("always answer me in german", True),
        ("my timezone is now Asia/Tokyo", True),
        ("I use Neovim for everything", True),
        ("I think the parser is broken on long lines", False),
        ("I set up the linter as a commit hook yesterday", False),
        ("the staging database moved to port 5433", False),
    ],
)
def test_the_subject_decides_whose_a_statement_is_P17(words: str, is_about_user: bool) -> None:
    assert (about_user(Distiller().read(words, "user")) > 0.5) == is_about_user
