"""The models for one job: a worker process of its own for the length of the job (W12, G3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ....protocol.errors import Unavailable
from ....protocol.ingestion import WeighedBy
from ....protocol.record import Span
from ....stages.batch import Item, Point, Weight
from ....stages.same_rules import ToldPair
from .worker_messages import (
    CheckPoints,
    CompareStatements,
    FindPoints,
    PointsFound,
    Rated,
    RateLasting,
    Weighed,
    WeighTexts,
)
from .worker_process import TaskCrashed, WorkerDied, WorkerProcess, WorkerUnusable

ATTEMPTS = 2
PART = 500
"""Pairs or statements of a task: some 5 s."""

HINT = "run the command again; `memd logs` has details"

R = TypeVar("R", PointsFound, Weighed, Rated)


class JobWorker:
    """Asks one worker process; a worker that dies is started once more."""

    def __init__(self, threads: int) -> None:
        self._worker = WorkerProcess(threads)

    def points(self, items: Sequence[Item], most: int, read: int, pointed: Sequence[Span]) -> tuple[Point, ...]:
        """Return points of captures in the order of the text. Raises Unavailable."""
        task = FindPoints(items=tuple(items), most=most, read=read, pointed=tuple(pointed))
        return self._ask(task, PointsFound).points

    def safe(self, items: Sequence[Item], points: Sequence[Point]) -> tuple[Point, ...]:
        """Return the points that may stand in a summary. Raises Unavailable."""
        return self._ask(CheckPoints(items=tuple(items), points=tuple(points)), PointsFound).points

    def weigh(self, texts: Sequence[str], by: WeighedBy) -> tuple[Weight, ...]:
        """Return the weights of texts. Raises Unavailable."""
        return self._ask(WeighTexts(texts=tuple(texts), by=by), Weighed).weights

    def compare(self, pairs: Sequence[ToldPair]) -> list[float]:
        """Return the probability that each pair states one rule. Raises Unavailable."""
        tasks = [CompareStatements(pairs=tuple(pairs[at : at + PART])) for at in range(0, len(pairs), PART)]
        return [likely for task in tasks for likely in self._ask(task, Rated).likely]

    def lasting(self, texts: Sequence[str]) -> list[float]:
        """Return the probability that each statement holds from now on. Raises Unavailable."""
        tasks = [RateLasting(texts=tuple(texts[at : at + PART])) for at in range(0, len(texts), PART)]
        return [likely for task in tasks for likely in self._ask(task, Rated).likely]

    def _ask(self, task: FindPoints | CheckPoints | WeighTexts | CompareStatements | RateLasting, kind: type[R]) -> R:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._worker.ask(task, kind)
            except (WorkerDied, WorkerUnusable) as error:
                if attempt == ATTEMPTS or isinstance(error, TaskCrashed | WorkerUnusable):
                    raise Unavailable(f"the models failed: {error}", hint=HINT) from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        """End the worker."""
        self._worker.end(for_good=True)
