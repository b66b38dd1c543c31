"""The runner: a stage that raises costs the captures it raises for, and nothing else (P-12); it is fast enough."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.clients.importers.claude_code import read
from memd.protocol.event import Captured, Said
from memd.stages.batch import Batch, Item
from memd.stages.pipeline import NamedStage, run

Distil = Callable[..., Batch]
AT = "2026-03-10T09:00:00+01:00"
SESSIONS = Path(__file__).resolve().parents[3] / "shared" / "data" / "sessions" / "claude-code"


def items(*texts: str, role: str = "user") -> tuple[Item, ...]:
    said = "assistant" if role == "assistant" else "user"
    return tuple(
        Item(seq=at, captured=Captured(document="d:s", event=Said(turn=f"t{at}", at=AT, role=said, text=text)))
        for at, text in enumerate(texts, 1)
    )


def test_a_crash_becomes_a_failure_of_its_capture_with_the_stages_name_P12(stages: tuple[NamedStage, ...]) -> None:
    def crash(batch: Batch) -> Batch:
        if any("poison" in candidate.quote for candidate in batch.candidates):
            raise ValueError("no antidote")
        return batch

    broken = (*stages[:2], ("crash", crash), *stages[2:])
    batch, seconds = run(
        Batch(items=items("I prefer tabs.", "I prefer poison in my tea.", "I prefer short answers.")),
        broken,
        lambda: 0.0,
    )
    assert [candidate.quote for candidate in batch.candidates] == ["I prefer tabs.", "I prefer short answers."]
    assert [(failure.seq, failure.stage) for failure in batch.failures] == [(2, "crash")]
    assert "no antidote" in batch.failures[0].error
    assert list(seconds) == ["extract", "enrich", "crash", "embed", "route", "scan"]


def test_every_stage_leaves_one_step_on_every_candidate(distil: Distil) -> None:
    (candidate,) = distil(Said(turn="t", at=AT, role="user", text="I prefer tabs.")).candidates
    assert [step.stage for step in candidate.steps] == ["extract", "enrich", "embed", "route", "scan"]
    assert len(candidate.vector) == 384 * 4


def test_an_empty_batch_stays_empty(stages: tuple[NamedStage, ...]) -> None:
    batch, _ = run(Batch(), stages, lambda: 0.0)
    assert batch == Batch()


def messages(path: Path) -> tuple[Item, ...]:
    """A Claude Code session as its importer takes it, with its summary and its helpers."""
    helpers = sorted((path.parent / path.stem).rglob("*.jsonl"))
    sessions = [session for file in (path, *helpers) for session in read(file).sessions]
    captured = [Captured(document=each.origin.document, event=event) for each in sessions for event in each.events]
    return tuple(Item(seq=at, captured=one, project="project/s") for at, one in enumerate(captured, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["258c7280-ae70-4798-800f-63464d01a85d", "4d5611e5-241a-462a-8d15-5122611a9569"])
def test_a_real_session_yields_decisions_and_lessons_and_no_narration_P5(
    stages: tuple[NamedStage, ...], name: str
) -> None:
    path = SESSIONS / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("the real sessions of ../shared/data are not on this machine")
    batch, _ = run(Batch(items=messages(path)), stages, time.monotonic)
    learnt = [one for one in batch.candidates if one.type in {"decision", "lesson", "convention"}]
    assert len(learnt) >= 5
    assert 12 <= len(batch.candidates) <= 45
    assert batch.failures == ()
    narration = ("let me", "now ", "i'll", "all tests", "running", "here's", "still ")
    assert [one.quote for one in batch.candidates if one.quote.lower().startswith(narration)] == []
