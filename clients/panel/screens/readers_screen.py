"""Readers: which models read what the user says; a remote one with consent alone, by the bytes it got (W4, P-14)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.errors import InvalidRequest
from ....protocol.remote import CONSENT_DAYS, ConsentState, RemoteState
from ....protocol.reply import PoolSummary
from ..screen import Undoing, changed, form_of, number_of, panel_of, screen

CALLS, SESSIONS = 20, 40
"""Calls, and sessions to preview, on one screen, at most."""

PREVIEWED_BYTES = 48_000
"""Bytes of the bodies on one screen; the others have pages of their own."""


@dataclass(frozen=True)
class ReadablePool:
    """A pool and what the chosen model may read of it. `ended`: consents for other models, or of the past."""

    pool: PoolSummary
    consent: ConsentState | None
    ended: int


def readable_pools(pools: tuple[PoolSummary, ...], state: RemoteState) -> Iterator[ReadablePool]:
    """Yield the pools with the consents for each, those with one first."""
    rows: list[ReadablePool] = []
    for pool in pools:
        consents = [consent for consent in state.consents if consent.pool == pool.pool]
        held = next((consent for consent in consents if consent.holds), None)
        rows.append(ReadablePool(pool, held, len(consents) - bool(held)))
    yield from sorted(rows, key=lambda row: (row.consent is None, row.pool.pool != "personal"))


async def show(request: Request) -> Response:
    """Show the models that read, the consents, and the last calls."""
    client = panel_of(request).client
    state, models, pools, sessions = await asyncio.gather(
        client.remote(), client.models(), client.pools(), client.sessions(limit=SESSIONS)
    )
    return await screen(
        request,
        "readers.html",
        "Readers",
        pools=pools.pools,
        is_scoped=False,
        state=state,
        models=[model for model in models.models if model.searches],
        reembedding=models.reembedding,
        rows=list(readable_pools(pools.pools, state)),
        calls=state.calls[:CALLS],
        sessions=[session for session in sessions.sessions if session.ended_at],
        days=CONSENT_DAYS,
    )


async def show_bytes(request: Request) -> Response:
    """Show the exact bytes that memd sent in a `call`, or would send of a `session`."""
    client, names = panel_of(request).client, request.query_params
    call, session = names.get("call", ""), names.get("session", "")
    preview = await client.preview_remote(session, call=call)
    number = number_of(request, "part", 1)
    body = preview.bodies[number - 1] if 0 < number <= len(preview.bodies) else ""
    calls = (await client.remote()).calls if call else ()
    return await screen(
        request,
        "bytes.html",
        "Exactly what was sent" if call else "What would be sent",
        is_scoped=False,
        preview=preview,
        call=next((row for row in calls if row.id.startswith(call)), None) if call else None,
        chosen={"call": call, "session": session},
        body=body[:PREVIEWED_BYTES],
        left=max(0, len(body) - PREVIEWED_BYTES),
        size=len(body.encode()),
        said=words_of(body),
        number=number,
    )


def words_of(body: str) -> list[tuple[str, str]]:
    """Return the messages in a body as (author, text); empty where it has another form."""
    try:
        messages = json.loads(body)["messages"]
        return [(str(message["role"]), str(message["content"])) for message in messages]
    except (ValueError, KeyError, TypeError):
        return []


async def consent(request: Request) -> Response:
    """Let the chosen model read a pool for some days."""
    form, client = await form_of(request), panel_of(request).client
    pool = form.get("pool", "")
    state = await client.consent_remote(pool, days=_days(form.get("days", "")), private=form.get("private") == "on")
    held = next((consent for consent in state.consents if consent.pool == pool and consent.holds), None)
    number = held.waiting if held else 0
    sessions = f"{number} ended session{'' if number == 1 else 's'} may be sent now."
    return changed(f"Allowed. {sessions}", Undoing("/readers/withdraw", {"pool": pool}))


def _days(text: str) -> float:
    try:
        return float(text or CONSENT_DAYS)
    except ValueError as error:
        raise InvalidRequest(f"{text!r} is no number of days", hint="for example 30") from error


async def withdraw(request: Request) -> Response:
    """Withdraw every consent for a pool."""
    form = await form_of(request)
    await panel_of(request).client.consent_remote(form.get("pool", ""), withdraw=True)
    return changed("Withdrawn. Nothing of it is sent any more.")


async def switch_off(request: Request) -> Response:
    """Switch the remote model off, also during a call."""
    await panel_of(request).client.stop_remote()
    return changed(
        "The remote model is off. Its consents stay in the journal; `memd remote use` chooses a model again."
    )


ROUTES = [
    Route("/readers", show),
    Route("/readers/bytes", show_bytes),
    Route("/readers/consent", consent, methods=["POST"]),
    Route("/readers/withdraw", withdraw, methods=["POST"]),
    Route("/readers/off", switch_off, methods=["POST"]),
]
