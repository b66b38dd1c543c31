"""Changes with one press: pin, confirm, reject, remember, restore; and each one's undo (T1, T7, T8, U8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ....protocol.errors import InvalidRequest
from ...python.async_client import AsyncClient
from ..screen import Undoing, changed, form_of, panel_of

WAIT_MS = 10_000

Change = Callable[[AsyncClient, str], Awaitable[tuple[str, Undoing | None]]]


async def _pin(client: AsyncClient, id: str) -> tuple[str, Undoing | None]:
    await client.pin(id)
    return "Pinned. It comes first in the profile.", Undoing(f"/memories/{id}/unpin", {})


async def _unpin(client: AsyncClient, id: str) -> tuple[str, Undoing | None]:
    await client.pin(id, False)
    return "Unpinned.", Undoing(f"/memories/{id}/pin", {})


async def _confirm(client: AsyncClient, id: str) -> tuple[str, Undoing | None]:
    await client.confirm((id,))
    return "Kept. It counts from the next turn on.", Undoing(f"/memories/{id}/unjudge", {})


async def _reject(client: AsyncClient, id: str) -> tuple[str, Undoing | None]:
    await client.confirm((id,), right=False)
    return "Retired: you said that it is wrong.", Undoing(f"/memories/{id}/unjudge", {})


async def _unjudge(client: AsyncClient, id: str) -> tuple[str, Undoing | None]:
    await client.confirm((id,), undo=True)
    return "Taken back.", None


async def _restore(client: AsyncClient, id: str) -> tuple[str, Undoing | None]:
    await client.restore((id,))
    return "Active again.", None


CHANGES: dict[str, Change] = {
    "pin": _pin,
    "unpin": _unpin,
    "confirm": _confirm,
    "reject": _reject,
    "unjudge": _unjudge,
    "restore": _restore,
}


async def change(request: Request) -> Response:
    """Make the change that the address names."""
    make = CHANGES.get(request.path_params["name"])
    if make is None:
        raise InvalidRequest(f"there is no change {request.path_params['name']!r}")
    text, undoing = await make(panel_of(request).client, request.path_params["id"])
    return changed(text, undoing, (await form_of(request)).get("go", ""))


async def remember(request: Request) -> Response:
    """Remember a statement in the scope's pool."""
    form, panel = await form_of(request), panel_of(request)
    made = await panel.client.remember(
        form.get("text", "").strip(), cwd=panel.folder, host="panel", pool=form.get("pool", "")
    )
    if made.duplicate:
        return changed("memd knows this already.")
    undoing = Undoing(f"/memories/{made.record.id}/reject", {})
    return changed(f"Remembered: {made.record.description}", undoing)


async def undo_session(request: Request) -> Response:
    """Hide what a session or a correction brought."""
    client = panel_of(request).client
    await client.undo(((await form_of(request)).get("name", ""),))
    return changed("Taken back.")


async def undo_words(request: Request) -> Response:
    """Give a record its former words."""
    form, client = await form_of(request), panel_of(request).client
    await client.edit(form.get("id", ""), form.get("text", ""))
    return changed("Taken back: the former words stand again.")


async def news(request: Request) -> Response:
    """Return the journal's last seq as soon as it is past `after`, or after `WAIT_MS`; -1 asks for it at once."""
    client, after = panel_of(request).client, request.query_params.get("after", "-1")
    if client.has_pass:  # it may not read the journal
        return JSONResponse({"last": -1})
    if not after.isdecimal():
        return JSONResponse({"last": (await client.status()).journal_seq})
    try:
        return JSONResponse({"last": (await client.journal(int(after), limit=1, wait_ms=WAIT_MS)).last})
    except asyncio.CancelledError:  # the panel ends
        return JSONResponse({"last": int(after)}, 503)


ROUTES = [
    Route("/changes", news),
    Route("/remember", remember, methods=["POST"]),
    Route("/undo/session", undo_session, methods=["POST"]),
    Route("/undo/words", undo_words, methods=["POST"]),
    Route("/memories/{id}/{name}", change, methods=["POST"]),
]
