"""Requests and replies about sessions: when each began and ended, and what came of it (W2).

Comes in: a wish to see them. Goes out: frozen values. Invariant: nothing here quotes what was said.
"""

from __future__ import annotations

import msgspec

from .intent import Many, Request


class ListSessions(Request, tag="sessions", frozen=True, kw_only=True):
    """Sessions, the one that began last first; of one host, or only those that go on."""

    host: str = ""
    is_open: bool = False
    limit: Many = 20


class GetSession(Request, tag="session", frozen=True, kw_only=True):
    """One session by its document, its id, or an unambiguous beginning of either."""

    id: str


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """A session: its document, its pool ("" is the user's own), and its times as RFC 3339.

    `ended_at` is "" while it goes on; `reason` is the host's own, or `idle`. `heard_at` is when its newest turn came.
    """

    document: str
    pool: str
    title: str = ""
    agent: str = ""
    cwd: str = ""
    live: bool = True
    began_at: str = ""
    heard_at: str = ""
    ended_at: str = ""
    reason: str = ""


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Of `sessions`: some of `total`, of which `going_on` have not ended."""

    sessions: tuple[SessionState, ...]
    total: int
    going_on: int


class SessionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Of `session`: what it held and what came of it.

    `turns`: how many events of each kind the archive holds; `troubles`: how many tool calls and commands failed;
    `records`: how many records rest on it, by status; `failed`: its captures that could not be distilled.
    """

    session: SessionState
    turns: dict[str, int]
    troubles: int
    records: dict[str, int]
    failed: int
