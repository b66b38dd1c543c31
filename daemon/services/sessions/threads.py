"""What is open in a project, from its sessions in order (C1).

An item that a session leaves open stays open while sessions carry it on, in their plan or by their words. It ends when
a plan or a sentence says so, or when the next session that works ends without it, because most open ends are dropped
without a word. Items of which nobody speaks for `ACTIVE_DAYS` are gone as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from ....protocol.event import Committed, Said, text
from ....protocol.instant import day
from ....stages.commitments import closes, subject
from .reading import PLANNED_OPEN, OpenItem, OpenKind, SessionReading, check_kind

SHARED = 0.6
"""Share of the stems of one item that another one has, where both are the same."""

LEAST_STEMS = 2

ACTIVE_DAYS = 14
"""Days with sessions that an item stays without a word on it."""


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """An open item, in its newest words. `since`: when the first session left it open; `told`: the active days so far
    when a session spoke of it last."""

    id: str
    kind: OpenKind
    text: str
    document: str
    turn: str
    at: str
    since: str
    note: str = ""
    told: int = 0

    @property
    def stems(self) -> tuple[str, ...]:
        """What the item is about."""
        return subject(self.text)


class ReadSession(NamedTuple):
    """A session with its document."""

    document: str
    reading: SessionReading


def thread_id(document: str, item: OpenItem) -> str:
    """Return the id of an item: the same for the same words of the same session."""
    return "t" + blake2b(f"{document}\0{item.kind}\0{item.text}".encode(), digest_size=4).hexdigest()


def open_threads(sessions: Iterable[ReadSession]) -> list[Thread]:
    """Return what is open after these sessions, which are in order, the newest first."""
    threads: list[Thread] = []
    days: set[str] = set()
    for session in sessions:
        days.add(day(session.reading.last_at))
        threads = list(_after(session, threads, len(days)))
    return sorted(threads, key=lambda thread: thread.at, reverse=True)


def _after(session: ReadSession, threads: Sequence[Thread], days: int) -> Iterator[Thread]:
    """Yield the open items after a session."""
    reading = session.reading
    opened = list(reading.open_items())
    ended = [item.text for item in reading.plan if item.status not in PLANNED_OPEN]
    ended += [line.text for line in reading.handover if line.section == "closed" and line.state == "verified"]
    checked = {check_kind(check.what) for check in reading.checks}
    for thread in threads:
        carried = next((item for item in opened if is_same(item.text, thread.text)), None)
        if carried is not None:
            opened.remove(carried)
            newest = _new(session, carried, days)
            yield msgspec.structs.replace(newest, id=thread.id, since=thread.since)
        elif thread.kind == "check":
            if check_kind(thread.text) not in checked and days - thread.told < ACTIVE_DAYS:
                yield thread
        elif not any(is_same(item, thread.text) for item in ended) and not _is_closed(thread, reading):
            if _is_named(thread, reading):
                yield msgspec.structs.replace(thread, told=days)
            elif not reading.has_worked and days - thread.told < ACTIVE_DAYS:
                yield thread
    for item in opened:
        yield _new(session, item, days)


def _new(session: ReadSession, item: OpenItem, days: int) -> Thread:
    return Thread(
        id=thread_id(session.document, item),
        kind=item.kind,
        text=item.text,
        document=session.document,
        turn=item.turn,
        at=item.at,
        since=item.at,
        note=item.note,
        told=days,
    )


def is_same(one: str, other: str) -> bool:
    """Whether two items are about the same thing."""
    if one == other:
        return True
    stems, others = set(subject(one)), set(subject(other))
    least = min(len(stems), len(others))
    return least >= LEAST_STEMS and len(stems & others) >= SHARED * max(len(stems), len(others))


def _is_closed(thread: Thread, reading: SessionReading) -> bool:
    """Whether a sentence or a commit of the session says that the item is done."""
    stems = thread.stems
    if len(stems) < LEAST_STEMS:
        return False
    for captured in reading.captures:
        event = captured.event
        if isinstance(event, Committed) and _has(event.subject, stems):
            return True
        if isinstance(event, Said) and closes(text(event), stems):
            return True
    return False


def _is_named(thread: Thread, reading: SessionReading) -> bool:
    """Whether a request of the session speaks of the item."""
    stems = thread.stems
    return len(stems) >= LEAST_STEMS and any(_has(text(request.event), stems) for request in reading.requests)


def _has(words: str, stems: Sequence[str]) -> bool:
    found = set(subject(words))
    return sum(stem in found for stem in stems) >= SHARED * len(stems)
