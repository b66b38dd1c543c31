"""An importer's result: the sessions in a file, and a complete account of its lines (P-12).

Invariant: `lines == taken + noise + malformed`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

import msgspec

from ...protocol import event
from ...protocol.errors import MemdError
from ...protocol.event import AnyEvent, Origin
from ...protocol.instant import checked

BATCH_EVENTS = 200
BATCH_BYTES = 1_000_000


class Malformed(msgspec.Struct, frozen=True):
    """A line that could not be read: its number, from 1, and the reason."""

    line: int
    reason: str


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that were taken, noise by kind, or malformed. `before`: lines that an earlier import accounted for."""

    lines: int
    taken: int
    noise: dict[str, int]
    malformed: tuple[Malformed, ...]
    before: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every line is accounted for."""
        return self.lines == self.taken + sum(self.noise.values()) + len(self.malformed)


class CapturedSession(msgspec.Struct, frozen=True, kw_only=True):
    """The events of one document, in order. `has_all`: the document has no other events any more (W13), or none
    between the first and the last of these, for a file that may have been cut off or rotated."""

    origin: Origin
    events: tuple[AnyEvent, ...]
    has_all: Literal["", "between", "everywhere"] = ""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a later import reads on: bytes and lines before it, and its reader's state as JSON."""

    offset: int
    lines: int
    state: str = ""


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """One file or repository. It has one session; a file that was continued or copied may have several."""

    path: str
    sessions: tuple[CapturedSession, ...]
    account: Account
    mark: Mark | None = None


class AccountBuilder:
    """Counts lines into an `Account`."""

    def __init__(self, before: int = 0) -> None:
        self._before = before
        self._lines = 0
        self._taken = 0
        self._noise: dict[str, int] = {}
        self._malformed: list[Malformed] = []

    @property
    def number(self) -> int:
        """The number of the last line, from 1."""
        return self._before + self._lines

    def take(self) -> None:
        """Count a taken line."""
        self._lines += 1
        self._taken += 1

    def drop(self, kind: str) -> None:
        """Count a line of noise."""
        self._lines += 1
        self._noise[kind] = self._noise.get(kind, 0) + 1

    def refuse(self, reason: str) -> None:
        """Record a malformed line."""
        self._lines += 1
        self._malformed.append(Malformed(self.number, reason))

    def close(self) -> Account:
        """Return the account, the most frequent kind of noise first."""
        noise = dict(sorted(self._noise.items(), key=lambda item: (-item[1], item[0])))
        return Account(
            lines=self._lines, taken=self._taken, noise=noise, malformed=tuple(self._malformed), before=self._before
        )


def changed_at(status: os.stat_result) -> datetime:
    """Return when a file changed, in the local zone; a time that no calendar has is the start of 1970."""
    try:
        changed = datetime.fromtimestamp(int(status.st_mtime)).astimezone()
        return datetime.fromisoformat(checked(changed.isoformat()))
    except (OSError, OverflowError, ValueError, MemdError):
        return datetime.fromtimestamp(0, UTC)


def batches(
    events: tuple[AnyEvent, ...], most: int = BATCH_EVENTS, size_bytes: int = BATCH_BYTES
) -> Iterator[tuple[AnyEvent, ...]]:
    """Yield the events in order, in batches of at most `most` events and about `size_bytes` of text."""
    batch: list[AnyEvent] = []
    size = 0
    for captured in events:
        length = len(event.text(captured).encode()) + 200
        if batch and (len(batch) == most or size + length > size_bytes):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(captured)
        size += length
    if batch:
        yield tuple(batch)
