"""The trunk and the pipeline, loaded once, and short ways to captures and judgements."""

import time
from collections.abc import Callable

import pytest

from memd.models.trunk import Trunk
from memd.protocol.event import AnyEvent, Captured, Noted
from memd.stages.batch import Batch, Item, Proposal
from memd.stages.pipeline import NamedStage, pipeline, run
from memd.stages.reconcile import judge

Distil = Callable[..., Batch]
Judge = Callable[..., list[Proposal]]


@pytest.fixture(scope="session")
def trunk() -> Trunk:
    return Trunk()


@pytest.fixture(scope="session")
def stages(trunk: Trunk) -> tuple[NamedStage, ...]:
    return pipeline(trunk)


@pytest.fixture(scope="session")
def distil(stages: tuple[NamedStage, ...]) -> Distil:
    """Events (each with its own turn) through stages one to five."""

    def through(*events: AnyEvent, project: str = "", document: str = "test:one") -> Batch:
        items = tuple(
            Item(seq=at, captured=Captured(document=document, event=event), project=project, author="ada")
            for at, event in enumerate(events, 1)
        )
        batch, _ = run(Batch(items=items), stages, time.monotonic)
        assert batch.failures == ()
        return batch

    return through


@pytest.fixture(scope="session")
def remembered(distil: Distil) -> Judge:
    """Texts, each asked to be remembered a day after the one before, judged in that order."""

    def proposals(*texts: str, project: str = "") -> list[Proposal]:
        events = [
            Noted(turn=f"t{at}", at=f"2026-03-{10 + at:02d}T09:00:00+01:00", text=text) for at, text in enumerate(texts)
        ]
        return judge(distil(*events, project=project).candidates, {})

    return proposals
