"""The panel's routes, those of each screen."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from ...protocol.errors import MemdError
from ..python.async_client import AsyncClient
from .screen import Panel, failed
from .screens import (
    activity_screen,
    agents_screen,
    changes_screen,
    correction_screen,
    fading_screen,
    forget_screen,
    inbox_screen,
    map_screen,
    memories_screen,
    profile_screen,
    readers_screen,
    reports_screen,
    sessions_screen,
    settings_screen,
    sharing_screen,
    skills_screen,
    time_screen,
    triage_screen,
)


def application(client: AsyncClient, folder: str) -> Starlette:
    """Return the application. `folder`: the folder that the panel was started in, which it shows first."""
    routes = [
        *profile_screen.ROUTES,
        *memories_screen.ROUTES,
        *correction_screen.ROUTES,
        *changes_screen.ROUTES,
        *activity_screen.ROUTES,
        *sessions_screen.ROUTES,
        *skills_screen.ROUTES,
        *agents_screen.ROUTES,
        *reports_screen.ROUTES,
        *readers_screen.ROUTES,
        *sharing_screen.ROUTES,
        *settings_screen.ROUTES,
        *fading_screen.ROUTES,
        *inbox_screen.ROUTES,
        *triage_screen.ROUTES,
        *forget_screen.ROUTES,
        *map_screen.ROUTES,
        *time_screen.ROUTES,
    ]
    app = Starlette(routes=routes, exception_handlers={MemdError: failed, HTTPException: failed, Exception: failed})
    app.state.panel = Panel(client, folder)
    return app
