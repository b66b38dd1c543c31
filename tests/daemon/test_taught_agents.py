"""Two agents that are taught different handbooks, over fifty tasks by a driven clock (O3, Q6, R7, T6)."""

import os
from pathlib import Path

import pytest

from memd.benchmarks.taught_agents import SHARED, TASKS, fifty_tasks
from memd.protocol.places import places
from tests.daemon.clocked import COURSES


@pytest.mark.slow
def test_two_taught_agents_over_fifty_tasks_O3_Q6_R7_T6(tmp_path: Path) -> None:
    """Each answers its own field, orders what both read in its own way, keeps what it used, and forgets the rest."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    lived = fifty_tasks(places({**os.environ, "MEMD_HOME": str(home)}, os.getuid()), COURSES)
    assert lived.days[-1] == TASKS
    for agent in lived.agents:
        assert min(agent.own) >= 0.8 * agent.questions, "its own handbook, on every day, within 600 tokens"
        assert agent.untaught <= 0.2 * agent.questions
        assert max(agent.other) <= 0.2 * agent.foreign, "what it was not taught"
        assert set(agent.order_after[: len(agent.uses)]) == set(agent.uses), "its own records first"
        assert set(agent.order_before) == set(agent.order_after) == set(range(len(SHARED)))
        assert set(agent.used) == {"active"} and set(agent.unused) == {"archived"}
        assert set(agent.sections) == {"active"}, "of an open course"
    first, second = lived.agents
    assert first.order_after != second.order_after
