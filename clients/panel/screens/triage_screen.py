"""Triage: unconfirmed memories one at a time, each with the turns around it; keep, put right, wrong, later (T8, U4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.errors import InvalidRequest
from ....protocol.reply import PoolSummary
from ..disputes import disputes
from ..screen import Undoing, changed, form_of, panel_of, pool_titles, scope_of, screen
from ..wording import UNCONFIRMED

AT_ONCE = 60
"""Memories that one decision keeps: a request names at most 64."""

POOLS_SHOWN = 8


def unconfirmed_of(pools: Iterable[PoolSummary]) -> dict[str, int]:
    """Return how many memories of each pool nobody confirmed, the most first, without pools that have none."""
    counts = {pool.pool: sum(pool.counts.get(name, 0) for name in UNCONFIRMED) for pool in pools}
    return dict(sorted(((pool, count) for pool, count in counts.items() if count), key=lambda row: -row[1]))


async def show(request: Request) -> Response:
    """Show the first unconfirmed memory behind the cursor `after`."""
    client, scope, after = panel_of(request).client, scope_of(request), request.query_params.get("after", "")
    pools = (scope.pool,) if scope.pool else ()
    page = await client.list(pools=pools, statuses=UNCONFIRMED, after=after, limit=1)
    following = await client.list(pools=pools, statuses=UNCONFIRMED, after=page.next, limit=1) if page.next else None
    pools_listed, disputed = await asyncio.gather(panel_of(request).pools(), disputes(panel_of(request)))
    counts = unconfirmed_of(pools_listed)
    record = next(iter(page.records), None)
    return await screen(
        request,
        "triage.html",
        "Go through the unconfirmed",
        scope_name="everywhere",
        pools=pools_listed,
        dispute=disputed.get(record.id) if record else None,
        explained=await client.why(record.id) if record else None,
        left=counts.get(scope.pool, 0) if scope.pool else sum(counts.values()),
        counts=counts,
        pools_shown=list(counts)[:POOLS_SHOWN],
        cursor=page.next,
        next_one=next(iter(following.records), None) if following else None,
        is_begun=bool(after),
    )


async def show_all(request: Request) -> Response:
    """Show what one decision would keep: the newest unconfirmed memories of one pool. Raises InvalidRequest without
    a pool."""
    client, scope = panel_of(request).client, scope_of(request)
    if not scope.pool:
        raise InvalidRequest("no pool was named", hint="choose one above")
    page = await client.list(pools=(scope.pool,), statuses=UNCONFIRMED, limit=AT_ONCE)
    pools = await panel_of(request).pools()
    counts = unconfirmed_of(pools)
    return await screen(
        request,
        "triage_all.html",
        "Keep all",
        pools=pools,
        records=[record for record in page.records if not record.flags],
        flagged=[record for record in page.records if record.flags],
        left=counts.get(scope.pool, 0),
    )


async def keep_all(request: Request) -> Response:
    """Keep the memories that the page listed, and no others."""
    form = await form_of(request)
    client, ids = panel_of(request).client, form.get("ids", "")
    judged = await client.confirm(_names(ids))
    titles = pool_titles((await client.pools()).pools)
    pool = form.get("pool", "")
    go = f"/triage?{urlencode({'pool': pool})}" if pool in titles else "/triage"
    return changed(f"Kept {len(judged.records):,}.", Undoing("/triage/undo", {"ids": ids}), go)


async def undo(request: Request) -> Response:
    """Take back that memories were kept."""
    judged = await panel_of(request).client.confirm(_names((await form_of(request)).get("ids", "")), undo=True)
    return changed(f"Taken back: {len(judged.records):,} are unconfirmed again.")


def _names(ids: str) -> tuple[str, ...]:
    return tuple(filter(None, ids.split(",")))


ROUTES = [
    Route("/triage", show),
    Route("/triage/all", show_all),
    Route("/triage/all", keep_all, methods=["POST"]),
    Route("/triage/undo", undo, methods=["POST"]),
]
