"""The benchmark is tested: a broken server misses a target by more than its interval, an honest one misses none."""

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from memd.benchmarks import rule_ablation
from memd.clients.bench import client_costs, corpus, documents, everyday, hard_forgetting, learning, runner
from memd.clients.bench.html_report import page
from memd.clients.bench.measurement import (
    BenchOptions,
    Figure,
    PartResult,
    TradeOff,
    at_least,
    at_most,
    pareto_front,
    share,
)
from memd.clients.bench.read import beliefs
from memd.clients.bench.report import load, markdown, report, save
from memd.clients.python import launch
from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.event import Captured, Said
from memd.stages.batch import Batch, Item
from memd.stages.extract import Extract

SERVERS = Path(__file__).with_name("bench_servers.py")
QUICK = BenchOptions(quick=True)


def measured(monkeypatch: pytest.MonkeyPatch, kind: str) -> dict[str, Figure]:
    """The figures of forgetting, of a server that stands where the daemon would."""
    monkeypatch.setattr(launch, "command", lambda: [sys.executable, str(SERVERS), kind])
    return {figure.name.strip(): figure for figure in hard_forgetting.hard(QUICK).figures}


def _is_missed_surely(figure: Figure) -> bool:
    """Whether every value of the interval misses the target."""
    if figure.target is None or figure.met:
        return False
    ends = [figure.value, *(end for end in (figure.low, figure.high) if end is not None)]
    return not any(figure.target.holds(end / figure.floor if figure.target.times else end) for end in ends)


@pytest.mark.parametrize(
    ("kind", "missed"),
    [
        ("misranking", {"kept that are found first"}),
        ("lossy", {"kept that are found first"}),
        ("hoarding", {"forgotten that stay away", "after a restart and a rebuild"}),
    ],
)
def test_a_broken_server_misses_a_target_by_more_than_its_interval_U5(
    monkeypatch: pytest.MonkeyPatch, kind: str, missed: set[str]
) -> None:
    found = measured(monkeypatch, kind)
    assert missed <= {name for name, figure in found.items() if _is_missed_surely(figure)}
    assert all(found[name].high is not None for name in missed)


