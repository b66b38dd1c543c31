"""What fades: the forecast of what goes to the archive after so many days of work, and what agents never used (T9)."""

from __future__ import annotations

import asyncio
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.decay import FadingList
from ..screen import panel_of, scope_of, screen

LISTED, NEVER_USED = 60, 20
DAYS, LONGEST = 30, 120
"""Days of work that the forecast first looks ahead, and at most."""
TICKS = (0, 30, 60, 90)
"""Days of work that the axis names."""

WIDTH, HEIGHT = 960, 120
"""Of the drawing, in its own units."""


class AxisTick(NamedTuple):
    """A place of the axis: its days of work, the day on which they are over at the earliest, and the percent of the
    memories that would be in the archive by then."""

    days: int
    earliest: date
    percent: int


async def show(request: Request) -> Response:
    """Show the forecast for `days` days of work."""
    client, scope = panel_of(request).client, scope_of(request)
    text = request.query_params.get("days", "")
    days = min(int(text), LONGEST) if text.isdecimal() else DAYS
    pools = scope.readable.get("pools", ())
    fading, unused = await asyncio.gather(
        client.fading(**scope.readable, limit=LISTED, after_days=days), client.never_used(pools, limit=NEVER_USED)
    )
    groups = [(left, list(rows)) for left, rows in groupby(fading.records, key=lambda row: int(row.days_left))]
    return await screen(
        request,
        "fading.html",
        "Fading",
        days=days,
        longest=LONGEST,
        fading=fading,
        groups=groups,
        unused=unused.records,
        bars=_bars(fading),
        ticks=[_tick(fading, at) for at in TICKS],
        earliest=_tick(fading, days).earliest,
        highest=max((found.records for found in fading.histogram if found.days < LONGEST), default=0),
        width=WIDTH,
        height=HEIGHT,
    )


def _bars(fading: FadingList) -> list[tuple[float, float, float, int, int]]:
    """Return each bin within `LONGEST` days as x, width and height of its bar, its days and its records."""
    most = max((found.records for found in fading.histogram), default=1)
    unit = WIDTH / LONGEST
    return [
        (found.days * unit, fading.bin_days * unit, HEIGHT * found.records / most, found.days, found.records)
        for found in fading.histogram
        if found.days < LONGEST
    ]


def _tick(fading: FadingList, days: int) -> AxisTick:
    """Return a tick of the axis; a day has at most one day of work."""
    gone = sum(found.records for found in fading.histogram if found.days < days)
    earliest = datetime.now().astimezone().date() + timedelta(days=days)
    return AxisTick(days, earliest, round(100 * gone / max(1, fading.total)))


ROUTES = [Route("/fading", show)]
