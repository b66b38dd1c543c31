"""What happened last in a project, for the profile of the next session there (C1): "Last time here".

Invariants: it is read when a session starts, so a restart loses nothing, and what is forgotten, hidden or revoked is
not in it; a session is not told of itself; each line is in the session's own words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from ....protocol.instant import day
from ....stages.commitments import subject
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from .current_state import DAY, LastSession, sessions_of
from .reading import SessionReading, cut, first_line, is_answer

DAYS = 7
"""Days after which a last session is not told any more."""

STEMS = 3
"""Least stems, without stop words, of a request that is told."""

REQUESTS, COMMITS, ITEMS = 2, 3, 4
"""Most of each."""

READ = 3
"""Newest sessions that are read until one has something to tell."""

TELLING = 1024
"""Sessions of which it is remembered whether they have something to tell."""

KEPT = 8
"""Newest sessions of a pool that are remembered."""


class LastTime:
    """Tells what the last session in a project did. Any thread may call it."""

    def __init__(self, stores: Stores, now: Callable[[], int]) -> None:
        """`now`: microseconds."""
        self._stores, self._now = stores, now
        self._newest: dict[str, list[LastSession]] = {}
        self._telling: dict[str, int] = {}  # 0, or the time of the last event at which there was nothing to tell
        self._told: tuple[tuple[str, int, int, int], tuple[str, list[str]]] = ("", 0, 0, 0), ("", [])
        """The last answer, which holds until a log grows or a secret is cut from the archive."""
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

    def is_told(self, pool: str, document: str, hears: Callable[[str], bool] | None) -> bool:
        """Whether a session of the pool other than `document` is new enough to be told, and has something to tell."""
        return self._last(pool, document, hears) is not None

    def lines(self, pool: str, document: str, hears: Callable[[str], bool] | None) -> tuple[str, list[str]]:
        """Return the day of the last session before `document`, and its lines, the most useful first; none if there is
        nothing to tell."""
        last = self._last(pool, document, hears)
        if last is None:
            return "", []
        archive = self._stores.archive
        now = last.opened.document, self._stores.journal.last, archive.last, archive.cut_by
        known, told = self._told
        if known != now:
            reading = self._reading(last.opened.document)
            told = day(reading.last_at), list(_told(reading, last))
            self._told = now, told
        return told

    def _last(self, pool: str, document: str, hears: Callable[[str], bool] | None) -> SessionEntry | None:
        """Return the newest session of a pool that has something to tell, among the newest few."""
        rows = [row for row in self._rows(pool) if row.entry.opened.document != document]
        for row in [row for row in rows if self._now() - row.last_at <= DAYS * DAY][:READ]:
            session = row.entry.opened.document
            is_known = self._stores.sources.feeds(session, (pool,))  # neither forgotten nor undone
            if is_known and (hears is None or hears(session)) and self._is_telling(row):
                return row.entry
        return None

    def _is_telling(self, row: LastSession) -> bool:
        """Whether a session has something to tell. It is read again only if it had nothing and has new captures."""
        session = row.entry.opened.document
        known = self._telling.get(session)
        if known is None or (known and known != row.last_at):
            if len(self._telling) >= TELLING:
                self._telling.clear()
            self._telling[session] = known = 0 if self._reading(session).is_worth_telling else row.last_at
        return not known

    def _reading(self, document: str) -> SessionReading:
        return SessionReading(self._stores.archive.turns(document), self._stores.records)

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
    if commits := [subject for subject in reading.subjects[-COMMITS:] if subject != title]:
        yield f"Last commits: {' · '.join(commits)}"
    requests = (request for request in reversed(reading.requests) if not is_answer(request))
    asked = (first_line(reading.words(request)) for request in requests)
    telling = (cut(words) for words in asked if len(subject(words)) >= STEMS and words != title)
    if last := list(islice(telling, REQUESTS)):
        yield f"Asked last: {' · '.join(f'“{words}”' for words in reversed(last))}"
