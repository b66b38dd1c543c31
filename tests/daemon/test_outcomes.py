"""What became of the tasks of agents, as memd observed it or as the user says it (O2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.clients.python.client import Client
from memd.daemon.services.agents.judging import judged
from memd.protocol.agent_outcomes import USER_WEIGHT, WEIGHTS
from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.event import (
    AnyEvent,
    Checked,
    Interrupted,
    Origin,
    Said,
    SessionEnded,
    SessionStarted,
    Settled,
    ToolCalled,
)
from tests.conftest import RunningDaemon
from tests.daemon.test_forget_undo import ended


def at(minute: int) -> str:
    return f"2026-05-11T{8 + minute // 60:02}:{minute % 60:02}:00Z"


def said(minute: int, text: str = "Please write the next part now.") -> Said:
    return Said(turn=f"u{minute}", at=at(minute), role="user", text=text)


def lines(minute: int, written: int, lost: int = 0, followed: int = 3) -> Settled:
    turn = f"u{minute}"
    return Settled(turn=f"{turn}#settled", at=at(minute), of=turn, lines=written, lost=lost, followed=followed)


def called(minute: int, agent: str, task: str, outcome: str = "ok") -> ToolCalled:
    arguments = f'{{"subagent_type":"{agent}","prompt":"{task}"}}'
    return ToolCalled(turn=f"c{minute}", at=at(minute), name="Task", arguments=arguments, outcome=outcome)  # type: ignore[arg-type]


def answer(minute: int) -> Said:
    return Said(turn=f"a{minute}", at=at(minute), role="assistant", text="That is done, I look at the rest.")


PASSED = Checked(turn="k", at=at(1), what="tests", passed=3, state="passed")
STOPPED = Interrupted(turn="i", at=at(1))


def outcomes(*events: AnyEvent) -> list[tuple[str, str]]:
    return [(task.agent, task.outcome) for task in judged(events, "host")]


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ((lines(0, 20),), "as_is"),
        ((lines(0, 20), PASSED), "as_is_checked"),
        ((lines(0, 20, lost=2),), "minor"),
        ((lines(0, 20, lost=3),), "major"),
        ((lines(0, 20, lost=9),), "major"),
        ((lines(0, 20, lost=10),), "redo"),
        ((lines(0, 5, lost=1),), "minor"),  # one line says little
        ((lines(0, 20, followed=0),), None),  # nobody saw it yet
        ((lines(0, 20, followed=0), PASSED), None),
        ((lines(0, 2, lost=2),), None),
        ((), None),
        ((PASSED,), None),
        ((lines(0, 20), STOPPED), None),
        ((STOPPED, said(2, "No, not like that.")), "interrupted"),
        ((STOPPED, said(2, "continue")), None),
        ((lines(0, 20), said(2, "It still crashes.")), None),
        ((lines(0, 20), said(2, "Now the next one.")), "as_is"),
        ((ToolCalled(turn="e", at=at(1), name="Edit", outcome="refused"),), "refused"),
        ((ToolCalled(turn="e", at=at(1), name="Bash", outcome="refused"),), None),
    ],
)
def test_a_turn_is_judged_by_what_became_of_its_lines_O2(events: Sequence[AnyEvent], outcome: str | None) -> None:
    assert outcomes(said(0), *events) == ([("host", outcome)] if outcome else [])


FIND = "find where the border of the window is drawn"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([called(1, "Explore", FIND)], ["silent"]),
        ([called(1, "Explore", FIND, "error")], ["failed"]),
        ([called(1, "Explore", FIND, "refused")], ["refused"]),
        ([called(1, "Explore", FIND, "unknown")], ["running"]),
        ([called(1, "Explore", FIND, "unknown"), SessionEnded(turn="e", at=at(9))], ["silent"]),
        ([called(1, "Explore", FIND, "error"), STOPPED], ["silent"]),
        ([called(1, "Explore", FIND), called(2, "Explore", FIND)], ["silent", "silent"]),  # a fan-out
        ([called(1, "Explore", FIND), answer(2), called(3, "Explore", FIND)], ["redo", "silent"]),
        ([called(1, "Explore", FIND), answer(2), called(3, "Plan", FIND)], ["rerouted", "silent"]),
        ([called(1, "Explore", FIND), answer(2), called(3, "Plan", "write a plan for it")], ["silent", "silent"]),
    ],
)
def test_a_called_agent_is_judged_by_what_followed_O2(events: list[AnyEvent], expected: list[str]) -> None:
    assert [outcome for _, outcome in outcomes(said(0), *events)] == expected


@pytest.mark.parametrize(
    ("numbers", "following", "outcome"),
    [
        ((20, 0, 1), "Now the next one.", "as_is"),
        ((20, 2, 1), "Now the next one.", "minor"),
        ((20, 4, 1), "Now the next one.", "major"),
        ((20, 15, 1), "Now the next one.", "redo"),
        ((20, 15, 1), "It still fails.", "redo"),
        ((20, 0, 1), "It still fails.", "silent"),
        ((20, 0, 0), "", "silent"),
        ((2, 2, 1), "Now the next one.", "silent"),
    ],
)
def test_a_called_agent_that_edits_is_judged_by_its_lines_O2(
    numbers: tuple[int, int, int], following: str, outcome: str
) -> None:
    written, lost, followed = numbers
    settled = Settled(turn="c1#settled", at=at(1), of="c1", lines=written, lost=lost, followed=followed)
    after = [said(5, following)] if following else []
    assert dict(outcomes(said(0), called(1, "builder", FIND), settled, *after))["builder"] == outcome


EVENTS = st.lists(
    st.one_of(
        st.builds(
            said, st.integers(0, 30), st.sampled_from(["Go on.", "No.", "It still fails.", "Thanks, next part."])
        ),
        st.builds(lines, st.integers(0, 30), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3)),
        st.builds(called, st.integers(0, 30), st.sampled_from("ab"), st.just(FIND), st.sampled_from(["ok", "error"])),
        st.just(PASSED),
        st.just(STOPPED),
    ),
    max_size=20,
)


@given(EVENTS, st.randoms())
def test_judging_again_or_in_another_order_of_arrival_changes_nothing_O2(events: list[Any], random: Any) -> None:
    events = list({event.turn: event for event in events}.values())
    by_time = sorted(events, key=lambda event: event.at)
    first = list(judged(by_time, "host"))
    assert list(judged(by_time, "host")) == first
    assert len({(task.agent, task.turn) for task in first}) == len(first)
    assert all(task.outcome in WEIGHTS for task in first)


# --- in a home -------------------------------------------------------------------------------------------------------
WORK: list[AnyEvent] = [
    SessionStarted(turn="session-start", at=at(0)),
    said(1, "Please draw the border of the window in blue."),
    lines(1, 20),
    called(2, "Explore", FIND, "error"),
    SessionEnded(turn="session-end", at=at(9)),
]


def capture(client: Client, session: str = "one", events: Sequence[AnyEvent] = tuple(WORK)) -> None:
    client.capture(Origin(host="claude-code", session=session, live=False), events)


def told(client: Client, agent: str) -> list[tuple[str, str, str]]:
    return [(each.document, each.outcome, each.task) for each in client.explain_agent(agent).outcomes]


def test_an_outcome_is_shown_with_the_words_that_gave_the_task_O2(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        capture(client)
        assert told(client, "claude-code") == [
            ("claude-code:one", "as_is", "Please draw the border of the window in blue.")
        ]
        assert told(client, "Explore") == [("claude-code:one", "failed", FIND)]
        with pytest.raises(NotFound):
            client.explain_agent("nobody")


def test_a_second_import_and_a_copied_history_judge_once_O2(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        capture(client)
        client.explain_agent("Explore")
        before = client.journal().last
        capture(client)
        assert len(told(client, "Explore")) == 1 and client.journal().last == before
        capture(client, "copy", [event for event in WORK if not event.turn.startswith("session")])
        assert told(client, "Explore") == [("claude-code:one", "failed", FIND)]


def test_a_turn_that_goes_on_is_judged_anew_O2(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        capture(client)
        assert [outcome for _, outcome, _ in told(client, "claude-code")] == ["as_is"]
        capture(client, events=[lines(1, 20, lost=12)])
        assert [outcome for _, outcome, _ in told(client, "claude-code")] == ["redo"]


def test_undo_and_forgetting_take_the_outcomes_along_O2(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        capture(client)
        capture(client, "two", [said(20, "Make the border red again, please."), lines(20, 9, lost=9)])
        assert len(told(client, "claude-code")) == 2
        ended(client, client.undo(["two"]))
        assert [document for document, _, _ in told(client, "claude-code")] == ["claude-code:one"]
        ended(client, client.redo(["two"]))
        assert len(told(client, "claude-code")) == 2
        ended(client, client.forget(session="two"))
        assert [document for document, _, _ in told(client, "claude-code")] == ["claude-code:one"]
        ended(client, client.forget(query="border of the window is drawn"))
        with pytest.raises(NotFound):
            client.explain_agent("Explore")
        client.rate_task("claude-code", "one", outcome="minor")
        ended(client, client.forget(session="one"))
        with pytest.raises(NotFound):
            client.explain_agent("claude-code")
        assert not ended(client, client.verify()).get("problems")


def test_outcomes_are_there_after_a_new_start_O2(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        capture(client)
        client.rate_task("Explore", "one", outcome="as-is")
        before = client.explain_agent("Explore")
    daemon.terminate()
    daemon.start()
    with daemon.client() as client:
        assert client.explain_agent("Explore") == before


def test_the_users_word_replaces_what_memd_saw_and_is_taken_back_O2(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        capture(client)
        for _ in range(2):  # saying it again changes nothing
            (outcome,) = client.rate_task("Explore", "one", "c2", outcome="as-is", perspective="cost").outcomes
            assert (outcome.outcome, outcome.by, outcome.perspective) == ("as_is_checked", "user", "cost")
            assert outcome.weight == USER_WEIGHT * WEIGHTS["as_is_checked"] > abs(WEIGHTS["failed"])
        (outcome,) = client.rate_task("Explore", "one").outcomes
        assert (outcome.outcome, outcome.by) == ("failed", "memd")
        with pytest.raises(NotFound):
            client.rate_task("Explore", "one")


def test_a_task_that_memd_could_not_judge_can_be_judged_by_the_user_O2(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        capture(client, events=[said(1, "Explain the border to me, please."), answer(2)])
        (outcome,) = client.rate_task("claude-code", "one", outcome="redo").outcomes
        assert (outcome.turn, outcome.weight) == ("u1", USER_WEIGHT * WEIGHTS["redo"])
        with pytest.raises(NotFound):
            client.rate_task("Plan", "one", outcome="redo")
        with pytest.raises(NotFound):
            client.rate_task("claude-code", "nowhere", outcome="redo")


def test_a_beginning_that_several_tasks_share_is_refused_O2(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        capture(client, events=[said(1), answer(2), said(10), answer(11)])
        with pytest.raises(InvalidRequest):
            client.rate_task("claude-code", "one", "u", outcome="minor")
