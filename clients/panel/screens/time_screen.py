"""The time of the page: one control for every screen, on both clocks, with how much was learnt when (Q12)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.map import Clock, Rhythm
from ..screen import panel_of, piece

BUCKETS = 90
FIELDS: dict[Clock, str] = {"world": "as_of", "system": "believed_at"}
"""The field of an address that each clock sets."""

YOUNG = timedelta(days=30)
"""While memd's own history is shorter than this, the world's time is the first choice."""


async def show(request: Request) -> Response:
    """Show the control for the screen at the address `here`."""
    names = dict(request.query_params)
    here, pools = names.get("here", "/"), (names["pool"],) if names.get("pool") else ()
    at: dict[Clock, str] = {clock: names.get(field, "") for clock, field in FIELDS.items()}
    client = panel_of(request).client
    world, system = await asyncio.gather(
        *(client.rhythm(pools=pools, clock=clock, buckets=BUCKETS, beside=at[clock], until=_now()) for clock in FIELDS)
    )
    clock = _chosen(names.get("clock", ""), at, system)
    rhythm = world if clock == "world" else system
    ends = [bucket.start for bucket in rhythm.buckets[1:]]
    return piece(
        "time.html",
        clock=clock,
        rhythm=rhythm,
        most=max((max(bucket.learnt, bucket.retired) for bucket in rhythm.buckets), default=1) or 1,
        place=sum(end <= at[clock] for end in ends) if at[clock] else len(ends) + 1,
        here=here,
        names=names,
        data=msgspec.json.encode([address(here, clock, end) for end in ends] + [address(here, clock, "")] * 2).decode(),
        before=address(here, clock, rhythm.before) if rhythm.before else "",
        after=address(here, clock, rhythm.after) if at[clock] and rhythm.after else "",
        fields=FIELDS,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _chosen(named: str, at: dict[Clock, str], system: Rhythm) -> Clock:
    """Return the clock that the address names, or whose time it has, or the one with more to show."""
    if named in FIELDS:
        return "world" if named == "world" else "system"
    if at["world"] or at["system"]:
        return "world" if at["world"] else "system"
    first = system.buckets[0].start if system.buckets else _now()
    return "world" if datetime.now(UTC) - datetime.fromisoformat(first) < YOUNG else "system"


def address(here: str, clock: Clock, instant: str) -> str:
    """Return the address `here` at a time, "" for now."""
    parts = urlsplit(here)
    fields = {name: value for name, value in parse_qsl(parts.query) if name not in FIELDS.values()}
    query = urlencode(fields | ({FIELDS[clock]: instant} if instant else {}))
    return parts.path + (f"?{query}" if query else "")


ROUTES = [Route("/time", show)]
