"""The ports of the two logs: what projections and services need of a journal and an archive."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from ...protocol.event import Captured
from ...protocol.operation import AnyOperation
from ...protocol.record import Span
from ...protocol.reply import Logged


class EventLog(Protocol):
    """The log of operations (`JournalLog`). Its seqs are 1, 2, 3 … without a hole."""

    @property
    def last(self) -> int:
        """The seq of the last operation, 0 for none."""
        ...

    def commit(self, operations: Sequence[AnyOperation]) -> list[Logged]:
        """Append operations durably as one group. Raises StorageFull: then none was written."""
        ...

    def get(self, seq: int) -> Logged | None:
        """Return the operation at `seq`, or None."""
        ...

    def slice(self, after: int, limit: int) -> list[Logged]:
        """Return at most `limit` operations after `after`, in order."""
        ...

    def read(self, after: int = 0, kinds: Collection[str] = ()) -> Iterator[Logged]:
        """Yield all operations after `after`, or those of some kinds, in order."""
        ...

    def of_kinds(self, kinds: Collection[str], after: int, upto: int) -> Iterator[Logged]:
        """Yield the operations of some kinds after `after` and at most to `upto`, in order, without a check of the
        chain."""
        ...

    def seq_at(self, at: int) -> int:
        """Return the seq of the last operation at or before a time in microseconds, 0 for none."""
        ...


class CaptureStore(Protocol):
    """The store of captures (`Archive`). Raises JournalCorrupt for a damaged capture."""

    @property
    def last(self) -> int:
        """The seq of the last capture, 0 for none."""
        ...

    def find(self, document: str, turn: str) -> tuple[int, Captured | None]:
        """Return the newest capture of a turn with its seq; 0 for an unknown turn, None for a removed payload."""
        ...

    def turn(self, document: str, turn: str) -> Captured | None:
        """Return the newest capture of a turn, or None."""
        ...

    def turns(self, document: str) -> list[Captured]:
        """Return the newest captures of a document's turns, in order."""
        ...

    def span(self, span: Span) -> str | None:
        """Return the captured text of a span, or None."""
        ...

    def around(self, document: str, turn: str, before: int, after: int) -> list[tuple[int, Captured]]:
        """Return the captures of a document around a turn, in order, with their seqs."""
        ...

    def after(self, seq: int, limit: int) -> list[tuple[int, Captured]]:
        """Return the captures among the `limit` entries after `seq`, in order, with their seqs."""
        ...
