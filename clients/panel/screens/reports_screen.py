"""The report of a week, and the weeks beside it (G6)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.weekly_report import TITLES, ReportLine, SectionName, WeeklyReport
from ..screen import panel_of, screen

RECORD_ID = 26
"""Characters of a record's id."""


async def show(request: Request) -> Response:
    """Show the report of the week in the address, of the present one without."""
    told = await panel_of(request).client.report(request.query_params.get("week", ""))
    sections = [
        (TITLES[section.name], section, [(line, _href(section.name, line)) for line in section.lines])
        for section in told.sections
    ]
    return await screen(
        request,
        "reports.html",
        "Reports",
        is_scoped=False,
        told=told,
        sections=sections,
        period=_period(told),
        is_over=datetime.fromisoformat(told.until) <= datetime.now(UTC),
    )


def _href(section: SectionName, line: ReportLine) -> str:
    """Return the address of what a line speaks of, "" for none."""
    id = line.ids[0] if line.ids else ""
    if section == "needs":
        return f"/inbox?{urlencode({'at': id})}"
    if section == "work":
        return f"/activity/session?{urlencode({'id': id})}" if line.level and ":" in id else ""
    return f"/memories/{id}" if len(id) == RECORD_ID and id.isalnum() else ""


def _period(told: WeeklyReport) -> str:
    """Return the first and the last day of a week."""
    first = date.fromisoformat(told.since[:10])
    last = date.fromisoformat(told.until[:10]) - timedelta(days=1)
    return f"{first:%A}, {first.day} {first:%B} {first.year} to {last:%A}, {last.day} {last:%B} {last.year}"


ROUTES = [Route("/reports", show)]
