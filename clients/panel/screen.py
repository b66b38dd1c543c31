"""What all screens share: the scope and the time in a request's address, the frame around a screen, the answer to a
change, and errors.

A screen is a GET; its address has everything that it shows. A change is a POST; its answer is a notice, perhaps with an
undo, and the page then asks for the screen again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from ...protocol.errors import InvalidRequest, MemdError, NotFound, Refused, Unavailable
from ...protocol.reply import PoolSummary, StatusText
from ..python.async_client import AsyncClient
from . import wording

_STATUS_CODES: tuple[tuple[type[MemdError], int], ...] = (
    (NotFound, 404),
    (InvalidRequest, 400),
    (Refused, 403),
    (Unavailable, 503),
)


T = TypeVar("T")

_DIGITS = 15
"""Digits of a number in an address, at most."""


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in wording.FILTERS:
        environment.filters[function.__name__] = function  # pyright: ignore[reportUnknownMemberType]
    return environment


_TEMPLATES = _environment()


@dataclass(frozen=True)
class Panel:
    """What the screens work with. `folder`: the folder that the panel was started in."""

    client: AsyncClient
    folder: str

    async def pools(self) -> tuple[PoolSummary, ...]:
        """Return all pools; none for the holder of a pass, who may not list them (A1)."""
        return () if self.client.has_pass else (await self.client.pools()).pools

    async def folder_name(self) -> str:
        """Return the words for the pools that a question from the folder searches."""
        name = Path(self.folder).name or self.folder
        if self.client.has_pass:
            return f"{name} and you"
        found = await self.client.why_scope(self.folder)
        is_project = any(pool != "personal" for pool in found.reads)
        return f"{found.title or name} and you" if is_project else "only you (this folder is no project)"

    async def status(self) -> StatusText | None:
        """Return the daemon's state; None for the holder of a pass."""
        return None if self.client.has_pass else await self.client.status()


@dataclass(frozen=True)
class ShownScope:
    """What a request's address says about whose memory is shown and as of when.

    `pool`: "" for the panel's folder with the user's own pool. `as_of`: the world's time, `believed_at`: memd's time,
    both RFC 3339 or "" for now (Q12).
    """

    folder: str
    pool: str = ""
    as_of: str = ""
    believed_at: str = ""

    @property
    def readable(self) -> dict[str, Any]:
        """The fields of a request that reads the pools in scope."""
        if not self.pool:
            return {"cwd": self.folder}
        return {"pools": tuple(dict.fromkeys(("personal", self.pool)))}

    @property
    def times(self) -> dict[str, Any]:
        """The fields of a request that reads the past."""
        return {"as_of": self.as_of, "believed_at": self.believed_at}

    @property
    def is_past(self) -> bool:
        """Whether a time is named; nothing can be changed then."""
        return bool(self.as_of or self.believed_at)

    def query(self, **more: str) -> str:
        """Return this scope as the query of an address, "" or beginning with "?"."""
        values = {"pool": self.pool, "as_of": self.as_of, "believed_at": self.believed_at, **more}
        text = urlencode({name: value for name, value in values.items() if value})
        return f"?{text}" if text else ""


def panel_of(request: Request) -> Panel:
    """Return the panel that serves a request."""
    return request.app.state.panel


def scope_of(request: Request) -> ShownScope:
    """Return the scope in a request's address."""
    names = request.query_params
    return ShownScope(
        panel_of(request).folder, names.get("pool", ""), names.get("as_of", ""), names.get("believed_at", "")
    )


def number_of(request: Request, name: str, default: int) -> int:
    """Return the whole number that a request's address gives for a name, or the default."""
    text = request.query_params.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else default


async def screen(
    request: Request,
    template: str,
    title: str,
    *,
    status: StatusText | None = None,
    pools: tuple[PoolSummary, ...] | None = None,
    **values: object,
) -> HTMLResponse:
    """Return a screen in its frame. `status`, `pools`: the daemon's state and the pools, where the screen has asked for
    them already. The value `is_scoped`, by default True: whether a pool can be chosen for it; `scope_name`: what it
    shows without a pool."""
    panel, scope = panel_of(request), scope_of(request)
    is_of_folder = values.get("is_scoped", True) and not values.get("scope_name")
    state, listed, folder_name = await asyncio.gather(
        _or(status, panel.status),
        _or(pools, panel.pools),
        panel.folder_name() if is_of_folder else _or("", panel.folder_name),
    )
    named = values.pop("scope_name", None) or folder_name
    titles = pool_titles(listed)
    frame = {
        "title": title,
        "scope": scope,
        "status": state,
        "pools": listed,
        "pool_titles": titles,
        "path": request.url.path,
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "now": _at_now(request),
        "query": request.query_params.get("q", ""),
        "is_scoped": True,
        "scope_name": named,
        "where": _where(scope, titles, str(named)),
    }
    return HTMLResponse(_TEMPLATES.get_template(template).render(frame | values))


def _where(scope: ShownScope, titles: Mapping[str, str], named: str) -> str:
    """Return the words for whose memory a screen shows."""
    if scope.pool == "personal":
        return "only you"
    return f"{titles.get(scope.pool, scope.pool)} and you" if scope.pool else named


async def _or(known: T | None, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what is known, or else ask for it."""
    return await ask() if known is None else known


def _at_now(request: Request) -> str:
    """Return the address of this screen without a time."""
    names = {name: value for name, value in request.query_params.items() if name not in ("as_of", "believed_at")}
    return request.url.path + (f"?{urlencode(names)}" if names else "")


def piece(template: str, **values: object) -> HTMLResponse:
    """Return a part of a screen, without the frame."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(values))


def pool_titles(pools: tuple[PoolSummary, ...]) -> dict[str, str]:
    """Return the title of each pool by its name."""
    return {pool.pool: pool.title or pool.pool for pool in pools}


@dataclass(frozen=True)
class Undoing:
    """How to take a change back: the address of a POST and its form's fields."""

    address: str
    fields: Mapping[str, str]


def changed(text: str, undoing: Undoing | None = None, go: str = "") -> HTMLResponse:
    """Return the notice of a change, after which the page shows the screen again, or the one at the address `go`; ""
    where that screen itself tells it."""
    answer = HTMLResponse(_TEMPLATES.get_template("notice.html").render(text=text, undoing=undoing) if text else "")
    answer.headers["HX-Retarget"] = "#notice"
    answer.headers["HX-Push-Url"] = "false"
    answer.headers["HX-Trigger"] = json.dumps({"memd-changed": {"go": go}})
    return answer


async def failed(request: Request, error: Exception) -> HTMLResponse:
    """Return an error as the panel shows it: a notice after a change, else a screen."""
    if isinstance(error, HTTPException):
        error = NotFound("there is no such page", hint="choose one at the side")
    elif not isinstance(error, MemdError):
        error = MemdError("the panel failed", hint="the terminal in which `memd panel` runs has the reason")
    code = next((code for kind, code in _STATUS_CODES if isinstance(error, kind)), 500)
    html = _TEMPLATES.get_template("error.html").render(error=error, is_change=request.method == "POST")
    answer = HTMLResponse(html, code)
    if request.method == "POST":
        answer.headers["HX-Retarget"] = "#notice"
        answer.headers["HX-Push-Url"] = "false"
    return answer


async def form_of(request: Request) -> dict[str, str]:
    """Return the text fields of a form, with line ends as LF."""
    fields = parse_qsl((await request.body()).decode(errors="replace"), keep_blank_values=True)
    return {name: value.replace("\r\n", "\n") for name, value in fields}
