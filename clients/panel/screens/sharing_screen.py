"""Sharing: the shared projects, their authors, what goes next and what the user may choose; git carries it by a command
alone, never from here (H1, H2)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.errors import InvalidRequest
from ....protocol.share import AuthorState, Outbox, OutboxItem, ShareReview, ShareState, Standing
from ...python.async_client import AsyncClient
from ..screen import Undoing, changed, form_of, panel_of, screen

LISTED = 20
"""Lines of the outbox, and records to choose, of one project on one screen, at most."""

_CHANGED: dict[Standing, str] = {
    "trusted": "Trusted. What {} shares is no longer unconfirmed.",
    "muted": "Muted. What {} shares is hidden, and what they retracted is believed again.",
    "new": "What {} shares is unconfirmed again.",
}


@dataclass(frozen=True)
class SharedProject:
    """A shared project with what goes next and what waits for a choice."""

    share: ShareState
    outbox: Outbox
    review: ShareReview

    @property
    def others(self) -> list[AuthorState]:
        """The partitions of other authors; those with a problem first."""
        return sorted(
            (author for author in self.share.authors if not author.own), key=lambda author: not author.problem
        )


def statement(item: OutboxItem) -> str:
    """Return the words of a line that will go, "" for one that retracts."""
    try:
        return str(msgspec.json.decode(item.line, type=dict[str, object]).get("text", ""))
    except msgspec.MsgspecError:
        return ""


async def show(request: Request) -> Response:
    """Show the shared projects."""
    client = panel_of(request).client
    shares = (await client.shares()).shares
    projects = await asyncio.gather(*(_project(client, share) for share in shares if share.is_open))
    return await screen(
        request,
        "sharing.html",
        "Sharing",
        is_scoped=False,
        projects=projects,
        ended=[share for share in shares if not share.is_open],
        listed=LISTED,
        statement=statement,
    )


async def _project(client: AsyncClient, share: ShareState) -> SharedProject:
    outbox, review = await asyncio.gather(
        client.share_outbox(share.pool), client.review_share(share.pool, limit=LISTED)
    )
    return SharedProject(share, outbox, review)


async def judge(request: Request) -> Response:
    """Trust or mute an author, or take that back."""
    form = await form_of(request)
    pool, partition, standing = form.get("pool", ""), form.get("partition", ""), _standing(form.get("standing", ""))
    client = panel_of(request).client
    before = _author(next(iter((await client.shares([pool])).shares), None), partition)
    await client.judge_author(pool, partition, standing)
    undoing = Undoing("/sharing/author", {"pool": pool, "partition": partition, "standing": before.standing})
    return changed(_CHANGED[standing].format(before.name), undoing)


def _standing(text: str) -> Standing:
    for standing in get_args(Standing):
        if standing == text:
            return standing
    raise InvalidRequest(f"{text!r} is no standing", hint="trusted, muted or new")


def _author(share: ShareState | None, partition: str) -> AuthorState:
    for author in share.authors if share else ():
        if author.partition == partition:
            return author
    raise InvalidRequest("there is no such author", hint="`memd share status` lists them")


async def choose(request: Request) -> Response:
    """Share a record with the next push, or keep it. Only a record that was to go goes again by an undo."""
    form = await form_of(request)
    pool, id = form.get("pool", ""), form.get("id", "")
    fields = {"pool": pool, "id": id, "goes": "yes"}
    client = panel_of(request).client
    if form.get("goes") == "yes":
        await client.offer_records(pool, [id])
        text = "It goes with the next `memd share push`."
        return changed(text, Undoing("/sharing/choose", {"pool": pool, "id": id, "goes": "no"}))
    await client.offer_records(pool, keep=[id])
    return changed("Kept: it is not shared.", Undoing("/sharing/choose", fields) if form.get("went") else None)


ROUTES = [
    Route("/sharing", show),
    Route("/sharing/author", judge, methods=["POST"]),
    Route("/sharing/choose", choose, methods=["POST"]),
]
