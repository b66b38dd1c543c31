"""Sessions: what each taught, its summary, and its turns word by word, with the words that records state (C2, W2)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.errors import NotFound
from ....protocol.session import SessionPage, SessionTurns, TranscriptTurn
from ...python.async_client import AsyncClient
from ..screen import number_of, panel_of, screen

PAGE = 40
TURNS, RECORDS = 20, 40
"""Turns and records on one screen, at most."""

PAGE_TEXT, TURN_TEXT = 24_000, 6_000
"""Characters of all turns on a screen, about, and of one turn, unless it is opened alone."""


@dataclass(frozen=True)
class MarkedPart:
    """A part of a turn's words. `record`: the one that states them, or ""."""

    text: str
    record: str = ""
    is_live: bool = False


@dataclass(frozen=True)
class ShownTurn:
    """A turn in parts. `left`: characters that are not shown."""

    turn: TranscriptTurn
    parts: tuple[MarkedPart, ...]
    left: int = 0


@dataclass(frozen=True)
class TranscriptPage:
    """Turns in order. `before`, `after`: turns of the session ahead of these and behind them."""

    turns: tuple[ShownTurn, ...]
    before: int = 0
    after: int = 0


def parts_of(turn: TranscriptTurn, limit: int) -> Iterator[MarkedPart]:
    """Yield the first `limit` characters of a turn in parts: where records overlap, the first one has the words."""
    at, text = 0, turn.text[:limit]
    for cited in turn.cited:
        start, end = max(at, cited.start), min(cited.end, len(text))
        if start >= end:
            continue
        if at < start:
            yield MarkedPart(text[at:start])
        yield MarkedPart(text[start:end], cited.record, cited.status not in ("retired", "archived"))
        at = end
    if at < len(text):
        yield MarkedPart(text[at:])


def page_of(
    turns: Sequence[TranscriptTurn], before: int, after: int, *, backwards: bool = False, limit: int = TURN_TEXT
) -> TranscriptPage:
    """Return as many of these turns as a screen holds, the last ones with `backwards`."""
    size, count = 0, 0
    for turn in reversed(turns) if backwards else turns:
        size += min(len(turn.text), limit)
        if count and size > PAGE_TEXT:
            break
        count += 1
    taken = turns[len(turns) - count :] if backwards else turns[:count]
    rest = len(turns) - count
    shown = tuple(ShownTurn(turn, tuple(parts_of(turn, limit)), max(0, len(turn.text) - limit)) for turn in taken)
    return TranscriptPage(shown, before + (rest if backwards else 0), after + (0 if backwards else rest))


def _place(page: SessionTurns, turn: str) -> int:
    return next(place for place, shown in enumerate(page.turns) if shown.turn == turn)


async def read(client: AsyncClient, document: str, around: str = "", side: str = "") -> TranscriptPage:
    """Return the first turns; those around one; those `before` or `after` it; or it `alone`."""
    if not around:
        page = await client.transcript(document, limit=TURNS)
        return page_of(page.turns, page.before, page.after)
    if side == "alone":
        page = await client.transcript(document, around=around, limit=1)
        return page_of(page.turns, page.before, page.after, limit=len(page.turns[0].text))
    if side not in ("before", "after"):
        page = await client.transcript(document, around=around, limit=TURNS)
        start = max(0, _place(page, around) - TURNS // 4)
        return page_of(page.turns[start:], page.before + start, page.after)
    page = await client.transcript(document, around=around, limit=2 * TURNS + 1)
    place = _place(page, around)
    if side == "after":
        turns = page.turns[place + 1 : place + 1 + TURNS]
        return page_of(turns, page.before + place + 1, page.after + len(page.turns) - place - 1 - len(turns))
    turns = page.turns[max(0, place - TURNS) : place]
    ahead = page.before + place - len(turns)
    return page_of(turns, ahead, page.after + len(page.turns) - place, backwards=True)


async def _read_near(client: AsyncClient, document: str, around: str, side: str) -> TranscriptPage:
    """Return what `read` does, and the first turns where nobody said anything in the turn."""
    try:
        return await read(client, document, around, side)
    except NotFound:
        return await read(client, document)


async def show_list(request: Request) -> Response:
    """Show the sessions, newest first, or those with some words."""
    client, names = panel_of(request).client, request.query_params
    words = names.get("words", "").strip()
    if words:
        found = (await client.find_sessions(words, limit=PAGE)).found
        page = SessionPage(sessions=(), total=0, going_on=0)
        return await screen(
            request, "sessions.html", "Sessions", is_scoped=False, words=words, found=found, page=page, start=0, older=0
        )
    start = number_of(request, "from", 0)
    page = await client.sessions(limit=start + PAGE)
    older = start + PAGE if page.total > start + PAGE else 0
    return await screen(
        request,
        "sessions.html",
        "Sessions",
        is_scoped=False,
        words="",
        found=(),
        page=page,
        start=start,
        older=older,
    )


async def show(request: Request) -> Response:
    """Show one session: its summary, what memd learnt from it, and a page of its turns."""
    client, names = panel_of(request).client, request.query_params
    outcome = await client.session(names.get("id", ""))
    document = outcome.session.document
    summary, learnt, turns = await asyncio.gather(
        client.summary(document),
        client.list(document=document, limit=RECORDS),
        _read_near(client, document, names.get("around", ""), names.get("side", "")),
    )
    return await screen(
        request,
        "session.html",
        summary.title or outcome.session.title or document,
        is_scoped=False,
        session=outcome.session,
        outcome=outcome,
        summary=summary,
        learnt=learnt.records,
        turns=turns,
        around=names.get("around", ""),
        is_alone=names.get("side") == "alone",
    )


ROUTES = [Route("/activity/sessions", show_list), Route("/activity/session", show)]
