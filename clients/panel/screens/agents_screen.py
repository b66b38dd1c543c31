"""Agents with a memory of their own: role, prompt, what they were taught and what became of their tasks; for a task,
which one fits (O1-O3, O5). A terminal changes them, never this page."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.agent_outcomes import OUTCOME_WORDS, AgentOutcome
from ....protocol.courses import AgentState, ChapterState, share_known
from ...python.async_client import AsyncClient
from ..screen import number_of, panel_of, screen

PAGE = 6
"""Agents on one screen, at most."""

PROMPT_TEXT, GAPS, TASKS = 4_000, 12, 12
"""Characters of a prompt, open gaps of a course, and newest tasks that are shown, at most."""

TASK_TEXT = 4000
"""Characters of a task that is ranked for, at most."""

AGENT = "agent/"


@dataclass(frozen=True)
class ShownAgent:
    """An agent with what became of its tasks, the newest first."""

    state: AgentState
    outcomes: tuple[AgentOutcome, ...]

    @property
    def name(self) -> str:
        """Its name in its sessions."""
        return self.state.pool.removeprefix(AGENT)

    @property
    def ends(self) -> Sequence[tuple[str, int]]:
        """How often each outcome was, the most frequent first."""
        return Counter(outcome.outcome for outcome in self.outcomes).most_common()


def chapter_line(chapter: ChapterState) -> str:
    """Return what each test of a chapter brought, the oldest first."""
    words = {"before": "untaught", "after": "after reading", "review": "asked again"}
    tests = chapter.tests if len(chapter.tests) <= 6 else (*chapter.tests[:2], *chapter.tests[-4:])
    shown = (f"{words[test.test]} {test.known} of {test.questions}" for test in tests)
    return ", ".join(shown)


async def _agent(client: AsyncClient, name: str) -> ShownAgent:
    state, told = await asyncio.gather(client.agent(name), client.explain_agent(name))
    return ShownAgent(state, told.outcomes)


async def show(request: Request) -> Response:
    """Show the agents, and, for a task, their order."""
    panel, task = panel_of(request), request.query_params.get("task", "").strip()[:TASK_TEXT]
    pools = await panel.pools()
    names = [pool.pool.removeprefix(AGENT) for pool in pools if pool.pool.startswith(AGENT)]
    start = number_of(request, "from", 0)
    agents = await asyncio.gather(*(_agent(panel.client, name) for name in names[start : start + PAGE]))
    ranking = await panel.client.rank_agents(task) if task else None
    return await screen(
        request,
        "agents.html",
        "Agents",
        pools=pools,
        is_scoped=False,
        agents=agents,
        task=task,
        ranked=ranking.agents if ranking else (),
        words=OUTCOME_WORDS,
        most_tasks=TASKS,
        total=len(names),
        start=start,
        further=start + PAGE if len(names) > start + PAGE else 0,
        prompt_text=PROMPT_TEXT,
        most_gaps=GAPS,
        known=share_known,
        chapter_line=chapter_line,
    )


ROUTES = [Route("/agents", show)]
