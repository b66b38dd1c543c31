"""The inbox: each change that only the user decides, with what accepting changes and what waiting means (T13, G7)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.corrections import JudgedRecord, PlaybookChange, Waiting
from ....protocol.errors import InvalidRequest, MemdError, NotFound
from ....protocol.record import Record
from ....protocol.skills import SKILL_COMMANDS
from ...python.async_client import AsyncClient
from ..disputes import MOST, loses_words
from ..screen import Undoing, changed, form_of, panel_of, screen
from ..word_diff import Part, beside
from ..wording import UNCONFIRMED

PAGE = 20


@dataclass(frozen=True)
class ProposalCard:
    """A proposal with both records, None for a missing or a hidden one, the parts of both texts, and the records that
    accepting changes. `problem`: why it can't be accepted; `file`, `skill`: the text and the name of a skill."""

    proposal: Waiting
    old: Record | None
    new: Record | None
    old_parts: list[Part]
    new_parts: list[Part]
    changes: tuple[JudgedRecord, ...] = ()
    problem: str = ""
    file: str = ""
    skill: str = ""

    @property
    def proofs(self) -> list[str]:
        """What proves the changes of a patch, or why they go, each once."""
        return list(dict.fromkeys(filter(None, (change.proof for change in self.proposal.changes))))

    def sides(self, change: PlaybookChange) -> tuple[list[Part], list[Part]]:
        """Return the parts of the text that goes and of the one that comes, empty for none."""
        if change.old and change.new:
            return beside(change.old, change.new)
        return _unmarked(change.old), _unmarked(change.new)

    @property
    def is_hidden(self) -> bool:
        """Whether the record is hidden until the user decides."""
        return any(record.before == "hidden" for record in self.changes)

    @property
    def loses_words(self) -> bool:
        """Whether accepting a contradiction drops words that only the old memory has."""
        if self.proposal.what != "conflict" or self.old is None or self.new is None:
            return False
        return loses_words(self.old.content, self.new.content)


def _unmarked(words: str) -> list[Part]:
    return [("same", words)] if words else []


async def show(request: Request) -> Response:
    """Show a page of open proposals, oldest first, from the one that `at` names, or behind the one that `after`
    names."""
    client, names = panel_of(request).client, request.query_params
    inbox, status = await asyncio.gather(client.inbox(limit=MOST), client.status())
    waiting = list(reversed(inbox.proposals))
    places = {proposal.id: number for number, proposal in enumerate(waiting)}
    at, start = names.get("at", ""), places.get(names.get("after", ""), -1) + 1
    start = places.get(at, start)
    shown = waiting[start : start + PAGE]
    return await screen(
        request,
        "inbox.html",
        "Inbox",
        status=status,
        at=at,
        cards=await asyncio.gather(*(_card(client, proposal) for proposal in shown)),
        open=inbox.open,
        newer=len(waiting) - start - len(shown),
        is_first=not start,
        unconfirmed=sum(status.records.get(name, 0) for name in UNCONFIRMED),
    )


async def _skill_card(client: AsyncClient, proposal: Waiting) -> ProposalCard:
    """Return the card of a proposal about a file, which the user decides in a terminal."""
    name = proposal.line.partition(":")[0]
    listed = await client.skills(name[:100], everywhere=True, known=True)
    if proposal.what == "skill":
        draft = next(iter(listed.skills), None)
        text = draft.text if draft else ""
    else:
        text = next((each.better for each in listed.placed if each.id == proposal.record), "")
    return ProposalCard(proposal, None, None, _unmarked(proposal.line), [], file=text, skill=name)


async def _card(client: AsyncClient, proposal: Waiting) -> ProposalCard:
    if proposal.what in SKILL_COMMANDS:
        return await _skill_card(client, proposal)
    old, new = await asyncio.gather(_record(client, proposal.record), _record(client, proposal.against))
    old_parts, new_parts = beside(proposal.line, proposal.against_line)
    if not proposal.against:
        old_parts = [("same", proposal.line)]
    try:
        planned = await client.decide(proposal.id, True, dry_run=True)
    except MemdError as error:
        return ProposalCard(proposal, old, new, old_parts, new_parts, problem=error.message)
    return ProposalCard(proposal, old, new, old_parts, new_parts, planned.records)


async def _record(client: AsyncClient, id: str) -> Record | None:
    try:
        return await client.get(id) if id else None
    except NotFound:
        return None


async def decide(request: Request) -> Response:
    """Accept or reject a proposal. `wrong`: the new memory, which is retired as well. Raises InvalidRequest for a
    deletion, which only the forget screen accepts."""
    client, id, form = panel_of(request).client, request.path_params["id"], await form_of(request)
    accepts, wrong = form.get("accept") == "yes", form.get("wrong", "")
    planned = await client.decide(id, accepts, dry_run=True)
    if any(not record.after for record in planned.records):
        raise InvalidRequest("this would delete a memory for good", hint="open its forget page first")
    decided = await client.decide(id, accepts)
    undoing = Undoing(f"/inbox/{id}/reopen", {"wrong": wrong} if wrong else {})
    left = f" {decided.open:,} left." if decided.open else " Nothing else waits."
    if wrong:
        await client.confirm((wrong,), right=False)
        return changed(f"The old one stays; the new one is retired as wrong.{left}", undoing)
    if accepts and form.get("what") == "patch":
        return changed(f"Accepted: the playbook has changed.{left}", undoing)
    if accepts:
        return changed(f"Accepted. The old memory stays in the history.{left}", undoing)
    came_back = any(record.before == "hidden" for record in planned.records)
    return changed(f"{'It is shown again.' if came_back else 'Rejected: nothing changed.'}{left}", undoing)


async def reopen(request: Request) -> Response:
    """Take a decision back: the proposal waits again. `wrong`: the memory that the decision retired as wrong."""
    client, wrong = panel_of(request).client, (await form_of(request)).get("wrong", "")
    if wrong:
        await client.confirm((wrong,), undo=True)
    reopened = await client.reopen(request.path_params["id"])
    hidden = any(record.after == "hidden" for record in reopened.records)
    return changed(f"It waits for your decision again{', hidden as before' if hidden else ''}.")


ROUTES = [
    Route("/inbox", show),
    Route("/inbox/{id}", decide, methods=["POST"]),
    Route("/inbox/{id}/reopen", reopen, methods=["POST"]),
]
