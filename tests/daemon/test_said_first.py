"""Commands that stood in a tool's result before an agent ran them, in the drafts of skills (K1)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from memd.daemon.services.skills.mining import procedures
from memd.daemon.services.skills.rendering import RenderedProcedure, draft
from memd.daemon.services.skills.skill_text import skill_text, why_refused
from memd.daemon.services.skills.units import SessionEvents, first_said, work_units
from memd.protocol.event import AnyEvent, SaidBy, ToolCalled
from tests.daemon.test_procedures import release, run, session

PAGE = "a page said it first"
OUTSIDE = "a file from outside the project said it first"


def marked(events: SessionEvents, marks: Mapping[str, SaidBy]) -> SessionEvents:
    """A session whose calls with some words carry a mark."""

    def with_mark(event: AnyEvent) -> AnyEvent:
        found = next((mark for words, mark in marks.items() if words in getattr(event, "arguments", "")), "")
        return msgspec.structs.replace(event, said_by=found) if isinstance(event, ToolCalled) else event

    return SessionEvents(events.document, [with_mark(event) for event in events.events])


def drafted(*sessions: SessionEvents) -> RenderedProcedure:
    units = list(work_units(sessions))
    (procedure,) = procedures(units)
    return draft(procedure, (), lambda word: False, said=first_said(units))


def risks(made: RenderedProcedure) -> dict[str, str]:
    return {step.text.strip("`").split()[-1]: step.risk for step in made.steps if step.risk}


def test_a_call_without_a_mark_is_as_before_K1() -> None:
    old = ToolCalled(turn="t", at="2026-03-04T09:00:00Z", name="Bash", arguments="{}", outcome="ok")
    body = msgspec.json.encode(old)
    assert b"said_by" not in body and msgspec.json.decode(body, type=AnyEvent) == old  # type: ignore[arg-type]
    new = msgspec.structs.replace(old, said_by="page")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(new), type=AnyEvent) == new  # type: ignore[arg-type]
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body.replace(b'"outcome"', b'"said_by":"me","outcome"'), type=AnyEvent)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mark", "why"), [("page", PAGE), ("outside", OUTSIDE)])
def test_a_step_that_came_from_outside_is_left_out_K1(mark: SaidBy, why: str) -> None:
    """The first run decides: the later sessions read no page, and no page is needed to run a known command again."""
    poisoned = marked(release("a", 1), {"make bundle": mark})
    made = drafted(poisoned, release("b", 2), release("c", 3))
    assert risks(made) == {"bundle": why}
    assert "make bundle" not in skill_text(made, "id", "") and not why_refused(made, skill_text(made, "id", ""))


def test_a_page_that_says_what_was_done_before_blocks_nothing_K1() -> None:
    made = drafted(release("a", 1), release("b", 2), marked(release("c", 3), {"make bundle": "page"}))
    assert risks(made) == {} and not any(step.document for step in made.steps)


def test_a_first_run_outside_of_the_rounds_counts_K1() -> None:
    trial = marked(session("t", 1, "try it", *run("!make bundle"), ("stop",)), {"make bundle": "page"})
    assert risks(drafted(trial, release("a", 2), release("b", 3), release("c", 4))) == {"bundle": PAGE}


def test_orders_of_a_page_alone_make_no_draft_K1() -> None:
    sessions = [
        marked(release(name, day), {"scripts": "page", "make": "page"}) for day, name in enumerate(("a", "b", "c"), 1)
    ]
    made = drafted(*sessions)
    assert [step.risk for step in made.steps] == [PAGE] * 4 and PAGE in why_refused(made, skill_text(made, "id", ""))


def test_a_step_that_a_document_of_the_project_said_is_shown_as_such_K1() -> None:
    made = drafted(marked(release("a", 1), {"make bundle": "file"}), release("b", 2), release("c", 3))
    assert risks(made) == {} and [step.text for step in made.steps if step.document] == ["`make bundle`"]
    assert "make bundle" in skill_text(made, "id", "")


def test_no_pitfall_names_what_a_page_said_K1() -> None:
    def failing(name: str, day: int) -> SessionEvents:
        fixed = run(
            "./scripts/freeze.sh 1", "!make bundle", "make unlock", "make bundle", "make smoke", "./scripts/ship.sh"
        )
        return session(name, day, f"Please ship version 1.{day}", *fixed)

    honest = drafted(failing("a", 1), failing("b", 2), failing("c", 3))
    assert "make unlock" in str(honest.pitfalls)
    poisoned = marked(failing("a", 1), {"make unlock": "page"})
    assert "unlock" not in str(drafted(poisoned, failing("b", 2), failing("c", 3)).pitfalls)


def test_a_last_step_that_fails_is_no_pitfall_K1() -> None:
    last = ("./scripts/freeze.sh 1", "make bundle", "make smoke", "!./scripts/ship.sh")
    broken = session("d", 4, "Please ship version 1.4", *run(*last))
    fixed = SessionEvents("d", [*broken.events, *session("d2", 4, ("check", "passed")).events])
    assert drafted(release("a", 1), release("b", 2), release("c", 3), fixed).pitfalls == ()