def test_an_honest_server_misses_none_of_them_U5(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [name for name, figure in measured(monkeypatch, "honest").items() if figure.met is False] == []


def test_what_can_not_be_measured_is_told_and_the_rest_is_measured_U5(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(options: BenchOptions) -> PartResult:
        """Needs data."""
        options.find("nothing")
        raise AssertionError

    def failing(options: BenchOptions) -> PartResult:
        """Fails."""
        raise NotFound("no such thing")

    def well(options: BenchOptions) -> PartResult:
        """Says one."""
        return PartResult(figures=(Figure(name="one", value=1, target=at_most(1)),))

    monkeypatch.setattr(runner, "GROUPS", {"g": {"lacking": lacking, "failing": failing, "well": well}})
    parts = list(runner.run(runner.chosen(["g"]), QUICK))
    assert [(part.name, bool(part.skipped), bool(part.failed)) for part in parts] == [
        ("lacking", True, False),
        ("failing", False, True),
        ("well", False, False),
    ]
    assert parts[2].what == "Says one." and parts[2].at and parts[2].version and not parts[2].missed
    assert runner.chosen(["g/well", "all"])[0] == ("g", "well") and len(runner.chosen(["all", "g"])) == 3
    with pytest.raises(InvalidRequest):
        runner.chosen(["g/none"])


def test_a_figure_says_itself_whether_its_target_is_met_U5() -> None:
    assert Figure(name="x", value=3, floor=1, target=at_most(5, times=True)).met
    assert Figure(name="x", value=6, floor=1, target=at_most(5, times=True)).met is False
    assert Figure(name="x", value=6).met is None
    assert not _is_missed_surely(share("x", 18, 20, at_least(0.95)))
    assert _is_missed_surely(share("x", 10, 20, at_least(0.95)))
    assert share("x", 0, 0, at_least(0.5)).met is False
    assert Figure(name="x", value=float("nan"), target=at_most(1)).met is False


def test_a_report_is_kept_joined_and_shown_without_anything_from_outside_U5(tmp_path: Path) -> None:
    base = TradeOff(over="a < b", series="one", right=4, total=10, questions=5, tokens=100, latency_ms=2)
    points = (base, replace(base, variant="top 9", right=9, tokens=900), replace(base, series="dear", tokens=950))
    figure = Figure(name="lost & found", value=2, unit="ms", target=at_most(1), low=1.5, high=2.5)
    before = PartResult(group="g", name="p", what="What?", figures=(figure,), trade_offs=points, at="2026-01-01T00:00Z")
    after = msgspec.structs.replace(before, at="2026-01-02T00:00Z", notes=("<script>", "| a | b"))
    for number, part in enumerate((before, after)):
        save(report([part]), tmp_path / f"{number}.json")
    joined = load([tmp_path / "1.json", tmp_path / "0.json"])
    assert joined.parts == (after,) and [figure.name for _, figure in joined.missed] == ["lost & found"]
    html, words = page(joined), markdown(joined)
    assert "<script" not in html and "http" not in html and "lost &amp; found" in html and "a &lt; b" in html
    assert html.count("<circle") == 2 * 3 + 2 and "missed" in html  # three points in two panels, two rows of the legend
    assert "one, top 9: accuracy 0.9" in html and html.count("a &lt; b") == 2
    assert "0 of 1 targets met" in words and "\\| a \\| b" in words
    assert pareto_front(points, lambda point: point.tokens) == [*points[:2]]
    with pytest.raises(InvalidRequest):
        load([])
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(InvalidRequest):
        load([tmp_path / "bad.json"])


def test_kept_reports_are_shown_by_the_command_U5(memd: Any, tmp_path: Path) -> None:
    part = PartResult(group="g", name="p", what="What?", figures=(Figure(name="x", value=1, target=at_most(1)),))
    save(report([part]), tmp_path / "kept.json")
    told = memd("bench", "--from", str(tmp_path / "kept.json"), "--html", str(tmp_path / "report.html"))
    assert told.code == 0 and "1 of 1 targets met" in told.text
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    data = memd("bench", "--from", str(tmp_path / "kept.json"), "--json").data
    assert data["parts"][0]["figures"][0]["met"] is True and data["machine"]["cores"] >= 1


def test_a_shell_that_is_missing_is_told_and_the_others_are_measured_U5(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = [each for each in ("bash", "zsh", "fish") if shutil.which(each)]
    found = client_costs.prompt(QUICK)
    assert len(found.figures) == 3 * len(here) + 2 and all(each.samples for each in found.figures)
    assert [each.target is not None for each in found.figures] == [True, False, False] * len(here) + [False, False]
    monkeypatch.setenv("PATH", str(tmp_path))
    found = client_costs.prompt(QUICK)
    assert not found.figures and found.notes[:3] == (
        "bash was not measured: it is not installed",
        "zsh was not measured: it is not installed",
        "fish was not measured: it is not installed",
    )


def test_every_everyday_line_can_be_answered_by_its_own_statements_U5() -> None:
    lines = everyday.lines()
    assert len(lines) == len({line.id for line in lines}) == 300
    assert sum(line.half == "held" for line in lines) == 150
    for line in lines:
        told = " ".join((*line.told, *line.then)).lower()
        assert all(word.lower() in told for word in line.answer), line.id
        assert bool(line.told) != (line.kind == "none"), line.id


def test_sessions_of_one_repository_are_measured_without_each_other_U5() -> None:
    assert corpus.repository("soph-git-hooks") == corpus.repository("alex-git-status")
    assert corpus.repository("pete-session-share") != corpus.repository("pavol-bookminder")


def test_learning_says_what_data_it_needs_U5(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="corpus"):
        learning.learn(BenchOptions(data=tmp_path))


def test_a_rule_that_is_off_leaves_nothing_out_and_all_others_do_U5() -> None:
    said = Said(
        turn="t", at="2026-01-01T09:00:00Z", role="user", text="I always work from Oslo on [WEEK DAY]. Thanks for that."
    )
    batch = Batch(items=(Item(seq=1, captured=Captured(document="pi:s", event=said)),))
    trunk, reader = rule_ablation.CachedTrunk(), rule_ablation.CachedReader()
    reasons = [rejection.reason for rejection in Extract(trunk, reader)(batch).rejections]
    off = Extract(trunk, reader, frozenset({("user", "placeholder")}))(batch)
    assert [candidate.quote for candidate in off.candidates] == ["I always work from Oslo on [WEEK DAY]."]
    assert reasons == ["placeholder", *(rejection.reason for rejection in off.rejections)]


def test_every_question_of_the_first_day_is_answered_in_the_documents_U5() -> None:
    questions = documents.questions()
    assert len(questions) == 68 and sum(question.half == "held" for question in questions) == 34
    for question in questions:
        text = "\n".join(path.read_text(encoding="utf-8") for path in documents.files(question.project)).lower()
        assert all(word.lower() in " ".join(text.split()) for word in question.words), question.question


def test_each_belief_that_a_question_names_exists_Q10() -> None:
    for case in (*beliefs.cases("open"), *beliefs.cases("held")):
        ids = [belief.id for belief in case.beliefs]
        named = {each for question in case.questions for each in (*question.want, *question.unwanted)}
        assert len(ids) == len(set(ids)) and named <= set(ids), case.name
        assert all(belief.replaces in ("", *ids[:place]) for place, belief in enumerate(case.beliefs)), case.name


def test_a_question_about_beliefs_passes_with_what_is_wanted_and_nothing_unwanted_Q10() -> None:
    case = beliefs.cases("open")[0]
    question = beliefs.BeliefQuestion(ask="", want=("a",), unwanted=("b",), most=2, first=True)
    passed = [
        beliefs.AnsweredQuestion("open", case, question, ids).is_passed for ids in (("a", "c"), ("c", "a"), ("a", "b"))
    ]
    assert passed == [True, False, False]
    silent = beliefs.BeliefQuestion(ask="")
    assert beliefs.AnsweredQuestion("open", case, silent, ()).is_passed
    assert not beliefs.AnsweredQuestion("open", case, silent, ("c",)).is_passed
