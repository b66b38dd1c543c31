"""What happened last in a project, for the profile of the next session there (C1): "Last time here".

Invariants: it is read when a session starts, so a restart loses nothing, and what is forgotten, hidden or revoked is
not in it; a session is not told of itself; each line is in the session's own words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping

from ....protocol.instant import day
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from .current_state import DAY, LastSession, sessions_of
from .reading import SessionReading, cut, first_line

DAYS = 7
"""Days after which a last session is not told any more."""

REQUESTS, COMMITS, ITEMS = 2, 3, 4
"""Most of each."""

READ = 3
"""Newest sessions that are read until one has something to tell."""

KEPT = 8
"""Newest sessions of a pool that are remembered."""


class LastTime:
    """Tells what the last session in a project did. Any thread may call it."""

    def __init__(self, stores: Stores, now: Callable[[], int]) -> None:
        """`now`: microseconds."""
        self._stores, self._now = stores, now
        self._newest: dict[str, list[LastSession]] = {}
        self._lock = threading.Lock()

    def captured(self, documents: Iterable[str]) -> None:
        """Follow sessions that have new captures."""
        with self._lock:
            for document in documents if self._newest else ():
                entry = self._stores.sources.session(document)
                if entry is None or entry.opened.project not in self._newest or entry.opened.origin.agent:
                    continue
                rows = self._newest[entry.opened.project]
                others = [row for row in rows if row.entry.opened.document != document]
                row = LastSession(entry, self._stores.archive.last_event_at(document))
                self._newest[entry.opened.project] = [row, *others][:KEPT]

    def is_told(self, pool: str) -> bool:
        """Whether a session of the pool is new enough to be told."""
        return any(self._now() - row.last_at <= DAYS * DAY for row in self._rows(pool))

    def lines(self, pool: str, document: str, hears: Callable[[str], bool] | None) -> tuple[str, list[str]]:
        """Return the day of the last session before `document`, and its lines, the most useful first; none if there is
        nothing to tell."""
        rows = [row for row in self._rows(pool) if row.entry.opened.document != document]
        rows = [row for row in rows if self._now() - row.last_at <= DAYS * DAY]
        for row in rows[:READ]:
            session = row.entry.opened.document
            if (hears is not None and not hears(session)) or self._stores.sources.session(session) is None:
                continue
            reading = SessionReading(self._stores.archive.turns(session), self._stores.records)
            if reading.is_worth_telling:
                return day(reading.last_at), list(_told(reading, row.entry))
        return "", []

    def _rows(self, pool: str) -> list[LastSession]:
        """Return the newest sessions of a pool, the newest first."""
        with self._lock:
            if pool not in self._newest:
                self._newest[pool] = sessions_of(self._stores, pool, None)[:KEPT]
            return self._newest[pool]


def _told(reading: SessionReading, entry: SessionEntry) -> Iterator[str]:
    title = reading.title(entry.opened.origin.title)
    yield f"{title} ({entry.opened.origin.host})"
    items = list(reading.open_items())
    ends: Mapping[str, str] = {"user": "The user stopped it.", "error": "An error cut it off.", "": ""}
    if end := ends[reading.broke_off]:
        yield end
    for item in [item for item in items if item.kind != "plan"][:ITEMS]:
        yield f"{item.text} failed" if item.kind == "check" else f"{item.note}: {item.text}"
    if planned := [item.text for item in items if item.kind == "plan"]:
        more = f" and {len(planned) - ITEMS} more" if len(planned) > ITEMS else ""
        yield f"Left of the plan: {' · '.join(planned[:ITEMS])}{more}"
    if commits := [commit.subject for commit in reading.commits[-COMMITS:] if commit.subject != title]:
        yield f"Last commits: {' · '.join(commits)}"
    asked = [first_line(reading.words(request)) for request in reading.requests[-REQUESTS:]]
    if asked := [cut(words) for words in asked if words and words != title]:
        yield f"Asked last: {' · '.join(f'“{words}”' for words in asked)}"
