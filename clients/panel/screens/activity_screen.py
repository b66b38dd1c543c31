"""Activity: what the user did, what memd did and what agents got, newest first, each with its undo (W8, U4, U9)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.record import Record
from ....protocol.reply import JobState, Logged
from ...python.async_client import AsyncClient
from .. import wording
from ..happenings import Actor, Happening, happenings, is_by_user, named_ids, received, with_records
from ..screen import Undoing, changed, form_of, number_of, panel_of, pool_titles, screen

VIEWS: dict[str, Actor] = {"you": "you", "memd": "memd", "agents": "agents"}
SLICE = 200
"""Journal entries of one request."""

MOST_SLICES, ENOUGH = 10, 20
"""Requests of one screen, at most, and the user's own operations after which no further one follows."""

ROWS, RECORDS, TEXTS, EVENTS = 60, 100, 15, 20
"""Most happenings, records that they name, texts of agents, and events of the daemon on one screen."""

JOB_POLL_S, JOB_WAIT_S = 0.1, 20.0
REPORTED = {
    "hidden": "hidden",
    "believed_again": "believed again",
    "reworded": "with their former words",
    "kept": "kept: they have other sources",
    "brought_back": "put back",
    "left": "left: they changed since",
}


async def show(request: Request) -> Response:
    """Show a page of happenings: `who` limits them, `before` is the journal's seq that it ends ahead of."""
    client, names = panel_of(request).client, request.query_params
    who = VIEWS.get(names.get("who", ""))
    pools, page = await asyncio.gather(client.pools(), client.journal(limit=1))
    before = number_of(request, "before", page.last + 1)
    entries = await _entries(client, before, who)
    told = happenings(entries, pool_titles(pools.pools))
    start = _start(entries, told)
    told = [happening for happening in told if happening.first >= start and who in (None, happening.by)]
    if len(told) > ROWS:
        told = told[:ROWS]
        start = told[-1].first
    if who != "you" and before > page.last:
        texts = received((await client.injected(limit=TEXTS)).injections, who == "agents")
        since = told[-1].at if told and start > 1 and who is None else 0
        told = _by_time([*told, *(text for text in texts if text.at >= since)])
    known = await _known(client, named_ids(told, RECORDS))
    return await screen(
        request,
        "activity.html",
        "Activity",
        pools=pools.pools,
        is_scoped=False,
        who=who or "",
        days=list(_by_day([with_records(happening, known) for happening in told])),
        older=start if start > 1 else 0,
        events=await _events(client) if who == "memd" and before > page.last else (),
    )


async def _entries(client: AsyncClient, before: int, who: Actor | None) -> list[Logged]:
    """Return entries ahead of a seq, in order: a page, or as many as it takes to find what the user did."""
    entries: list[Logged] = []
    for _ in range(MOST_SLICES if who == "you" else 1):
        after = max(0, before - 1 - SLICE)
        page = await client.journal(after, before - 1 - after) if before > 1 else None
        entries[:0] = page.entries if page else ()
        before = after + 1
        if after == 0 or sum(map(is_by_user, entries)) >= ENOUGH:
            break
    return entries


def _start(entries: Sequence[Logged], told: Sequence[Happening]) -> int:
    """Return the seq of the oldest entry that a page tells, 0 for none. It leaves a happening of which a part may lie
    ahead of the page to the next one."""
    if not entries or entries[0].seq <= 1:
        return 0
    is_cut = len(told) > 1 and told[-1].first == entries[0].seq
    return told[-1].seq + 1 if is_cut else entries[0].seq


def _by_time(told: Sequence[Happening]) -> list[Happening]:
    return sorted(told, key=lambda happening: happening.at, reverse=True)


def _by_day(told: Sequence[Happening]) -> Iterator[tuple[str, list[Happening]]]:
    for title, group in groupby(told, key=lambda happening: wording.day_title(happening.at)):
        yield title, list(group)


async def _known(client: AsyncClient, ids: Sequence[str]) -> Mapping[str, Record | None]:
    """Return records as they are now, None for one that is hidden or forgotten."""
    records = await asyncio.gather(*(client.get(id) for id in ids), return_exceptions=True)
    for record in records:
        if isinstance(record, BaseException) and not isinstance(record, NotFound):
            raise record
    return {id: record if isinstance(record, Record) else None for id, record in zip(ids, records, strict=True)}


async def _events(client: AsyncClient) -> list[tuple[int, str, str]]:
    """Return the daemon's last events, newest first: time, kind, subject."""
    last = (await client.activity(limit=1)).last
    page = await client.activity(max(0, last - EVENTS), EVENTS)
    return [(wording.micros(event.at), event.event, event.what) for event in reversed(page.events)]


async def hide(request: Request) -> Response:
    """Hide everything that sessions taught, or that a remote model brought."""
    form = await form_of(request)
    names = _names(form)
    job = await panel_of(request).client.undo(names)
    undoing = Undoing("/activity/show", {"names": form["names"]})
    return await _done(request, job, "Hidden: memd tells nobody what it learnt there.", undoing)


async def bring_back(request: Request) -> Response:
    """Show again what was hidden."""
    form = await form_of(request)
    names = _names(form)
    job = await panel_of(request).client.redo(names)
    undoing = Undoing("/activity/hide", {"names": form["names"]})
    return await _done(request, job, "Put back.", undoing)


def _names(form: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(name for name in form.get("names", "").split("\n") if name)
    if not names:
        raise InvalidRequest("no session was named")
    return names


async def _done(request: Request, job: JobState, text: str, undoing: Undoing) -> Response:
    """Wait for a job and say what became of it."""
    client = panel_of(request).client
    for _ in range(round(JOB_WAIT_S / JOB_POLL_S)):
        if job.state != "running":
            break
        await asyncio.sleep(JOB_POLL_S)
        job = await client.job(job.id)
    if job.problem:
        raise InvalidRequest(job.problem.message, hint=job.problem.hint)
    if job.state == "running":
        return changed("memd is at it; this page changes when it is done.")
    counts = [f"{number} {word}" for name, word in REPORTED.items() if (number := job.report.get(name))]
    return changed(" ".join((text, ", ".join(counts))).strip(), undoing)


ROUTES = [
    Route("/activity", show),
    Route("/activity/hide", hide, methods=["POST"]),
    Route("/activity/show", bring_back, methods=["POST"]),
]
