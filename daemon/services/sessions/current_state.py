"""The current state of a pool: what is open, what was decided lately, what to watch, and the last sessions (C1).

Nothing is stored but the user's own words: the rest is read from sessions and records when it is asked for, so that
what is forgotten, hidden or revoked is in no state. The user's words are captures of a document of the pool, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ....protocol.errors import MemdError
from ....protocol.event import Stated
from ....protocol.instant import from_micros, micros
from ....protocol.record import Record
from ....protocol.state import CurrentState, Section, StateItem
from ....stages.batch import PERSONAL
from ...projections.placement import AGENT
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from ..service import Caller
from .reading import SessionReading
from .threads import ReadSession, Thread, open_threads

MOST: dict[Section, int] = {"open": 20, "decisions": 15, "watch": 15, "sessions": 5}
"""Most items of each section."""

SESSIONS = 40
"""Newest sessions of a pool that are read."""

OPENED = 100
"""Sessions of a pool that were opened last, among which the newest are looked for: to find when one ended, memd reads
the index of all its turns."""

DECIDED_DAYS = 14
DAY = 86_400_000_000

INTERNAL = "memd:"
"""Prefix of memd's own documents."""


def document_of(pool: str) -> str:
    """Return the document with the user's words on the state of a pool."""
    return f"{INTERNAL}state/{pool}"


class LastSession(NamedTuple):
    """A session with the time of its last event, in microseconds."""

    entry: SessionEntry
    last_at: int


def sessions_of(stores: Stores, pool: str, hears: Callable[[str], bool] | None) -> list[LastSession]:
    """Return the sessions of a pool that may be read, those of an agent for its own pool, the newest first."""
    if pool.startswith(AGENT):
        agent = pool.removeprefix(AGENT)
        entries = [entry for entry in stores.sources.all_sessions() if entry.opened.origin.agent == agent]
    else:
        known = stores.sources.sessions_of(stores.sources.documents([pool])).values()
        entries = [entry for entry in known if not entry.opened.origin.agent]
    shown = [
        LastSession(entry, at)
        for entry in sorted(entries, key=_opened, reverse=True)[:OPENED]
        if not entry.opened.document.startswith(INTERNAL)
        and (hears is None or hears(entry.opened.document))
        and (at := stores.archive.last_event_at(entry.opened.document))
    ]
    return sorted(shown, key=lambda session: session.last_at, reverse=True)


def _opened(entry: SessionEntry) -> int:
    try:
        return micros(entry.opened.at)
    except MemdError:
        return 0


class StateReader:
    """Reads the state of a pool."""

    def __init__(self, stores: Stores, title: Callable[[str], str], now: Callable[[], int]) -> None:
        """`now`: microseconds."""
        self._stores, self._title, self._now = stores, title, now

    def state(self, pool: str, caller: Caller) -> CurrentState:
        """Return the state of a pool, as far as the caller may see it."""
        sessions = sessions_of(self._stores, pool, caller.hears)[:SESSIONS]
        read = [ReadSession(s.entry.opened.document, self.reading(s.entry.opened.document)) for s in sessions]
        threads = open_threads(reversed(read))
        stated, closed = self.stated(pool, caller)
        left = [_item(thread) for thread in threads if thread.id not in closed]
        telling = [pair for pair in zip(sessions, read, strict=True) if pair[1].reading.is_worth_telling]
        told = [_told(session, row.reading) for session, row in telling[: MOST["sessions"]]]
        all_items = [*stated, *left, *self._decisions(pool, caller), *told]
        items: list[StateItem] = []
        hidden: dict[str, int] = {}
        for section, most in MOST.items():
            rows = [item for item in all_items if item.section == section]
            items += rows[:most]
            if len(rows) > most:
                hidden[section] = len(rows) - most
        return CurrentState(pool=pool, title=self._title(pool), rev=_rev(items), items=tuple(items), hidden=hidden)

    def reading(self, document: str) -> SessionReading:
        """Return what a session was about."""
        return SessionReading(self._stores.archive.turns(document), self._stores.records)

    def stated(self, pool: str, caller: Caller) -> tuple[list[StateItem], set[str]]:
        """Return the user's own items, the newest first, and the ids of all items that the user closed."""
        items: dict[str, StateItem] = {}
        closed: set[str] = set()
        document = document_of(pool)
        if caller.hears is not None and not caller.hears(document):
            return [], closed
        for captured in self._stores.archive.turns(document):
            if isinstance(event := captured.event, Stated):
                if event.closes:
                    closed.add(event.closes)
                    items.pop(event.closes, None)
                if event.text:
                    items[event.turn] = StateItem(
                        id=event.turn, section=event.section, text=event.text, by="user", at=event.at, since=event.at
                    )
        return list(reversed(items.values())), closed

    def _decisions(self, pool: str, caller: Caller) -> Iterator[StateItem]:
        """Yield the decisions of the last days and the pinned ones, the newest first."""
        since = self._now() - DECIDED_DAYS * DAY
        records = self._stores.records.recent(pool, None, 10 * MOST["decisions"])
        kept = [record for record in records if _is_decision(record, since)]
        for record in sorted(kept, key=lambda record: micros(record.provenance.said_at), reverse=True):
            if caller.permits is None or caller.permits(record):
                said_at, span = record.provenance.said_at, record.provenance.spans[0]
                yield StateItem(
                    id=record.id[:8],
                    section="decisions",
                    text=record.description,
                    by="record",
                    at=said_at,
                    document=span.document,
                    turn=span.turn,
                )


def _is_decision(record: Record, since: int) -> bool:
    is_recent = record.pinned or micros(record.provenance.said_at) >= since
    return record.type == "decision" and record.status == "active" and not record.flags and is_recent


def _item(thread: Thread) -> StateItem:
    return StateItem(
        id=thread.id,
        section="watch" if thread.kind == "check" else "open",
        text=thread.text,
        by="user" if thread.kind == "later" else thread.kind,
        at=thread.at,
        since=thread.since,
        document=thread.document,
        turn=thread.turn,
        note=thread.note,
    )


def _told(session: LastSession, reading: SessionReading) -> StateItem:
    document, origin = session.entry.opened.document, session.entry.opened.origin
    return StateItem(
        id=document,
        section="sessions",
        text=reading.title(origin.title),
        by="session",
        at=from_micros(session.last_at),
        document=document,
    )


def _rev(items: Sequence[StateItem]) -> str:
    """Return the revision of the lines that the user can change."""
    lines = "\n".join(f"{item.id} {item.text}" for item in items if item.section in {"open", "watch"})
    return blake2b(lines.encode(), digest_size=6).hexdigest()


def pool_of(scope: Sequence[str], agent: str) -> str:
    """Return the pool of a state: the agent's, else the project's, else the personal one."""
    own = [pool for pool in scope if pool.startswith(AGENT)]
    if agent and own:
        return own[-1]
    return next((pool for pool in reversed(scope) if pool != PERSONAL and not pool.startswith(AGENT)), PERSONAL)
