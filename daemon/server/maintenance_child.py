"""The maintenance child: rebuilds or verifies projections, builds vector graphs and fits scorers.

It runs at low priority, ends when its standard input ends, opens journal and archive read-only, and writes only new
files below `projections`. It reports steps and a result, one JSON object a line on standard output.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...protocol.errors import MemdError, Unavailable
from ...protocol.fading import FeedbackGiven, Sample
from ..projections.keywords import Keywords, beside
from ..projections.replay import GROUP, ReplayLogs, ReplayProgress, ReportProgress, TaskReport
from ..projections.turns import TurnIndex
from ..services.maintenance.verify import verify
from ..services.maintenance_process import Failed, Finished, Line, TaskStep
from ..storage.folder_swap import BUILDING
from ..world import real_world


def rebuild(sources: ReplayLogs, names: Sequence[str], emit: ReportProgress) -> TaskReport:
    """Build these projections below `building`, closed and on the disk; return their seqs."""
    building = sources.projections / BUILDING
    report: TaskReport = {}
    operations, captures = sources.journal.last, sources.archive.last
    indexed = operations if "keywords" in names else 0
    course = ReplayProgress(emit, operations, indexed, captures if "turns" in names else 0)
    if {"tables", "keywords"} & set(names):
        folded = sources.fold(building / "tables", course)
        report["tables"] = last = folded.tables.applied_seq
        if "keywords" in names:
            around = beside(sources.archive, folded.sources, folded.aliases)
            keywords = Keywords(building / "keywords", folded.records, around)
            course.finish(operations, "indexing records")
            for number, record in enumerate(folded.records.everything(), 1):
                keywords.fill([record], last)
                if number % GROUP == 0:
                    course.at(number, "indexing records")
            keywords.put((), (), last)
            keywords.close()
            report["keywords"] = last
        folded.close()
    if "turns" in names:
        turns = TurnIndex(building / "turns", sources.archive)
        course.finish(indexed, "indexing turns")
        turns.catch_up(progress=lambda seq: course.at(seq, "indexing turns"))
        turns.close()
        report["turns"] = turns.applied
    return report


def learn(sources: ReplayLogs, agents: Sequence[str], emit: ReportProgress) -> TaskReport:
    """Fit the scorer of each of these agents to all its feedback; return each as text."""
    from ..services.recall.scorer import encoded, trained

    samples: dict[str, list[Sample]] = {agent: [] for agent in agents}
    after, last = 0, sources.journal.last
    while group := sources.journal.slice(after, GROUP):
        for entry in group:
            if isinstance(entry.operation, FeedbackGiven) and entry.operation.agent in samples:
                samples[entry.operation.agent] += entry.operation.samples
        after = group[-1].seq
        emit(after, last, "reading feedback")
    return {agent: encoded(trained(agent_samples)) for agent, agent_samples in samples.items() if agent_samples}


def graph(folder: Path, place: Path, emit: ReportProgress) -> TaskReport:
    """Build the graph over the vectors that the rows in `place` name; return their number. Raises Unavailable when the
    folder was removed meanwhile."""
    from ..projections.vector_index import build

    emit(0, 1, "building a graph of vectors")
    try:
        return {"vectors": build(place, folder / "vectors", real_world())}
    except (OSError, RuntimeError) as error:
        raise Unavailable(f"could not build the vector graph: {error}", hint="memd retries automatically") from error


def run(task: str, folder: Path, names: Sequence[str], emit: ReportProgress) -> TaskReport:
    """Run one task. Raises MemdError."""
    if task == "rebuild":
        return rebuild(ReplayLogs(folder, real_world()), names, emit)
    if task == "graph":
        return graph(folder, Path(names[0]), emit)
    if task == "learn":
        return learn(ReplayLogs(folder, real_world()), names, emit)
    return verify(folder, real_world(), emit)


def write(line: Line) -> None:
    """Send one line to the daemon."""
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()


def _end_with_the_daemon() -> None:
    while os.read(0, 4096):  # not through a buffer, whose lock would be held when the interpreter ends
        pass
    os._exit(1)


def main() -> None:
    """Run as `python -m memd.daemon.server.maintenance_child TASK FOLDER [NAME …]`, started by the daemon."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o077)
    os.nice(10)
    gc.disable()  # values hold no cycles, and walking a hundred thousand of them takes a third of the time
    threading.Thread(target=_end_with_the_daemon, daemon=True).start()
    try:
        task, folder, *names = sys.argv[1:]
        report = run(task, Path(folder), names, lambda done, total, detail: write(TaskStep(done, total, detail)))
        write(Finished(report))
    except MemdError as error:
        write(Failed(error.code, error.message, error.hint))


if __name__ == "__main__":
    main()
