"""Requests and replies about sessions: their times and outcome (W2), and their turns."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .event import Checked, Committed, HandoverTexts
from .instant import Instant
from .record import Status
from .reflection import ReflectionCost
from .request_fields import Many, Request


class ListSessions(Request, tag="sessions", frozen=True, kw_only=True):
    """List sessions, newest start first: of one host, or only open ones."""

    host: str = ""
    is_open: bool = False
    limit: Many = 20


class GetSession(Request, tag="session", frozen=True, kw_only=True):
    """Return one session, by its document or id or an unambiguous prefix."""

    id: str


class GetTranscript(Request, tag="transcript", frozen=True, kw_only=True):
    """Return `limit` turns of a session in order: around a turn, or the first ones. `id` as in `session`."""

    id: str
    around: str = ""
    limit: Many = 20


class GetSummary(Request, tag="summary", frozen=True, kw_only=True):
    """Return the summary of a session (C2). `id` as in `session`."""

    id: str


class FindSessions(Request, tag="find_sessions", frozen=True, kw_only=True):
    """Return the sessions that have these words in their title, their turns or the files that they edited, best first
    (C2). `host`: of one host alone."""

    words: Annotated[str, msgspec.Meta(min_length=1)]
    host: str = ""
    limit: Many = 10


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """A session. `pool` is "" for the personal pool; times are RFC 3339. `ended_at` is "" while it is open; `reason` is
    the host's, or `idle`. `heard_at`: the time of its newest turn. `records`: those that rest on it and are not hidden;
    `is_undone`: the user hid everything learnt from it."""

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
    records: int = 0
    is_undone: bool = False


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `sessions`. `going_on`: open sessions of the `total`."""

    sessions: tuple[SessionState, ...]
    total: int
    going_on: int


class SessionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `session`, with counts. `turns`: its events in the archive by kind; `troubles`: failed tool calls and
    commands; `records`: records that rest on it by status; `failed`: captures that could not be distilled; `family`:
    the sessions of which it is a copy or a continuation, or which are such of it; `commits`: all that were made;
    `checks`: the last run of each check; `reflections`: what other readers of the session cost and gave (W4)."""

    session: SessionState
    turns: dict[str, int]
    troubles: int
    records: dict[str, int]
    failed: int
    family: tuple[str, ...] = ()
    commits: tuple[Committed, ...] = ()
    checks: tuple[Checked, ...] = ()
    reflections: ReflectionCost | None = None


class FoundSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was found. `score` in [0, 1]: the share of the words' information that it has; `line`: the words
    of the turn that has most of it, "" where the title alone has them."""

    session: SessionState
    title: str
    score: float
    line: str = ""
    turn: str = ""


class SessionsFound(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `find_sessions`."""

    found: tuple[FoundSession, ...]


class HandOver(Request, tag="hand_over", frozen=True, kw_only=True):
    """Keep what an agent writes at a session's end for the next one (C1). `document`: the session, as `host:id`."""

    document: str
    at: Instant
    done: HandoverTexts = ()
    decided: HandoverTexts = ()
    open: HandoverTexts = ()
    closed: HandoverTexts = ()


class HandoverLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a hand-over. `verified`: the session has all its paths, commits, names and numbers, one of which is
    distinct; `told`: the agent's word; `refused`: the session does not have the `missing` paths, commits or numbers."""

    section: str
    text: str
    state: Literal["verified", "told", "refused"]
    missing: tuple[str, ...] = ()


class HandoverTaken(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `hand_over`: the lines, as far as memd can check them now; what the session says later may change it."""

    lines: tuple[HandoverLine, ...]


class SummaryLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a summary, and the turn that says it, "" for one that counts. `part`: from 1; a session that was taken
    up again after hours has another part."""

    section: Literal["asked", "done", "learnt", "ended", "handover", "open"]
    text: str
    turn: str = ""
    part: int = 1


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `summary`: a session with fewer than two requests and no edit has no lines. `edits` in `files`;
    `last_at`: the time of its last event."""

    session: SessionState
    title: str
    last_at: str
    requests: int
    edits: int
    files: int
    commits: int
    lines: tuple[SummaryLine, ...]


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """Characters `start:end` of a turn that a record states."""

    record: str
    status: Status
    start: int
    end: int


class TranscriptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A captured turn, verbatim but for secrets and for words that the user hid, which are `█`. `who`: as in `lines` of
    a deep answer."""

    turn: str
    at: str
    who: str
    text: str
    cited: tuple[Citation, ...] = ()


class SessionTurns(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `transcript`. `before`, `after`: the session's turns ahead of these and behind them."""

    document: str
    turns: tuple[TranscriptTurn, ...]
    before: int
    after: int
