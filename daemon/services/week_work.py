"""The work of a week by project, as the sessions tell it to the report."""

from __future__ import annotations

from typing import NamedTuple


class SessionWork(NamedTuple):
    """A session. `last_at`: the time of its last event, RFC 3339; `commits`: their subjects."""

    document: str
    title: str
    host: str
    last_at: str
    commits: tuple[str, ...]
    edits: int


class OpenThread(NamedTuple):
    """What a session left open, in its words or the user's own."""

    id: str
    text: str


class ProjectWork(NamedTuple):
    """The sessions of a pool, the newest first, and what is open after them. `unread`: sessions that nobody read for
    this, because there were too many; `folder`: the name of the folder of the newest one."""

    pool: str
    sessions: tuple[SessionWork, ...]
    threads: tuple[OpenThread, ...]
    unread: int = 0
    folder: str = ""
