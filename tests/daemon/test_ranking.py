"""Which agent fits a task (O1): its role first, then what became of similar tasks."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memd.clients.python.client import Client
from memd.protocol.agent_ranking import ENOUGH, PastTask, RankCandidate, kernel, ranked
from memd.protocol.event import AnyEvent, Origin, SessionEnded
from tests.conftest import RunningDaemon
from tests.daemon.test_forget_undo import ended
from tests.daemon.test_outcomes import called, said

SIMILARITIES, WEIGHTS = st.floats(-1, 1), st.sampled_from([1.0, 0.5, 0.3, 0.0, -0.5, -1.0, -2.0])
PAST = st.lists(st.builds(PastTask, SIMILARITIES, WEIGHTS, st.integers(0, 9)), max_size=8)
CANDIDATES = st.lists(
    st.builds(RankCandidate, st.sampled_from("abcdef"), SIMILARITIES, PAST, st.integers(0, 3)),
    max_size=6,
    unique_by=lambda candidate: candidate.name,
)


@given(CANDIDATES)
def test_a_score_is_a_chance_within_its_interval_O1(candidates: list[RankCandidate]) -> None:
    ranks = ranked(candidates)
    assert sorted(rank.name for rank in ranks) == sorted(candidate.name for candidate in candidates)
    assert [rank.score for rank in ranks] == sorted((rank.score for rank in ranks), reverse=True)
    for rank in ranks:
        assert 0 <= rank.low <= rank.score <= rank.high <= 1
        assert rank.n_eff <= rank.n and rank.by_role == (rank.n_eff < ENOUGH)


@given(CANDIDATES)
def test_the_order_of_the_candidates_changes_nothing_O1(candidates: list[RankCandidate]) -> None:
    assert ranked(candidates) == ranked(reversed(candidates))


@given(SIMILARITIES, PAST, st.floats(0.31, 1))
def test_a_good_outcome_never_harms_and_a_bad_one_never_helps_O1(
    role: float, past: list[PastTask], similarity: float
) -> None:
    def score(*more: PastTask) -> float:
        return ranked([RankCandidate("a", role, [*past, *more])])[0].score

    assert score(PastTask(similarity, -1.0)) < score() < score(PastTask(similarity, 1.0))


@given(st.floats(-1, 0.3))
def test_an_outcome_of_another_kind_of_task_counts_nothing_O1(similarity: float) -> None:
    (alone,) = ranked([RankCandidate("a", 0.4)])
    assert ranked([RankCandidate("a", 0.4, [PastTask(similarity, -1.0)])]) == [alone]


@given(SIMILARITIES, SIMILARITIES)
def test_what_is_nearer_counts_no_less_O1(one: float, other: float) -> None:
    assert kernel(min(one, other)) <= kernel(max(one, other)) <= 1


def test_recency_and_running_tasks_count_nothing_unless_asked_O1() -> None:
    old, new = PastTask(0.9, 1.0, 9), PastTask(0.9, 1.0, 0)
    assert ranked([RankCandidate("a", 0.4, [old], 3)]) == ranked([RankCandidate("a", 0.4, [new], 0)])
    assert ranked([RankCandidate("a", 0.4, [old])], half=3) != ranked([RankCandidate("a", 0.4, [new])], half=3)
    assert ranked([RankCandidate("a", 0.4, running=1)], running_cost=0.1)[0].score < 0.5


# --- in a home -------------------------------------------------------------------------------------------------------
SLOW = "find out why the SQL query of the invoices list is slow"
BUTTON = "move the button of the login page to the left"


def work(client: Client, session: str, minute: int, events: Sequence[AnyEvent], end: bool = True) -> None:
    closing = [SessionEnded(turn="session-end", at=f"2026-05-11T20:{minute:02}:00Z")] if end else []
    client.capture(Origin(host="claude-code", session=session, live=not end), [*events, *closing])


def open_agents(client: Client) -> None:
    client.open_agent("dba", role="tunes slow SQL queries and writes migrations of the database")
    client.open_agent("painter", role="builds pages, buttons and forms of the user interface")


def names(client: Client, task: str, *agents: str) -> list[str]:
    return [each.agent for each in client.rank_agents(task, agents).agents]


def test_without_outcomes_the_role_decides_and_says_so_O1(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        open_agents(client)
        assert names(client, SLOW) == ["dba", "painter"] and names(client, BUTTON) == ["painter", "dba"]
        for each in client.rank_agents(SLOW).agents:
            assert each.by_role and (each.n, each.n_eff) == (0, 0.0)


def test_outcomes_of_similar_tasks_outweigh_the_role_O1(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        open_agents(client)
        for number in range(5):
            work(client, f"s{number}", number, [said(0), called(number + 1, "dba", SLOW, "error")])
        first = client.rank_agents(SLOW).agents
        assert [each.agent for each in first if each.agent in ("dba", "painter")] == ["painter", "dba"]
        dba = next(each for each in first if each.agent == "dba")
        assert not dba.by_role and dba.n == 5 and dba.recent == -1.0
        assert names(client, BUTTON)[0] == "painter"
        ended(client, client.undo([f"s{number}" for number in range(5)]))
        assert names(client, SLOW) == ["dba", "painter"]


def test_the_hosts_agents_can_be_named_O1(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        open_agents(client)
        assert sorted(names(client, SLOW, "painter", "Explore")) == ["Explore", "painter"]


def test_a_task_under_way_is_shown_until_its_session_ends_O1(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        work(client, "one", 0, [said(0), called(1, "Explore", SLOW, "unknown")], end=False)
        (explorer,) = client.rank_agents(SLOW, ["Explore"]).agents
        assert explorer.running == 1
        work(client, "one", 0, [])
        (explorer,) = client.rank_agents(SLOW, ["Explore"]).agents
        assert explorer.running == 0
