"""List the stages in order, and run them. Captures that a stage raises for become failures with its name (P-12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import msgspec

from ..models.distiller import Distiller
from ..models.injection import InjectionJudge
from ..models.trunk import Trunk
from ..protocol.operation import Failure
from .batch import Batch, RulesOff, Stage
from .embed import Embed, SentenceEmbedder
from .enrich import enrich
from .extract import Extract
from .extraction_gate import ClauseReader
from .pointed import Reflections
from .route import route
from .scan import InjectionScorer, Scan

NamedStage = tuple[str, Stage]


def pipeline(
    trunk: Trunk,
    embedder: SentenceEmbedder | None = None,
    reader: ClauseReader | None = None,
    judge: InjectionScorer | None = None,
    off: RulesOff = frozenset(),
) -> tuple[NamedStage, ...]:
    """All stages but reconcile, which needs neighbours and is called by itself. `trunk` ranks first steps of a project:
    thresholds were fitted to it. `embedder` gives the vectors that are searched, if another model does. `off`: rules of
    extract that leave nothing out."""
    reader = reader or Distiller()
    return (
        ("extract", _in_turn(Extract(trunk, reader, off), Reflections(reader))),
        ("enrich", enrich),
        ("embed", Embed(embedder or trunk)),
        ("route", route),
        ("scan", Scan(judge or InjectionJudge())),
    )


def _in_turn(*stages: Stage) -> Stage:
    def stage(batch: Batch) -> Batch:
        return reduce(lambda changed, part: part(changed), stages, batch)

    return stage


def run(batch: Batch, stages: Sequence[NamedStage], monotonic: Callable[[], float]) -> tuple[Batch, dict[str, float]]:
    """`batch` through all stages, and the seconds each took. Where a stage raises, captures run one by one."""
    seconds: dict[str, float] = {}
    for name, stage in stages:
        began = monotonic()
        try:
            batch = stage(batch)
        except Exception:  # a stage's crash must not take the batch with it: find the captures it crashes on
            batch = _one_by_one(batch, name, stage)
        seconds[name] = monotonic() - began
    return batch, seconds


def _one_by_one(batch: Batch, name: str, stage: Stage) -> Batch:
    parts: list[Batch] = []
    failures: list[Failure] = []
    for item in batch.items:
        own = tuple(
            candidate for candidate in batch.candidates if (candidate.read_at or candidate.item.seq) == item.seq
        )
        try:
            parts.append(stage(Batch(items=(item,), candidates=own, given=batch.given, agent=batch.agent)))
        except Exception as error:  # recorded as a failure of this capture, with the stage's name
            what = f"{type(error).__name__}: {error}"[:300]
            failures.append(Failure(item.seq, item.captured.document, item.captured.event.turn, name, what))
    return msgspec.structs.replace(
        batch,
        items=tuple(item for part in parts for item in part.items),
        candidates=tuple(candidate for part in parts for candidate in part.candidates),
        rejections=batch.rejections + tuple(rejection for part in parts for rejection in part.rejections),
        failures=batch.failures + tuple(failures),
    )
