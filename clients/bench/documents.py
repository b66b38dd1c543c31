"""Documents of projects, and what a new colleague asks on the first day: how to run the tests, which version …

`samples/documents` holds READMEs of six invented projects, each written in another style, and `questions.tsv`. The
documents of memd itself are read where this runs in a checkout. A developer of memd reads only the half `open`.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec

from ...protocol.record import LIVE
from ..importers import markdown
from ..python.client import Client
from .measurement import BenchOptions, Figure, PartResult, at_least, share
from .session_data import deliver, has_words, new_repository, record_text, records
from .temporary_daemon import settle, temporary_daemon

FOLDER = Path(__file__).parent / "samples" / "documents"
CHECKOUT, OWN_FILES = Path(__file__).parents[2], ("README.md", "CONTRIBUTING.md", "docs/ARCHITECTURE.md")
OWN = "memd"
FIRST = 5
RECORDS_ONLY = {"MEMD_SIMPLE_BELOW_SESSIONS": "0"}
"""Settings with which an answer holds no raw captures, as with many sessions."""


class DayOneQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question about a project, and the words that a record which answers it holds, with ` | ` between them."""

    half: Literal["open", "held"]
    project: str
    question: str
    answer: str

    @property
    def words(self) -> list[str]:
        """The words of the answer."""
        return self.answer.split(" | ")


class _Answered(msgspec.Struct, frozen=True):
    question: DayOneQuestion
    rank: int | None
    found: str


def documents(options: BenchOptions) -> PartResult:
    """Questions of the first day that records of a project's README and other documents answer."""
    judged: list[_Answered] = []
    figures: list[Figure] = []
    every = questions()
    projects = [name for name in dict.fromkeys(question.project for question in every) if files(name)]
    for project in projects[:2] if options.quick else projects:
        options.progress(f"documents: {project}")
        of_project, number, characters = _measured(project, [row for row in every if row.project == project])
        judged += of_project
        figures.append(Figure(f"records of {project}, of {characters:,} characters", number, "records"))
    shown = [row for row in judged if row.question.half == "open" and row.rank != 1]
    notes = tuple(f"{row.question.project}: {row.question.question} at {row.rank}: {row.found}" for row in shown)
    return PartResult((*_figures(judged, "held"), *_figures(judged, "open"), *figures), notes=notes)


def questions() -> tuple[DayOneQuestion, ...]:
    """The questions of the sample."""
    with (FOLDER / "questions.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return tuple(msgspec.convert(row, DayOneQuestion) for row in rows)


def files(project: str) -> list[Path]:
    """The documents of a project; none of memd's own where this is installed without them."""
    if project == OWN:
        return [path for name in OWN_FILES if (path := CHECKOUT / name).exists()]
    return sorted((FOLDER / project).glob("*.md"))


def _figures(judged: Sequence[_Answered], half: str) -> Iterator[Figure]:
    ranks = [row.rank for row in judged if row.question.half == half]
    target = at_least(0.8) if half == "held" else None
    yield share(f"answered by the first five records, half {half}", sum(map(bool, ranks)), len(ranks), target)
    yield share("  by the first", ranks.count(1), len(ranks))


def _measured(project: str, rows: Sequence[DayOneQuestion]) -> tuple[list[_Answered], int, int]:
    with TemporaryDirectory(prefix="memd-bench-") as name, temporary_daemon(RECORDS_ONLY) as client:
        folder = Path(new_repository(Path(name) / project))
        for path in files(project):
            copy = folder / path.name
            shutil.copy(path, copy)
            deliver(client, markdown.read(copy, b"bench", {}).sessions)
        settle(client)
        characters = sum(len(path.read_text(encoding="utf-8")) for path in files(project))
        number = sum(record.status in LIVE for record in records(client))
        return [_judge(client, str(folder), row) for row in rows], number, characters


def _judge(client: Client, folder: str, row: DayOneQuestion) -> _Answered:
    hits = client.recall(row.question, cwd=folder, limit=FIRST).hits
    ranks = [rank for rank, hit in enumerate(hits, 1) if has_words(record_text(hit.record), row.words)]
    found = hits[0].record.description[:100] if hits else "nothing"
    return _Answered(row, ranks[0] if ranks else None, found)
