"""Settings: each with its value, its source and what it does; changed in memd.toml and in the running daemon (U6)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.errors import MemdError
from ....protocol.settings import Setting
from ..screen import Undoing, changed, form_of, panel_of, piece, screen

FIRST: dict[str, tuple[str, ...]] = {
    "What memd listens to": ("ignored_folders", "own_addresses"),
    "What agents get": ("hook.recall",),
    "What memd keeps": ("archive_keep_days", "backup_every_h", "backup_keep"),
    "How much memd works": ("idle_s", "worker_threads"),
}
"""Settings that a person wants to change, by what they are for."""

MORE: dict[str, tuple[str, ...]] = {
    "Sessions": ("session_idle_min",),
    "What agents get, in detail": ("hook", "relevance_floor", "simple_below_sessions", "tag_boost"),
    "What fades": ("forgetting",),
    "The remote model": ("remote",),
    "The archive": ("archive_keep_mb", "archive_keep_tool_output", "archive_keep_by_pool"),
}
"""The others by what they are for, in the order of the screen; all that no group names are of memd's own work."""

Table = dict[str, object]

OTHERS = "How memd works"
OPEN_TABLES = frozenset({"tag_boost", "archive_keep_by_pool"})
"""Tables whose entries the user names; each is one setting."""


@dataclass(frozen=True)
class SettingGroup:
    """Settings under one heading; those of a table are single ones, named `table.name`."""

    title: str
    settings: list[Setting]


def entries_of(setting: Setting) -> Iterator[Setting]:
    """Yield the entries of a table, also of a table in it, as settings of their own; any other setting as it is."""
    value, default = (tomllib.loads(f"at = {text}")["at"] for text in (setting.value, setting.default))
    if isinstance(default, dict) and setting.name not in OPEN_TABLES:
        yield from _entries(setting, "", value, cast("Table", default))
    else:
        yield setting


def _entries(setting: Setting, path: str, values: Table, defaults: Table) -> Iterator[Setting]:
    for name, default in defaults.items():
        value, at = values.get(name, default), f"{path}.{name}"
        if isinstance(default, dict):
            yield from _entries(setting, at, cast("Table", value), cast("Table", default))
            continue
        yield Setting(
            name=setting.name + at,
            value=json.dumps(value, ensure_ascii=False),
            default=json.dumps(default, ensure_ascii=False),
            source="default" if value == default else setting.source,
            label=_label_of(setting, at),
            about=setting.entries.get(at.split(".")[1], ""),
            waits=setting.waits,
        )


def _label_of(setting: Setting, at: str) -> str:
    """Return the name for people of the entry at a path such as `.half_lives.stable`."""
    _, name, *inner = at.split(".")
    return ": ".join(filter(None, (setting.labels.get(name, ""), *inner)))


def grouped(settings: Sequence[Setting]) -> Iterator[SettingGroup]:
    """Yield the settings by group, each once, the groups of `FIRST` first; those that no group names come last."""
    by_name = {setting.name: setting for setting in settings}
    entries = {entry.name: entry for entry in _all(settings)}
    first = {name for names in FIRST.values() for name in names}
    for title, names in FIRST.items():
        if here := [entries[name] for name in names if name in entries]:
            yield SettingGroup(title, here)
    placed = {name for names in MORE.values() for name in names}
    others = {OTHERS: tuple(name for name in by_name if name not in placed)}
    for title, names in (MORE | others).items():
        found = (entry for name in names if name in by_name for entry in entries_of(by_name[name]))
        if here := [entry for entry in found if entry.name not in first]:
            yield SettingGroup(title, here)


async def show(request: Request) -> Response:
    """Show all settings; `at` names the one that was changed last."""
    settings = await panel_of(request).client.settings()
    groups, at = list(grouped(settings.settings)), request.query_params.get("at", "")
    first = sum(group.title in FIRST for group in groups)
    return await screen(
        request,
        "settings.html",
        "Settings",
        is_scoped=False,
        groups=groups,
        first_groups=first,
        is_more_open=any(setting.name == at for group in groups[first:] for setting in group.settings),
        file=settings.file,
        problem=settings.problem,
        at=at,
    )


async def put(request: Request) -> Response:
    """Change a setting, or give it its default again; a refusal stands beside it."""
    form, client = await form_of(request), panel_of(request).client
    name, value = form.get("name", ""), form.get("value", "")
    is_reset = form.get("reset") == "1"
    before = await _named(request, name)
    try:
        settings = await client.put_setting(name, None if is_reset else value)
    except MemdError as error:
        return piece("setting_problem.html", error=error)
    now = next((setting for setting in _all(settings.settings) if setting.name == name), None)
    former = (
        {"name": name, "value": before.value} if before and before.source == "file" else {"name": name, "reset": "1"}
    )
    waits = " It takes effect at memd's next start." if now and now.waits else ""
    text = f"{(now and now.label) or name} is {now.value if now else value} now.{waits}"
    return changed(text, Undoing("/settings", former), go=f"/settings?at={name}")


async def _named(request: Request, name: str) -> Setting | None:
    settings = await panel_of(request).client.settings()
    return next((setting for setting in _all(settings.settings) if setting.name == name), None)


def _all(settings: Sequence[Setting]) -> Iterator[Setting]:
    for setting in settings:
        yield from entries_of(setting)


ROUTES = [Route("/settings", show), Route("/settings", put, methods=["POST"])]
