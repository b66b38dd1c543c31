"""The worker process: loads the models and runs the stages.

It runs at low priority, ends when its standard input ends, and opens no file of the data folder and no socket. No
other process loads onnxruntime.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO

import msgspec

from ....models.distiller import Distiller
from ....models.injection import InjectionJudge
from ....models.pair import PairJudge
from ....models.same_rule import SameRuleJudge
from ....models.trunk import Trunk
from ....stages.batch import Batch
from ....stages.lasting import lasting
from ....stages.pipeline import pipeline, run
from ....stages.points import PointReader
from ....stages.reconcile import candidate_id, find_conflicts, judge
from ....stages.rules import VERSION, digest
from ....stages.scan import Scan
from .worker_messages import (
    AnyResult,
    AnyTask,
    CheckPoints,
    ComparePinned,
    CompareStatements,
    Conflicts,
    Crashed,
    DistilItems,
    Distillate,
    Embedded,
    EmbedTexts,
    FindPoints,
    JudgeCandidates,
    Judged,
    PointsFound,
    Rated,
    RateLasting,
    Ready,
    Weighed,
    WeighTexts,
    receive_task,
    send,
)

HEADS = ("distiller", "injection", "pair")
"""The heads that decide about records; every record names them."""


class Worker:
    """The models, and the batch between distilling and judging."""

    def __init__(self, trunk: Trunk, embedder: Trunk, monotonic: Callable[[], float]) -> None:
        """`trunk`: the package's own model, which distils; `embedder`: the model whose vectors are searched."""
        self._embedder = embedder
        self._stages = pipeline(trunk, embedder)
        self._pairs = PairJudge()
        self._monotonic = monotonic
        self._batch = Batch()
        self._trunk = trunk
        self._distiller = f"rules-{VERSION}@{digest()}+{trunk.info.read_by(HEADS)}"

    @cached_property
    def _points(self) -> PointReader:
        """Loads heads of its own: few workers need them."""
        return PointReader(self._clauses, self._trunk, Scan(InjectionJudge()))

    @cached_property
    def _clauses(self) -> Distiller:
        return Distiller()

    @cached_property
    def _rules(self) -> SameRuleJudge:
        return SameRuleJudge()

    def answer(self, task: AnyTask) -> AnyResult:
        """Return the result of one task."""
        match task:
            case DistilItems():
                batch = Batch(items=task.items, given=task.given, agent=task.agent)
                self._batch, _ = run(batch, self._stages, self._monotonic)
                ids = tuple(candidate_id(candidate) for candidate in self._batch.candidates)
                return Distillate(batch=msgspec.structs.replace(self._batch, agent={}), ids=ids)
            case JudgeCandidates():
                recalled = {document: frozenset(given.ids) for document, given in self._batch.given.items()}
                candidates = self._batch.candidates
                return Judged(proposals=tuple(judge(candidates, task.known, self._distiller, self._pairs, recalled)))
            case ComparePinned():
                return Conflicts(found=tuple(find_conflicts(task.held, task.fresh, task.cosines)))
            case EmbedTexts():
                return Embedded(vectors=tuple(row.tobytes() for row in self._embedder.embed(task.texts)))
            case FindPoints():
                return PointsFound(points=self._points.points(task.items, task.most, task.read, task.pointed))
            case CheckPoints():
                return PointsFound(points=self._points.safe(task.items, task.points))
            case WeighTexts():
                return Weighed(weights=self._points.weigh(task.texts, task.by))
            case CompareStatements():
                return Rated(likely=tuple(self._rules.judge_all(task.pairs)))
            case RateLasting():
                return Rated(likely=tuple(lasting(self._clauses.read(text, "user")) for text in task.texts))


def serve(tasks: IO[bytes], results: IO[bytes], worker: Worker) -> None:
    """Report readiness, then answer tasks until the daemon ends."""
    send(results, Ready())
    while (task := receive_task(tasks)) is not None:
        try:
            result = worker.answer(task)
        except Exception as error:  # one bad task must not cost the loaded model
            result = Crashed(error=f"{type(error).__name__}: {error}"[:500])
        try:
            send(results, result)
        except BrokenPipeError:
            return


def load(threads: int, folder: str) -> Worker:
    """Load the models; `folder` holds another embedding model, "" for the package's own."""
    trunk = Trunk(threads=threads)
    return Worker(trunk, Trunk(Path(folder), threads) if folder else trunk, time.monotonic)


def main(load: Callable[[int, str], Worker] = load) -> None:
    """Run with arguments `THREADS [FOLDER]`, started by the daemon."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(10)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries goes to the log, never between the results
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    serve(sys.stdin.buffer, results, load(threads, sys.argv[2] if len(sys.argv) > 2 else ""))


if __name__ == "__main__":
    main()
