"""Clauses in other languages: told by their letters, kept if they are worth it, approved proposals (P-22, P-5)."""

import time
from collections.abc import Callable

import pytest

from memd.protocol.event import Captured, Said
from memd.stages.batch import AgentText, Batch, Candidate, Item
from memd.stages.lead_ins import lead_in, lead_in_within
from memd.stages.other_languages import language
from memd.stages.pipeline import NamedStage, run

Distil = Callable[..., Batch]
AT = "2026-03-10T09:00:00+01:00"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("vi", "kho hang thi kiem ke cuoi thang thoi nhe"),
        ("de", "den drucker tauschen wir erst naechstes jahr aus"),
        ("en", "the printer is replaced next year"),
        ("en", "fix typo in README"),
        ("en", "npm run build -- --watch"),
    ],
)
def test_letters_tell_a_language_that_is_typed_without_accents_P22(code: str, text: str) -> None:
    assert language(text) == code


def test_a_short_clause_is_in_the_language_of_its_turn_P22() -> None:
    assert language("nein danke", "nein danke, das lassen wir so wie es ist") == "de"
    assert language("no errors found", "das steht im log: no errors found") == "en"


def told(distil: Distil, text: str) -> list[tuple[str, str]]:
    candidates = distil(Said(turn="t", at=AT, role="user", text=text), project="project/x").candidates
    return [(candidate.quote, candidate.pool) for candidate in candidates]


@pytest.mark.parametrize(
    ("text", "pool"),
    [
        ("mir sind kurze antworten lieber, keine romane bitte", "personal"),
        ("los avisos los mandamos por telegram, el correo lo quitamos", "project/x"),
        ("пиши мне короче, без длинных объяснений", "personal"),
        ("日志改成只保留七天 其他的都删掉", "project/x"),
    ],
)
def test_a_decision_and_a_wish_are_kept_in_the_pool_that_fits_P22_P17(distil: Distil, text: str, pool: str) -> None:
    assert told(distil, text) == [(text, pool)]


@pytest.mark.parametrize(
    "text", ["schau bitte nochmal drüber", "dale, ahora miro", "погоди, сейчас гляну", "再跑一下测试", "cho xem log di"]
)
def test_talk_and_a_request_of_the_moment_are_left_out_P5(distil: Distil, text: str) -> None:
    assert told(distil, text) == []


@pytest.mark.parametrize(
    ("front", "statement"),
    [
        ("ach und merk dir noch: ", "der tresor ist in raum 12"),
        ("ah y acordate que ", "el depósito cierra los lunes"),
        ("да, и запомни на будущее ", "склад у нас закрыт по понедельникам"),
        ("对了 帮我记一下 ", "仓库每周一关门"),
    ],
)
def test_an_ask_behind_a_few_words_is_taken_off_W2(distil: Distil, front: str, statement: str) -> None:
    assert [quote for quote, _ in told(distil, front + statement)] == [statement]


@pytest.mark.parametrize(
    "text", ['er schrieb: "merk dir das gut"', "don't forget the tests", "und wer merkt sich das?"]
)
def test_quoted_words_english_and_questions_ask_nothing_within_W2(text: str) -> None:
    assert lead_in_within(text) is None or lead_in(text) is not None


def answered(stages: tuple[NamedStage, ...], proposal: str, answer: str) -> tuple[Candidate, ...]:
    item = Item(
        seq=2, captured=Captured(document="d", event=Said(turn="a", at=AT, role="user", text=answer)), project="p"
    )
    batch, _ = run(Batch(items=(item,), agent={"d": (AgentText(1, proposal, "q"),)}), stages, time.monotonic)
    assert batch.failures == ()
    return batch.candidates


@pytest.mark.parametrize(
    ("proposal", "answer"),
    [
        ("Ich schlage vor, wir verschicken die Rechnungen nur noch als PDF.", "ja mach das"),
        ("Propongo enviar las facturas solo en PDF.", "dale"),
        ("Предлагаю отправлять счета только в PDF.", "давай"),
        ("我建议发票只发 PDF。", "行 就这么搞"),
    ],
)
def test_an_approved_proposal_is_a_decision_that_rests_on_both_turns_P5(
    stages: tuple[NamedStage, ...], proposal: str, answer: str
) -> None:
    (candidate,) = answered(stages, proposal, answer)
    assert (candidate.type, candidate.trust, candidate.question) == ("decision", "user", proposal)
    assert candidate.description == f"{proposal} → {answer}"


def test_thanks_for_finished_work_approve_nothing_P5(stages: tuple[NamedStage, ...]) -> None:
    assert answered(stages, "Die Tests sind grün, drei Dateien geändert.", "danke, sieht gut aus") == ()
