"""Checks and commits of a session reach the records that it used: task success and prevented error (T3, T4)."""

import time
from typing import Any

import pytest

from memd.daemon.services.lifecycle.task_outcome import task_outcome
from memd.protocol.event import AnyEvent, Captured, Checked, Committed, Origin, Said, SessionEnded
from memd.protocol.instant import micros

FACT = "The staging database of the orchard listens on port 6543 at heron.example."


def at(minute: int) -> str:
    return f"2026-11-02T09:{minute:02}:00Z"


def check(minute: int, state: Any, what: str = "pytest") -> Checked:
    return Checked(turn=f"c{minute}{what}#check", at=at(minute), what=what, state=state)


def commit(minute: int) -> Committed:
    return Committed(turn=f"g{minute}#commit-1", at=at(minute), id="abc1234", subject="fix the port", files=1)


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([], ""),
        ([check(1, "passed")], ""),
        ([check(9, "passed")], "success"),
        ([commit(9)], "success"),
        ([commit(1)], ""),
        ([check(1, "failed"), check(9, "passed")], "prevented"),
        ([check(1, "failed"), check(9, "passed", "ruff")], ""),
        ([check(1, "failed"), commit(9)], ""),
        ([check(9, "passed"), check(10, "failed")], ""),
        ([check(9, "failed"), check(10, "passed")], "success"),
        ([check(9, "unclear")], ""),
        ([check(1, "failed"), check(9, "unclear"), commit(10)], ""),
        ([check(8, "passed"), check(9, "failed", "ruff")], ""),
    ],
)
def test_the_outcome_of_a_task_after_a_use_in_minute_five_T4(events: list[AnyEvent], outcome: str) -> None:
    captures = [Captured(document="h:s", event=event) for event in events]
    assert task_outcome(captures, micros(at(5))) == outcome


@pytest.mark.parametrize(
    ("states", "impact"), [(("failed", "passed"), 2.0), (("passed", "passed"), 1.5), (("passed", "failed"), 0.0)]
)
def test_a_record_that_a_session_used_gains_by_its_checks_T3_T4(
    daemon: Any, states: tuple[Any, Any], impact: float
) -> None:
    origin = Origin(host="claude-code", session="one", cwd="/", live=True)
    with daemon.client() as client:
        id = client.remember(FACT).record.id
        daemon.settle()
        client.capture(origin, [Said(turn="1", at=at(0), role="user", text="Where does the database listen?")])
        assert client.recall("where does the staging database listen", cwd="/").hits
        used = Said(turn="2", at=at(5), role="assistant", text=FACT)
        client.capture(origin, [check(1, states[0]), used, check(9, states[1])])
        client.capture(origin, [SessionEnded(turn="end", at=at(10))])
        daemon.settle()
        end, signal = time.monotonic() + 90, client.list().records[0].signal
        while time.monotonic() < end and (signal.access_count, signal.impact) != (1, impact):
            time.sleep(0.1)
            signal = next(record.signal for record in client.list().records if record.id == id)
        assert (signal.access_count, signal.impact) == (1, impact)
