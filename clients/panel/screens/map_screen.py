"""The map: pools with their topics, or what is near one thing; the same marks as a drawing and as a list (U4)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.map import MapMark, MemoryMap
from ..screen import ShownScope, panel_of, pool_titles, scope_of, screen

HOPS = (1, 2, 3)


async def show(request: Request) -> Response:
    """Show the map around the thing or record `around`, or the whole."""
    scope, names = scope_of(request), request.query_params
    around = names.get("around", "").strip()
    hops = int(names["hops"]) if names.get("hops", "") in {"1", "2", "3"} else 2
    pools = (scope.pool,) if scope.pool else ()
    client = panel_of(request).client
    drawn, known = await asyncio.gather(
        client.map(around, pools=pools, hops=hops, **scope.times), panel_of(request).pools()
    )
    title = f"Around {drawn.marks[0].label}" if around and drawn.marks else "Map"
    return await screen(
        request,
        "map.html",
        title,
        scope_name="everywhere",
        pools=known,
        drawn=drawn,
        around=around,
        hops=hops,
        steps=HOPS,
        addresses=[address(mark, scope) for mark in drawn.marks],
        data=_data(drawn, scope, pool_titles(known)),
    )


def address(mark: MapMark, scope: ShownScope) -> str:
    """Return where a mark leads: a record to itself, anything else to the map around it."""
    if mark.kind == "record":
        return f"/memories/{mark.id}{scope.query()}"
    if mark.kind == "pool":
        return f"/map{scope.query(pool=mark.id)}"
    return f"/map{scope.query(around=mark.id)}"


def _data(drawn: MemoryMap, scope: ShownScope, titles: Mapping[str, str]) -> str:
    """Return the marks and links for the drawing, as JSON."""
    marks = [
        {
            "kind": mark.kind,
            "id": mark.id,
            "label": titles.get(mark.id, mark.label),
            "status": mark.status,
            "trust": mark.trust,
        }
        | {"strength": mark.strength, "size": mark.size, "to": address(mark, scope)}
        for mark in drawn.marks
    ]
    links = [{"source": link.source, "target": link.target, "kind": link.kind} for link in drawn.links]
    return msgspec.json.encode({"marks": marks, "links": links}).decode()


ROUTES = [Route("/map", show)]
