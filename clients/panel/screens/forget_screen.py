"""Forget for good: what would go and what is out of reach, then the job and its proof; or hide it instead (T10)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.errors import InvalidRequest, MemdError, NotFound, Refused, Unavailable
from ....protocol.record import Record
from ....protocol.reply import ForgetPlan, JobState
from ...python.async_client import AsyncClient
from ..screen import Undoing, changed, form_of, panel_of, piece, screen
from ..wording import host, may_hide

WORD = "forget"
SHOWN = 40
"""Memories of a plan that the screen lists."""

OWN_HOSTS = frozenset({"cli", "panel", "memd", "mcp"})
"""Hosts that keep no transcript."""


@dataclass(frozen=True)
class ForgetChoice:
    """What the user chose to forget: records, or all that has a phrase, or a session, or a source. `proposal`: that of
    the inbox which the user accepts by it, or ""."""

    ids: tuple[str, ...] = ()
    query: str = ""
    session: str = ""
    source: str = ""
    proposal: str = ""

    @property
    def selection(self) -> dict[str, Any]:
        """The fields of a request that forgets."""
        return {"ids": self.ids, "query": self.query, "session": self.session, "source": self.source}

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a form."""
        values = {**self.selection, "ids": ",".join(self.ids), "proposal": self.proposal}
        return {name: value for name, value in values.items() if value}

    def __bool__(self) -> bool:
        return bool(self.ids or self.query or self.session or self.source)


async def show(request: Request) -> Response:
    """Show what would go, or a form that asks what to forget."""
    client, names = panel_of(request).client, request.query_params
    choice = ForgetChoice(
        ids=tuple(filter(None, names.getlist("id"))),
        query=names.get("query", "").strip(),
        session=names.get("session", ""),
        source=names.get("source", ""),
        proposal=names.get("proposal", ""),
    )
    if not choice:
        return await screen(request, "forget_what.html", "Forget for good")
    record = await _record(client, choice)
    plan = await client.preview_forget(**choice.selection)
    return await screen(
        request,
        "forget.html",
        "Forget for good",
        choice=choice,
        record=record,
        plan=plan,
        groups=_groups(plan),
        transcripts=_transcripts(plan),
        backups=await client.backups(),
        may_hide=bool(choice.session or (record and may_hide(record))),
        back=_back(choice),
        word=WORD,
    )


async def _record(client: AsyncClient, choice: ForgetChoice) -> Record | None:
    """Return the one record of a choice, None for several and for a hidden one, which no read returns."""
    try:
        return await client.get(choice.ids[0]) if len(choice.ids) == 1 else None
    except NotFound:
        return None


def _groups(plan: ForgetPlan) -> list[tuple[str, list[Any]]]:
    """Return the listed memories of a plan by what happens to them."""
    titles = {
        "chosen": "as chosen",
        "source": "also lost: said in the same turns",
        "loses a source": "stay, because other turns support them",
    }
    shown = plan.records[:SHOWN]
    rows = ((title, [record for record in shown if record.why == why]) for why, title in titles.items())
    return [(title, records) for title, records in rows if records]


def _transcripts(plan: ForgetPlan) -> dict[str, int]:
    """Return the number of sessions by the host that may have a transcript of its own."""
    return Counter(name for document in plan.documents if (name := host(document)) not in OWN_HOSTS)


def _back(choice: ForgetChoice) -> str:
    if choice.proposal:
        return "/inbox"
    return f"/memories/{choice.ids[0]}" if len(choice.ids) == 1 else "/memories"


async def forget(request: Request) -> Response:
    """Start to forget once the user typed the word. Raises Refused without it."""
    form, client = await form_of(request), panel_of(request).client
    if form.get("word", "").strip().lower() != WORD:
        raise Refused("nothing was forgotten", hint=f"type the word “{WORD}” first")
    choice = _choice_of(form)
    job = await (_accept(client, choice) if choice.proposal else client.forget(**choice.selection))
    return changed("", go=f"/forget/{job.id}")


def _choice_of(form: dict[str, str]) -> ForgetChoice:
    return ForgetChoice(
        ids=tuple(filter(None, form.get("ids", "").split(","))),
        query=form.get("query", ""),
        session=form.get("session", ""),
        source=form.get("source", ""),
        proposal=form.get("proposal", ""),
    )


async def _accept(client: AsyncClient, choice: ForgetChoice) -> JobState:
    """Accept a proposal to forget just the chosen record. Raises InvalidRequest for one about another."""
    planned = await client.decide(choice.proposal, True, dry_run=True)
    if [(record.id, record.after) for record in planned.records] != [(id, "") for id in choice.ids]:
        raise InvalidRequest("the proposal is about another memory", hint="open it again in the inbox")
    job = (await client.decide(choice.proposal, True)).job
    assert job, "an accepted deletion is a job"
    return job


async def hide(request: Request) -> Response:
    """Hide a memory or a session from every answer; both can be taken back."""
    form, client = await form_of(request), panel_of(request).client
    if session := form.get("session", ""):
        await client.undo((session,))
        undoing = Undoing("/forget/show", {"session": session})
        return changed("Hidden: no answer has anything of this session.", undoing, "/memories?show=hidden")
    proposed = await client.propose_forget((form.get("ids", ""),), "you", hide=True)
    if not proposed.hidden:
        raise Refused("it stays visible", hint="you pinned it, or decided earlier to keep it; “Wrong” retires it")
    undoing = Undoing(f"/inbox/{proposed.ids[0]}", {"accept": "no"})
    return changed("Hidden from every answer. Your inbox has it until you decide.", undoing, "/inbox")


async def show_again(request: Request) -> Response:
    """Show a session again that was hidden."""
    await panel_of(request).client.redo(((await form_of(request)).get("session", ""),))
    return changed("It is shown again.")


async def show_job(request: Request) -> Response:
    """Show how far the deletion is, and its report once it is done."""
    return await screen(request, "forget_job.html", "Forgetting", **await _progress(request))


async def progress(request: Request) -> Response:
    """Show the same without the frame; the page asks for it each second until the job has ended."""
    return piece("forget_progress.html", **await _progress(request))


async def _progress(request: Request) -> dict[str, Any]:
    id = request.path_params["id"]
    try:
        return {"job": await panel_of(request).client.job(id), "id": id, "problem": None, "is_over": False}
    except MemdError as error:
        return {"job": None, "id": id, "problem": error, "is_over": not isinstance(error, Unavailable)}


ROUTES = [
    Route("/forget", show),
    Route("/forget", forget, methods=["POST"]),
    Route("/forget/hide", hide, methods=["POST"]),
    Route("/forget/show", show_again, methods=["POST"]),
    Route("/forget/{id}", show_job),
    Route("/forget/{id}/progress", progress),
]
