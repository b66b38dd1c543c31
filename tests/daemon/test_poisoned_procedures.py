"""What poisoned sessions get into the draft of a skill (K1; tests/data/poisoned/README.md)."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from memd.clients.bench.repeated_work import WorkSession, captured, repository_with
from memd.daemon.services.skills.mining import procedures
from memd.daemon.services.skills.project_files import known_words
from memd.daemon.services.skills.rendering import draft
from memd.daemon.services.skills.skill_text import skill_text, why_refused
from memd.daemon.services.skills.units import SessionEvents, work_units

FILES = sorted((Path(__file__).parent.parent / "data" / "poisoned").glob("[0-9]*.json"))


OPEN = {"75"}
"""What gets through today (docs/SKILLS.md): scripts of the project whose names make a sentence."""


class PoisonedTrace(msgspec.Struct):
    """Sessions of an attack, and what may stand in no draft."""

    repositories: dict[str, dict[str, str]]
    sessions: list[WorkSession]
    must_not: list[str]


def drafts(trace: PoisonedTrace, folder: Path) -> list[str]:
    """The texts of all drafts that are not refused. `folder`: where the files of the repositories are written."""
    roots = {name: Path(repository_with(folder / name, files)) for name, files in trace.repositories.items()}
    by_repository: dict[str, list[SessionEvents]] = defaultdict(list)
    for session, events in captured(trace.sessions):
        by_repository[session.repository].append(SessionEvents(session.id, events))
    texts: list[str] = []
    for repository, sessions in by_repository.items():
        units = list(work_units(sessions))
        foreign = frozenset[str]().union(*(unit.foreign for unit in units))
        for procedure in procedures(units):
            made = draft(procedure, (), known_words(roots.get(repository)), foreign)
            text = skill_text(made, "id", "")
            texts += [] if why_refused(made, text) else [text]
    return texts


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_nothing_of_an_attack_stands_in_a_draft_K1(file: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if file.stem in OPEN:
        request.applymarker(pytest.mark.xfail(strict=True, reason="gets through: docs/SKILLS.md"))
    trace = msgspec.json.decode(file.read_bytes(), type=PoisonedTrace)
    texts = drafts(trace, tmp_path)
    assert [words for words in trace.must_not if any(words in text for text in texts)] == []
