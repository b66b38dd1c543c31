"""The type of a clause (P-5): by a model for users, and for agents and documents among what they may teach."""

from collections.abc import Callable

import pytest

from memd.models.distiller import Distiller
from memd.protocol.event import Trust
from memd.stages import extraction_gate as gate
from memd.stages.clause_types import IDLE, TYPES, probabilities
from memd.stages.clauses import Clause
from memd.stages.cues import weights

Typed = Callable[[str, Trust], tuple[str, float]]


@pytest.fixture(scope="module")
def typed() -> Typed:
    distiller = Distiller()
    return lambda words, source: gate.typed(_clause(words), source, gate.read(distiller, words, source))


def _clause(words: str) -> Clause:
    return Clause(0, len(words), words, False)


def test_each_type_has_a_probability_and_so_have_idle_clauses_P5() -> None:
    words = "We decided to keep the ledger in Postgres."
    reading = gate.read(Distiller(), words, "user")
    likely = probabilities(_clause(words), reading, weights(words, "user"), is_user=True)
    assert set(likely) == {*TYPES, IDLE}
    assert all(0 <= share <= 1 for share in likely.values())


@pytest.mark.parametrize(
    ("words", "type_"),
    [
        ("I prefer short answers.", "preference"),
        ("We decided to keep the ledger in Postgres.", "decision"),
        ("I live in Oslo.", "identity"),
    ],
)
def test_a_user_may_state_any_type_P5(typed: Typed, words: str, type_: str) -> None:
    assert typed(words, "user")[0] == type_


def test_only_a_user_states_preferences_and_events_P5(typed: Typed) -> None:
    said = (
        "I prefer short answers.",
        "I moved the parser into a module yesterday.",
        "I will add the index tomorrow.",
    )
    assert {typed(words, source)[0] for words in said for source in ("assistant", "document")} <= set(gate.WORK_TYPES)


def test_a_statement_scores_more_than_small_talk_P5(typed: Typed) -> None:
    _, stated = typed("We decided to keep the ledger in Postgres.", "user")
    _, idle = typed("Thanks, that looks good to me now.", "user")
    assert 0 <= idle < stated <= 1
