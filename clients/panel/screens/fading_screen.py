"""What fades: the forecast of what goes to the archive after so many days of work, and what agents never used (T9)."""

from __future__ import annotations

import asyncio
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.decay import FadingList
from ..screen import panel_of, scope_of, screen

LISTED, NEVER_USED = 60, 20
DAYS, LONGEST = 30, 120
"""Days of work that the forecast first looks ahead, and at most."""

WIDTH, HEIGHT = 960, 120
"""Of the drawing, in its own units."""


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


ROUTES = [Route("/fading", show)]
