"""The journal: the log of operations, the truth from which everything else is replayed (U3, W8).

Comes in: operations. Goes out: logged operations with seq and time. Invariant: a group of operations is one
transaction, so a contradiction's retirement and its successor are never apart (P-8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...protocol import operation
from ...protocol.operation import AnyOperation
from ...protocol.reply import Logged
from ..world import World
from .log import Draft, Entry, Log


class Journal:
    """The log of operations, typed."""

    def __init__(self, folder: Path, world: World) -> None:
        self.log = Log(folder, world)

    @property
    def last(self) -> int:
        """The seq of the last operation."""
        return self.log.last

    def commit(self, operations: Sequence[AnyOperation]) -> list[Logged]:
        """Append operations durably as one group. Raises StorageFull: then none was written."""
        drafts = [Draft(operation.kind(o), operation.VERSION, operation.encode(o)) for o in operations]
        entries = self.log.append(drafts)
        return [Logged(seq=e.seq, at=e.header.at, operation=o) for e, o in zip(entries, operations, strict=True)]

    def slice(self, after: int, limit: int) -> list[Logged]:
        """At most `limit` operations after `after`, in order."""
        return [_logged(entry) for entry in self.log.slice(after, limit)]

    def read(self, after: int = 0) -> Iterator[Logged]:
        """All operations after `after`, in order, in short transactions."""
        return (_logged(entry) for entry in self.log.read(after))

    def get(self, seq: int) -> Logged | None:
        """The operation at `seq`, or None."""
        entry = self.log.get(seq)
        return _logged(entry) if entry else None

    def close(self) -> None:
        """Close the log."""
        self.log.close()


def _logged(entry: Entry) -> Logged:
    kind = entry.header.kind
    found: AnyOperation = (
        operation.Unknown(name=kind) if entry.payload is None else operation.decode(kind, entry.payload)
    )
    return Logged(seq=entry.seq, at=entry.header.at, operation=found)
