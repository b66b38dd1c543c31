"""What every importer gives: the sessions found in a file, and an account of each of its lines.

Comes in: what a reader met. Goes out: frozen values, and batches that fit a request. Invariant: the account is
complete, `lines == taken + noise + malformed`; nothing is dropped without a kind or a reason (P-12).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...protocol import event
from ...protocol.event import AnyEvent, Origin

BATCH_EVENTS = 200
BATCH_BYTES = 1_000_000


class Malformed(msgspec.Struct, frozen=True):
    """A line that could not be read: its number, from 1, and why."""

    line: int
    reason: str


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Where every line went: taken, noise by kind, malformed. `before`: lines that an earlier import accounted for."""

    lines: int
    taken: int
    noise: dict[str, int]
    malformed: tuple[Malformed, ...]
    before: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every line is accounted for."""
        return self.lines == self.taken + sum(self.noise.values()) + len(self.malformed)


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The events of one document, in order. `is_all`: whatever else it once held is gone from it (W13)."""

    origin: Origin
    events: tuple[AnyEvent, ...]
    is_all: bool = False


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Where a later import reads on: bytes and lines before it, and what its reader has to know, in its own words."""

    offset: int
    lines: int
    state: str = ""


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """One file or repository: mostly one session; a file that was continued or copied may hold lines of another."""

    path: str
    sessions: tuple[Session, ...]
    account: Account
    mark: Mark | None = None


class Ledger:
    """The account while it is being written."""

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
        """A line was taken."""
        self._lines += 1
        self._taken += 1

    def drop(self, kind: str) -> None:
        """A line is noise of that kind."""
        self._lines += 1
        self._noise[kind] = self._noise.get(kind, 0) + 1

    def refuse(self, reason: str) -> None:
        """A line could not be read."""
        self._lines += 1
        self._malformed.append(Malformed(self.number, reason))

    def close(self) -> Account:
        """The account, noise with the most frequent kind first."""
        noise = dict(sorted(self._noise.items(), key=lambda item: (-item[1], item[0])))
        return Account(
            lines=self._lines, taken=self._taken, noise=noise, malformed=tuple(self._malformed), before=self._before
        )


def batches(
    events: tuple[AnyEvent, ...], most: int = BATCH_EVENTS, size_bytes: int = BATCH_BYTES
) -> Iterator[tuple[AnyEvent, ...]]:
    """The events in order, cut into requests of at most `most` events and about `size_bytes` of text."""
    batch: list[AnyEvent] = []
    size = 0
    for one in events:
        length = len(event.text(one).encode()) + 200
        if batch and (len(batch) == most or size + length > size_bytes):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(one)
        size += length
    if batch:
        yield tuple(batch)
