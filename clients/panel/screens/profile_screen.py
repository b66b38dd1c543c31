"""What agents see: the exact text that an agent receives, line by line, and what agents received before (Q1, U8)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.profile import ProfileLine, ProfileText
from ..disputes import disputes
from ..screen import panel_of, scope_of, screen
from ..wording import UNCONFIRMED

BUDGET_TOKENS = 500
_HEADING = "## "


@dataclass(frozen=True)
class ProfileSection:
    """Lines below one heading, each with its record, None for a line that no record made."""

    heading: str
    is_unconfirmed: bool = False
    lines: list[tuple[str, ProfileLine | None]] = field(default_factory=list[tuple[str, ProfileLine | None]])


def sections(profile: ProfileText) -> Iterator[ProfileSection]:
    """Yield the profile by heading: each line between the fences is in one section, in the text's order."""
    recorded = {line.start: line for line in profile.lines}
    section, start = ProfileSection(""), 0
    for raw in profile.text.splitlines(keepends=True):
        line = raw.rstrip("\n")
        if line.startswith(_HEADING) and start not in recorded:
            if section.lines:
                yield section
            section = ProfileSection(line.removeprefix(_HEADING))
        elif section.heading and not line.startswith("</memd-context"):
            section.lines.append((line.removeprefix("- "), recorded.get(start)))
        start += len(raw)
    if section.lines:
        yield section


def told_apart(shown: list[ProfileSection]) -> list[ProfileSection]:
    """Return the sections, with the second of the same heading named as unconfirmed where none of its lines is
    confirmed."""
    headings = [section.heading for section in shown]
    return [
        replace(section, is_unconfirmed=section.heading in headings[:place] and _is_unconfirmed(section))
        for place, section in enumerate(shown)
    ]


def _is_unconfirmed(section: ProfileSection) -> bool:
    return all(line is not None and line.status in UNCONFIRMED for _, line in section.lines)


async def show(request: Request) -> Response:
    """Show the profile as a page, as exact text, or the texts that agents received before."""
    client, scope = panel_of(request).client, scope_of(request)
    view, chosen = request.query_params.get("view", "page"), request.query_params.get("line", "")
    if view == "before":
        given = await client.injected(limit=20)
        return await screen(request, "given.html", "What agents received", view=view, given=given)
    agent = request.query_params.get("agent", "")
    profile, disputed = await asyncio.gather(
        client.profile(**scope.readable, **scope.times, budget_tokens=BUDGET_TOKENS, agent=agent),
        disputes(panel_of(request)),
    )
    known = {line.id for line in profile.lines}
    is_opened = chosen in known
    chosen = chosen if is_opened else next(iter(profile.ids), "")
    explained = await client.why(chosen) if chosen else None
    return await screen(
        request,
        "profile.html",
        "What agents see",
        view=view,
        profile=profile,
        sections=told_apart(list(sections(profile))),
        chosen=chosen,
        is_opened=is_opened,
        came_from=request.query_params.get("from", ""),
        disputed=disputed,
        explained=explained,
        budget=BUDGET_TOKENS,
    )


ROUTES = [Route("/", show)]
