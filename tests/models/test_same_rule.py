"""The models that read rules: whether two statements state one, and whether a statement holds from now on (G3)."""

import itertools
import json
import random

import pytest

from memd.models.distiller import Distiller
from memd.models.recipes import labelled
from memd.models.same_rule import SameRuleJudge
from memd.stages.lasting import lasting
from memd.stages.same_rules import ToldStatement

LEFT_OUT = "told_f.jsonl"  # no recipe of the same-rule head has read its developers
OTHERS = 60


@pytest.fixture(scope="module")
def judge() -> SameRuleJudge:
    return SameRuleJudge()


def told(words: str, turn: str = "", before: str = "") -> ToldStatement:
    return ToldStatement(words=words, turn=turn or words, before=before, family="s", is_user=True, pool="personal")


def test_odd_texts_have_a_probability_and_the_order_does_not_count_G3(judge: SameRuleJudge) -> None:
    texts = ("", "\ud800", "日本語の文です。", "a" * 20_000, "\x00", "Push after each change.")
    for first, second in itertools.combinations(texts, 2):
        likely = judge.judge(told(first), told(second))
        assert 0 <= likely <= 1 and likely == pytest.approx(judge.judge(told(second), told(first)), abs=1e-6)


@pytest.mark.parametrize("place", [0, 3])
def test_sayings_of_one_rule_are_told_from_others_of_a_developer_who_was_left_out_G3(
    judge: SameRuleJudge, place: int
) -> None:
    said = json.loads((labelled.DATA / LEFT_OUT).read_text(encoding="utf-8").splitlines()[place])["said"]
    rows = [(each["rule"], told(each["states"], each["turn"], each["before"])) for each in said]
    pairs = list(itertools.combinations(rows, 2))
    same = [(one, other) for (rule, one), (others, other) in pairs if rule == others >= 0]
    apart = [(one, other) for (rule, one), (others, other) in pairs if rule != others or rule < 0]
    apart = random.Random(7).sample(apart, OTHERS)
    likely = [sum(judge.judge_all(group)) / len(group) for group in (same, apart)]
    assert likely[0] >= 0.3 and likely[1] <= 0.1, likely


def test_a_wish_lasts_and_a_task_or_a_fact_of_the_day_does_not_G3() -> None:
    distiller = Distiller()
    lasts = ("I always prefer tabs over spaces in my Makefiles.", "Never delete a table of the harvest without asking.")
    passes = ("The user is on vacation and wants to download the tickets.", "Restart the kiosk again, it hung as ever.")
    assert all(lasting(distiller.read(text, "user")) >= 0.6 for text in lasts)
    assert all(lasting(distiller.read(text, "user")) <= 0.4 for text in passes)
