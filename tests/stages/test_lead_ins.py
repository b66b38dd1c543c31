"""What people ask to remember, in the words of ten languages: the statement stays, the asking goes (W2)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.protocol.event import Noted, Said
from memd.stages.batch import Batch
from memd.stages.lead_ins import is_asked_for, lead_in

Distil = Callable[..., Batch]
AT = "2026-03-10T09:00:00+01:00"
ASKED = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parents[1] / "data" / "asked.tsv").read_text(encoding="utf-8").splitlines()
]
"""Language, lead-in, statement, question."""


@pytest.mark.parametrize(("language", "lead", "statement", "question"), ASKED)
def test_a_lead_in_ends_where_the_statement_begins_W2(language: str, lead: str, statement: str, question: str) -> None:
    front = lead_in(lead + statement)
    assert front is not None and front.end == len(lead)
    assert lead_in(statement) is None and lead_in(question) is None
    assert is_asked_for(f"Ok.\n{lead}{statement}", 4 + len(lead)) and not is_asked_for(statement, 0)


@pytest.mark.parametrize(("language", "lead", "statement", "question"), ASKED)
def test_the_statement_is_kept_word_for_word_in_a_session_and_by_hand_W2(
    distil: Distil, language: str, lead: str, statement: str, question: str
) -> None:
    said = distil(Said(turn="s", at=AT, role="user", text=lead + statement), project="project/x").candidates
    noted = distil(Noted(turn="n", at=AT, text=lead + statement), project="project/x").candidates
    for (candidate,) in (said, noted):
        assert candidate.quote == statement and candidate.status == "active" and not candidate.is_noted
        assert candidate.span.start == len(lead)


@pytest.mark.parametrize(
    "text",
    [
        "guarda los cambios en main",
        "no olvides correr los tests",
        "Vergiss nicht, die Tests zu starten",
        "не забудь обновить тесты",
        "сохрани файл",
        "别忘了跑测试",
        "テストを忘れないで",
        "salva il file in src/",
        "retiens la branche principale",
        "nho chay test nhe",
        "Er merkt sich alles.",
        "Remember to update the lock file",
        "Store the file in tmp",
        "Notes: none",
        "merk dir: wo liegt der schluessel?",
    ],
)
def test_an_errand_a_report_or_a_question_asks_to_remember_nothing_P5(text: str) -> None:
    assert lead_in(text) is None


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("Merk dir das. Die Leiter steht im Schuppen.", "Die Leiter steht im Schuppen."),
        ("Die Leiter steht im Schuppen. Merk dir das!", "Die Leiter steht im Schuppen."),
        ("これを覚えて。梯子は小屋にある。", "梯子は小屋にある。"),
        ("Remember that the ladder stands in the shed.", "the ladder stands in the shed."),
    ],
)
def test_a_lead_in_of_its_own_speaks_of_the_sentence_beside_it_W2(distil: Distil, text: str, statement: str) -> None:
    batch = distil(Said(turn="s", at=AT, role="user", text=text), project="project/x")
    assert [(candidate.quote, candidate.status) for candidate in batch.candidates] == [(statement, "active")]
    if ". " in text or "。" in text[:-1]:
        assert [rejection.reason for rejection in batch.rejections] == ["lead-in"]


def test_an_agent_asks_nobody_to_remember_P19(distil: Distil) -> None:
    said = Said(turn="s", at=AT, role="assistant", text="Merk dir: Die Leiter steht im Schuppen.")
    assert not any(candidate.status == "active" for candidate in distil(said).candidates)


@given(st.text(max_size=200))
def test_a_lead_in_ends_inside_of_its_text(text: str) -> None:
    front = lead_in(text)
    assert front is None or 0 < front.end <= len(text)
