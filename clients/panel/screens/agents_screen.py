"""Agents with a memory of their own: role, prompt and what they were taught (O3, O5). A terminal changes them, never
this page."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.courses import AgentState, ChapterState, share_known
from ...python.async_client import AsyncClient
from ..screen import number_of, panel_of, screen

PAGE = 6
"""Agents on one screen, at most."""

PROMPT_TEXT, GAPS = 4_000, 12
"""Characters of a prompt, and open gaps of a course, that are shown, at most."""

AGENT = "agent/"


def chapter_line(chapter: ChapterState) -> str:
    """Return what each test of a chapter brought, the oldest first."""
    words = {"before": "untaught", "after": "after reading", "review": "asked again"}
    tests = chapter.tests if len(chapter.tests) <= 6 else (*chapter.tests[:2], *chapter.tests[-4:])
    shown = (f"{words[test.test]} {test.known} of {test.questions}" for test in tests)
    return ", ".join(shown)


async def _states(client: AsyncClient, names: list[str]) -> list[AgentState]:
    return list(await asyncio.gather(*(client.agent(name) for name in names)))


async def show(request: Request) -> Response:
    """Show the agents."""
    panel = panel_of(request)
    pools = await panel.pools()
    names = [pool.pool.removeprefix(AGENT) for pool in pools if pool.pool.startswith(AGENT)]
    start = number_of(request, "from", 0)
    states = await _states(panel.client, names[start : start + PAGE])
    return await screen(
        request,
        "agents.html",
        "Agents",
        pools=pools,
        is_scoped=False,
        agents=states,
        total=len(names),
        start=start,
        further=start + PAGE if len(names) > start + PAGE else 0,
        prompt_text=PROMPT_TEXT,
        most_gaps=GAPS,
        known=share_known,
        chapter_line=chapter_line,
    )


ROUTES = [Route("/agents", show)]
