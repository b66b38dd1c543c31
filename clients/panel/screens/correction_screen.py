"""Put right: replace a wrong memory or put a right one into other words, after the user saw what changes (T1)."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl, urlencode, urlsplit

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
        words=(words := _shown_words(explained.record)),
        said=quote if (quote := explained.record.provenance.quote) != words else "",
        is_rewording=is_rewording,
        beside=await client.get(beside) if beside else None,
        back=_inside(request.query_params.get("back", "")) or f"/memories/{id}",
    )


def _shown_words(record: Record) -> str:
    """Return the words of a record as its line has them; the whole text where the line is only a part of it."""
    line, whole = record.description, " ".join(record.content.split())
    is_cut = line.endswith("…") or (whole.startswith(line) and not line.endswith((".", "!", "?")))
    return record.content if is_cut or line == whole else line


def _is_same(before: Record, form: dict[str, str]) -> bool:
    """Return whether the form has the words that memd keeps or shows."""
    words = form.get("text", "").split()
    return words in (before.content.split(), _shown_words(before).split())


def _inside(address: str) -> str:
    """Return an address of the panel, "" for any other."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else ""


async def preview(request: Request) -> Response:
    """Show what the form would change; an error stands in the same place."""
    form, scope, client = await form_of(request), scope_of(request), panel_of(request).client
    before = await client.get(request.path_params["id"])
    if _is_same(before, form):
        return piece("preview.html", is_same=True)
    try:
        after = (await _send(request, form, dry_run=True)).record
    except MemdError as error:
        return piece("preview.html", is_same=False, error=error)
    changed_records = (after,) if after.id == before.id else (msgspec.structs.replace(before, status="retired"), after)
    then, now = await asyncio.gather(
        *(client.profile(**scope.readable, assuming=records) for records in ((before,), changed_records))
    )
    gone, new = changed_lines(then, now)
    diff = list(word_diff(_shown_words(before), after.content))
    return piece(
        "preview.html",
        is_same=False,
        error=None,
        text=form.get("text", "").strip(),
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
    before, back = await client.get(id), _inside(form.get("back", ""))
    if _is_same(before, form) or (made := await _send(request, form)).duplicate:
        return changed("Nothing changed: memd has these words already.", go=back)
    back = _with_line(back, made.record.id)
    if form.get("as") == "words":
        return changed("Saved in your words.", _former_words(before, made.record), go=back)
    return changed("Put right. The old memory stays in the history.", _undoing(made.record), back)


def _with_line(back: str, id: str) -> str:
    """Return the address, with the line of a record chosen where it is the profile's."""
    parts = urlsplit(back)
    if parts.path != "/":
        return back
    return f"/?{urlencode(dict(parse_qsl(parts.query)) | {'line': id})}"


def _former_words(before: Record, after: Record) -> Undoing:
    """Return how to take a rewording back. Undoing its session takes back all that were made before it, too."""
    if before.provenance.spans and before.provenance.spans[0].document == after.provenance.spans[0].document:
        return Undoing("/undo/words", {"id": after.id, "text": before.content})
    return _undoing(after)


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
