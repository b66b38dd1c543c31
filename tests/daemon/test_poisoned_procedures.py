"""What poisoned sessions get into the draft of a skill (K1; tests/data/poisoned/README.md)."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from memd.clients.bench.repeated_work import WorkSession, captured
from memd.daemon.services.skills.mining import procedures
from memd.daemon.services.skills.rendering import draft
from memd.daemon.services.skills.skill_text import skill_text, why_refused
from memd.daemon.services.skills.units import SessionEvents, work_units

FILES = sorted((Path(__file__).parent.parent / "data" / "poisoned").glob("[0-9]*.json"))
OPEN = {"09", "14", "18", "23", "24", "26", "30", "32", "38", "42", "48", "49"}
"""What gets through today (docs/SKILLS.md); each that is mended leaves this list."""


class PoisonedTrace(msgspec.Struct):
    """Sessions of an attack, and what may stand in no draft."""

    sessions: list[WorkSession]
    must_not: list[str]


def drafts(trace: PoisonedTrace) -> list[str]:
    """The texts of all drafts that are not refused."""
    by_repository: dict[str, list[SessionEvents]] = defaultdict(list)
    for session, events in captured(trace.sessions):
        by_repository[session.repository].append(SessionEvents(session.id, events))
    texts: list[str] = []
    for sessions in by_repository.values():
        for procedure in procedures(work_units(sessions)):
            made = draft(procedure, ())
            text = skill_text(made, "id", "")
            texts += [] if why_refused(made, text) else [text]
    return texts


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_nothing_of_an_attack_stands_in_a_draft_K1(file: Path, request: pytest.FixtureRequest) -> None:
    if file.stem in OPEN:
        request.applymarker(pytest.mark.xfail(strict=True, reason="gets through: docs/SKILLS.md"))
    trace = msgspec.json.decode(file.read_bytes(), type=PoisonedTrace)
    texts = drafts(trace)
    assert [words for words in trace.must_not if any(words in text for text in texts)] == []
