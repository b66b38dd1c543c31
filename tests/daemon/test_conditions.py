"""Change conditions: what would make a belief doubtful is checked, and the user decides (T12, R5, G4)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.daemon.forgetting_rules import Rules
from memd.daemon.services.lifecycle.review import ReviewJob, condition
from memd.protocol.event import Origin
from memd.protocol.operation import Added, ChangeDecided, Decision, Merged, Neighbour, SessionOpened
from memd.protocol.record import Evidence, Record, Span
from memd.protocol.record import Review as Dates

from .living import Running, record

BELIEF = {"tags": ("convention",), "confidence": 0.8, "volatility": "stable"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    living = Running(tmp_path / "data")
    yield living
    living.close()


def look(running: Running, rules: Rules | None = None) -> int:
    kept = rules or Rules(review_days=0, stable_review_days=0)  # no review is overdue
    return ReviewJob(running.stores, running.writer, lambda: kept, running.world.now).run()


def against(running: Running, number: int, session: str, at: str, project: str = "", **more: object) -> None:
    """A statement that was left for review beside record 0, said in this session."""
    document = f"h:{session}"
    origin = Origin(host="h", session=session)
    one = record(number, needs_review=True, **more)
    said = replace(one.provenance, source=document, said_at=at, spans=(Span(document, "t", 0, 1),), trust="assistant")
    decision = Decision(action="add", reason="against id0", neighbours=(Neighbour("id0", 1, 0.9, "contradicts"),))
    opened = SessionOpened(document=document, origin=origin, project=project, at=at)
    running.stores.commit([opened, Added(record=replace(one, provenance=said), decision=decision)])


def believed(running: Running) -> Record:
    found = running.stores.records.get("id0")
    assert found is not None
    return found


def test_three_sessions_on_three_days_that_say_otherwise_make_a_belief_doubtful_T12(running: Running) -> None:
    running.stores.commit([Added(record=record(0, **BELIEF), decision=Decision(action="add", reason="a test"))])
    against(running, 1, "one", "2026-02-01T10:00:00Z")
    against(running, 2, "two", "2026-02-02T10:00:00Z")
    against(running, 3, "two", "2026-02-03T10:00:00Z")
    assert look(running) == 0, "two sessions"
    against(running, 4, "three", "2026-02-02T18:00:00Z")
    assert look(running) == 1 and look(running) == 0, "once"
    doubted = believed(running)
    assert doubted.status == "active" and doubted.confidence == pytest.approx(0.4)
    (asked,) = running.stores.inbox.list()
    assert (asked.what.record, asked.what.against, asked.what.what) == ("id0", "id3", "conflict")
    assert "3 sessions on different days" in asked.what.reason
    against(running, 5, "four", "2026-02-05T10:00:00Z")
    assert look(running) == 1, "one more that speaks against it is one more reason"


def test_sessions_of_one_day_count_once_T12(running: Running) -> None:
    running.stores.commit([Added(record=record(0, **BELIEF), decision=Decision(action="add", reason="a test"))])
    for number in range(1, 5):
        against(running, number, f"s{number}", "2026-02-01T10:00:00Z")
    assert look(running) == 0


def test_what_was_said_before_the_last_confirmation_counts_no_more_T12(running: Running) -> None:
    running.stores.commit([Added(record=record(0, **BELIEF), decision=Decision(action="add", reason="a test"))])
    for number in range(1, 4):
        against(running, number, f"s{number}", f"2026-02-0{number}T10:00:00Z")
    span = Span("h:later", "t", 0, 1)
    again = Evidence(kind="restated", span=span, trust="user", at="2026-03-01T00:00:00Z")
    running.stores.commit([Merged(id="id0", evidence=again, decision=Decision(action="noop", reason="again"))])
    assert look(running) == 0


def test_what_the_user_rejected_and_what_gives_orders_speaks_against_nothing_T12_P19(running: Running) -> None:
    running.stores.commit([Added(record=record(0, **BELIEF), decision=Decision(action="add", reason="a test"))])
    for number in range(1, 4):
        against(running, number, f"s{number}", f"2026-02-0{number}T10:00:00Z")
    assert look(running) == 1
    (asked,) = running.stores.inbox.list()
    running.stores.commit([ChangeDecided(id=asked.what.id, accepted=False)])
    against(running, 4, "s4", "2026-02-04T10:00:00Z", flags=("injection",))
    assert look(running) == 0


def test_a_condition_of_its_own_counts_projects_S0(running: Running) -> None:
    own = Dates(change_condition="If 2+ independent projects deviate from this workflow, downgrade or deprecate")
    running.stores.commit(
        [Added(record=record(0, **BELIEF, review=own), decision=Decision(action="add", reason="a test"))]
    )
    for number, project in enumerate(("project/a", "project/a", "project/b"), 1):
        assert look(running) == 0
        against(running, number, f"s{number}", f"2026-02-0{number}T10:00:00Z", project)
    assert look(running) == 1
    assert believed(running).review == replace(own, against=2)


def test_preferences_and_what_is_held_on_to_have_one_and_facts_none_G4() -> None:
    rules = Rules()
    assert condition(record(0, tags=("preference",)), rules) is not None
    assert condition(record(0, tags=("fact", "principle")), rules) is not None
    assert condition(record(0, tags=("fact",), pinned=True), rules) is not None
    assert condition(record(0, tags=("fact",)), rules) is None
    assert condition(record(0, tags=("preference",)), Rules(change_sessions=0)) is None
