"""Undecided is no decision: it is an open question until somebody decides on the same thing (P-5, T1)."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.protocol.event import Said
from memd.protocol.record import OPEN_QUESTION
from memd.stages.batch import Batch, Proposal
from memd.stages.open_questions import is_undecided

Distil = Callable[..., Batch]
Judge = Callable[..., list[Proposal]]
LINES = Path(__file__).parent / "data" / "open_questions.tsv"


def test_authored_lines_are_told_apart_P5() -> None:
    with LINES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    right = [row for row in rows if row["label"] == "open" and is_undecided(row["text"])]
    assert len(right) >= 0.9 * sum(row["label"] == "open" for row in rows)
    assert [row["text"] for row in rows if row["label"] == "other" and is_undecided(row["text"])] == []


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_a_speaker_leaves_open_is_kept_as_open_P5(distil: Distil, role: str) -> None:
    speaker = "assistant" if role == "assistant" else "user"
    text = "We still need to decide whether the exporter stays in this repository."
    said = Said(turn="t", at="2026-03-10T09:00:00Z", role=speaker, text=text)
    (candidate,) = distil(said, project="project/x").candidates
    assert (candidate.type, candidate.kind, candidate.key) == (OPEN_QUESTION, "note", "")


def test_a_later_decision_on_the_same_thing_closes_it_T1(remembered: Judge) -> None:
    question, other, decision = remembered(
        "We still need to decide whether the exporter stays in this repository.",
        "We decided to use pnpm for the scripts of this repository.",
        "We decided to keep the exporter in this repository.",
    )
    assert (question.record.type, other.retires) == (OPEN_QUESTION, ())
    (retired,) = decision.retires
    assert (retired.id, retired.reason) == (question.record.id, f"decided: {decision.record.id}")


def test_an_open_question_denies_no_decision_and_no_other_question_T1(remembered: Judge) -> None:
    proposals = remembered(
        "We support Windows.",
        "Not sure yet if we want to support Windows.",
        "Not sure yet if we want to support FreeBSD.",
    )
    assert [proposal.retires for proposal in proposals] == [(), (), ()]
    assert {proposal.record.status for proposal in proposals} == {"active"}
