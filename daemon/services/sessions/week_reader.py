"""What the sessions of a week did, by project, for the report (G6)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from ....protocol.errors import MemdError
from ....protocol.instant import micros
from ....stages.batch import PERSONAL
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from ..service import Caller
from ..week_work import OpenThread, ProjectWork, SessionWork
from .current_state import INTERNAL, StateReader
from .reading import cut
from .threads import ReadSession, open_threads

READ = 60
"""Most sessions that one report reads."""

_NO_SESSIONS = frozenset({"memd", "cli", "python", "panel", "git", "markdown"})
"""Hosts whose documents are single statements or files, not sessions in which somebody works."""


class WeekReader:
    """Reads the sessions of a week."""

    def __init__(self, stores: Stores, reader: StateReader, home: Callable[[str], str]) -> None:
        """`home`: returns the pool to which the user joined a pool, or the pool itself."""
        self._stores, self._reader, self._home = stores, reader, home

    def work(self, since: int, until: int, caller: Caller) -> tuple[ProjectWork, ...]:
        """Return the work between two times in microseconds, the project with most sessions first."""
        heard = {
            entry.opened.document: at
            for entry in self._stores.sources.all_sessions()
            if self._may_be_in(entry, since, until, caller)
            and since <= (at := self._stores.archive.last_event_at(entry.opened.document)) < until
        }
        entries = self._stores.sources.sessions_of(sorted(heard, key=lambda name: (-heard[name], name)))
        families: dict[str, SessionEntry] = {}
        for entry in entries.values():  # of a session and its copies, the newest
            families.setdefault(entry.family, entry)
        newest = list(families.values())
        read = newest[:READ]
        by_pool = sorted(read, key=self._pool)
        unread = [self._pool(entry) for entry in newest[READ:]]
        groups = (
            self._project(pool, list(of_pool), caller, unread.count(pool))
            for pool, of_pool in groupby(by_pool, key=self._pool)
        )
        told = [project for project in groups if project.sessions]
        return tuple(sorted(told, key=lambda project: (-len(project.sessions) - project.unread, project.pool)))

    def _may_be_in(self, entry: SessionEntry, since: int, until: int, caller: Caller) -> bool:
        """Whether a session may have its last event in the period, by the times in the tables."""
        opened = entry.opened
        if opened.document.startswith(INTERNAL) or opened.document.partition(":")[0] in _NO_SESSIONS:
            return False
        if caller.hears is not None and not caller.hears(opened.document):
            return False
        if not self._stores.sources.feeds(opened.document, (opened.project or PERSONAL,)):  # the user undid it
            return False
        try:
            return micros(opened.at) < until and (not entry.closed_at or micros(entry.closed_at) >= since)
        except MemdError:
            return False

    def _pool(self, entry: SessionEntry) -> str:
        return self._home(entry.opened.project) if entry.opened.project else PERSONAL

    def _project(self, pool: str, entries: list[SessionEntry], caller: Caller, unread: int) -> ProjectWork:
        """Return the work of the sessions of a pool, which are the newest first."""
        read = [ReadSession(entry.opened.document, self._reader.reading(entry.opened.document)) for entry in entries]
        sessions = tuple(
            SessionWork(
                document=entry.opened.document,
                title=cut(reading.title(entry.opened.origin.title)),
                host=entry.opened.origin.host,
                last_at=reading.last_at,
                commits=tuple(reading.subjects),
                edits=reading.files.total(),
            )
            for entry, (_, reading) in zip(entries, read, strict=True)
            if reading.is_worth_telling
        )
        stated, closed = self._reader.stated(pool, caller)
        threads = [OpenThread(item.id, item.text) for item in stated if item.section == "open"] + [
            OpenThread(thread.id, f"{thread.text} failed" if thread.kind == "check" else thread.text)
            for thread in open_threads(reversed(read))
            if thread.id not in closed
        ]
        return ProjectWork(pool, sessions, tuple(threads), unread, Path(entries[0].opened.origin.cwd).name)
