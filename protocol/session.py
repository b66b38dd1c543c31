"""Requests and replies about sessions (W2). Invariant: they quote no turn."""

from __future__ import annotations

import msgspec

from .request_fields import Many, Request


class ListSessions(Request, tag="sessions", frozen=True, kw_only=True):
    """List sessions, newest start first: of one host, or only open ones."""

    host: str = ""
    is_open: bool = False
    limit: Many = 20


class GetSession(Request, tag="session", frozen=True, kw_only=True):
    """Return one session, by its document or id or an unambiguous prefix."""

    id: str


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """A session. `pool` is "" for the personal pool; times are RFC 3339. `ended_at` is "" while it is open; `reason` is
    the host's, or `idle`. `heard_at`: the time of its newest turn."""

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
    """Reply to `sessions`. `going_on`: open sessions of the `total`."""

    sessions: tuple[SessionState, ...]
    total: int
    going_on: int


class SessionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `session`, with counts. `turns`: its events in the archive by kind; `troubles`: failed tool calls and
    commands; `records`: records that rest on it by status; `failed`: captures that could not be distilled."""

    session: SessionState
    turns: dict[str, int]
    troubles: int
    records: dict[str, int]
    failed: int
