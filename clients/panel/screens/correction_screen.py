"""Put right: replace a wrong memory or put a right one into other words, after the user saw what changes (T1)."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.errors import MemdError
from ....protocol.profile import changed_lines
from ....protocol.record import Record
from ....protocol.reply import Remembered
from ..screen import Undoing, changed, form_of, panel_of, piece, scope_of, screen
from ..word_diff import word_diff


async def show(request: Request) -> Response:
    """Show the form; `words` keeps the truth and changes how it is put. `beside`: another memory, whose text stands
    beside it."""
    client, id = panel_of(request).client, request.path_params["id"]
    explained = await client.why(id)
    is_rewording, beside = request.query_params.get("as") == "words", request.query_params.get("beside", "")
    return await screen(
        request,
        "correction.html",
        "Reword" if is_rewording else "Put right",
        record=explained.record,
        is_rewording=is_rewording,
        beside=await client.get(beside) if beside else None,
        back=_inside(request.query_params.get("back", "")) or f"/memories/{id}",
    )


def _inside(address: str) -> str:
    """Return an address of the panel, "" for any other."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else ""


async def preview(request: Request) -> Response:
    """Show what the form would change; an error stands in the same place."""
    form, scope, client = await form_of(request), scope_of(request), panel_of(request).client
    before = await client.get(request.path_params["id"])
    try:
        after = (await _send(request, form, dry_run=True)).record
    except MemdError as error:
        return piece("preview.html", error=error)
    changed_records = (after,) if after.id == before.id else (msgspec.structs.replace(before, status="retired"), after)
    then, now = await asyncio.gather(
        *(client.profile(**scope.readable, assuming=records) for records in ((before,), changed_records))
    )
    gone, new = changed_lines(then, now)
    diff = list(word_diff(before.content, after.content))
    return piece(
        "preview.html",
        error=None,
        is_replaced=after.id != before.id,
        diff=diff,
        gone=gone,
        new=new,
        tokens=now.tokens - then.tokens,
    )


async def apply(request: Request) -> Response:
    """Make the change."""
    form = await form_of(request)
    client, id = panel_of(request).client, request.path_params["id"]
    before = await client.get(id)
    made = await _send(request, form)
    if made.duplicate:
        return changed("Nothing changed: memd has these words already.", go=_inside(form.get("back", "")))
    if form.get("as") == "words":
        undoing = Undoing("/undo/words", {"id": made.record.id, "text": before.content})
        return changed("Saved in your words.", undoing, go=_inside(form.get("back", "")))
    return changed(
        "Put right. The old memory stays in the history.", _undoing(made.record), _inside(form.get("back", ""))
    )


def _undoing(record: Record) -> Undoing:
    return Undoing("/undo/session", {"name": record.provenance.spans[0].document})


async def _send(request: Request, form: dict[str, str], *, dry_run: bool = False) -> Remembered:
    client, id = panel_of(request).client, request.path_params["id"]
    text = form.get("text", "").strip()
    if form.get("as") == "words":
        return await client.edit(id, text, dry_run=dry_run)
    since = form.get("until", "") if form.get("right") == "until" else ""
    return await client.correct(id, text, since=since, dry_run=dry_run)


ROUTES = [
    Route("/memories/{id}/right", show),
    Route("/memories/{id}/right/preview", preview, methods=["POST"]),
    Route("/memories/{id}/right", apply, methods=["POST"]),
]
