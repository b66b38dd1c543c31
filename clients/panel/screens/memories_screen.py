"""Memories: what a question finds and why, the list of all records, and one record with its whole history (Q2, R4)."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.record import TYPES, Status
from ..disputes import disputes
from ..screen import panel_of, scope_of, screen
from ..wording import may_hide

PAGE = 40
SHOWN: dict[str, tuple[Status, ...]] = {
    "all": (),
    "believed": ("active",),
    "unconfirmed": ("quarantined", "provisional"),
    "retired": ("retired",),
    "archived": ("archived",),
    "hidden": ("hidden",),
}
"""The statuses behind each filter of the list."""


async def show(request: Request) -> Response:
    """Show the answer to the question `q`, or the list."""
    return await (_show_answer if request.query_params.get("q", "").strip() else _show_list)(request)


async def _show_answer(request: Request) -> Response:
    client, scope = panel_of(request).client, scope_of(request)
    question, is_wide = request.query_params["q"].strip(), request.query_params.get("in") == "all"
    pools = await panel_of(request).pools() if is_wide else None
    where = {"pools": tuple(pool.pool for pool in pools)} if pools else scope.readable
    answer = await client.recall(
        question,
        **where,
        **scope.times,
        explain=True,
        include_retired=True,
        deep=request.query_params.get("deep") == "1",
    )
    return await screen(
        request,
        "answer.html",
        f"“{question}”",
        pools=pools,
        question=question,
        answer=answer,
        is_wide=bool(pools),
        scope_name="everywhere" if pools else None,
    )


async def _show_list(request: Request) -> Response:
    client, scope, names = panel_of(request).client, scope_of(request), request.query_params
    shown, kind = names.get("show", "believed"), names.get("type", "")
    page = await client.list(
        pools=(scope.pool,) if scope.pool else (),
        **scope.times,
        statuses=SHOWN.get(shown, SHOWN["believed"]),
        type=kind,
        after=names.get("after", ""),
        limit=PAGE,
    )
    listed = await panel_of(request).pools()
    counts = {
        name: sum(
            count
            for pool in listed
            for status, count in pool.counts.items()
            if scope.pool in ("", pool.pool) and (status in statuses if statuses else status != "hidden")
        )
        for name, statuses in SHOWN.items()
    }
    return await screen(
        request,
        "memories.html",
        "Memories",
        scope_name="everywhere",
        pools=listed,
        page=page,
        shown=shown,
        kind=kind,
        filters=tuple(SHOWN),
        counts={} if kind or scope.is_past else counts,
        types=TYPES,
    )


async def show_record(request: Request) -> Response:
    """Show one record: its source, its versions, what replaced it and how it is used."""
    client, id, scope = panel_of(request).client, request.path_params["id"], scope_of(request)
    explained, record, disputed = await asyncio.gather(
        client.why(id), client.get(id, **scope.times), disputes(panel_of(request))
    )
    versions = () if client.has_pass else (await client.history(id)).versions
    return await screen(
        request,
        "record.html",
        record.description,
        explained=explained,
        versions=versions,
        record=record,
        dispute=disputed.get(record.id),
        may_hide=may_hide(record),
    )


ROUTES = [Route("/memories", show), Route("/memories/{id}", show_record)]
