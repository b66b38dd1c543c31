"""The journal: the log of operations, from which every projection is replayed (U3, W8).

Invariants: a group of operations is one transaction, so a retirement and its successor are never apart (P-8); where a
payload was removed, a read returns the remainder that its redaction left, so that replay of the rest is equal (T10).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import lmdb
import msgspec

from ...protocol import operation
from ...protocol.operation import AnyOperation, Checkpoint, Redacted, Remnant
from ...protocol.reply import Logged
from ..failpoint import reach
from ..world import World
from .checksummed_rows import seal, unseal
from .log import Draft, Entry, Log

_remnants = msgspec.msgpack.Decoder(Remnant)


class JournalLog:
    """The log of operations, typed."""

    def __init__(
        self, folder: Path, world: World, *, readonly: bool = False, on_full: Callable[[], None] = lambda: None
    ) -> None:
        self.log = Log(folder, world, extra=("remnants",), readonly=readonly, quick=True, on_full=on_full)

    @property
    def last(self) -> int:
        """The seq of the last operation, 0 for none."""
        return self.log.last

    def commit(self, operations: Sequence[AnyOperation]) -> list[Logged]:
        """Append operations durably as one group. Raises StorageFull: then none was written."""
        drafts = [Draft(operation.kind(o), operation.VERSION, operation.encode(o)) for o in operations]
        meta, remnants = self.log.environment.db("meta"), self.log.environment.db("remnants")

        def alongside(transaction: lmdb.Transaction, entries: Sequence[Entry]) -> None:
            for entry in entries:
                if entry.header.kind == "checkpoint":
                    transaction.put(b"checkpoint", entry.seq.to_bytes(8), db=meta)
            for redacted in operations:
                for left in redacted.entries if isinstance(redacted, Redacted) else ():
                    key = left.seq.to_bytes(8)
                    transaction.put(key, seal(key, msgspec.msgpack.encode(left)), db=remnants)
            reach("journal:before-commit")

        entries = self.log.append(drafts, alongside)
        reach("journal:committed")
        return [Logged(seq=e.seq, at=e.header.at, operation=o) for e, o in zip(entries, operations, strict=True)]

    def checkpoint(self) -> Checkpoint:
        """Return the last checkpoint, or an empty one."""
        with self.log.environment.read() as transaction:
            stored = transaction.get(b"checkpoint", db=self.log.environment.db("meta"))
        entry = self.get(int.from_bytes(stored)) if stored else None
        return entry.operation if entry and isinstance(entry.operation, Checkpoint) else Checkpoint()

    def slice(self, after: int, limit: int) -> list[Logged]:
        """Return at most `limit` operations after `after`, in order."""
        return [self._logged(entry) for entry in self.log.slice(after, limit)]

    def read(self, after: int = 0, kinds: Collection[str] = ()) -> Iterator[Logged]:
        """Yield all operations after `after`, or those of some kinds, in order, in short transactions."""
        entries = self.log.read(after)
        return map(self._logged, (entry for entry in entries if not kinds or entry.header.kind in kinds))

    def of_kinds(self, kinds: Collection[str], after: int, upto: int) -> Iterator[Logged]:
        """Yield the operations of some kinds after `after` and at most to `upto`, in order; see `Log.of_kinds`."""
        return map(self._logged, self.log.of_kinds(kinds, after, upto))

    def get(self, seq: int) -> Logged | None:
        """Return the operation at `seq`, or None."""
        entry = self.log.get(seq)
        return self._logged(entry) if entry else None

    def seq_at(self, at: int) -> int:
        """Return the seq of the last operation at or before a time in microseconds, 0 for none."""
        return self.log.seq_at(at)

    def _logged(self, entry: Entry) -> Logged:
        """Decode an entry; for a removed payload, the remainder that its redaction left."""
        header, payload = entry.header, entry.payload
        kind = header.kind
        if payload is None:
            kind, payload = self._remnant(header.seq) or (kind, None)
        decoded = operation.Unknown(name=kind) if payload is None else operation.decode(kind, payload)
        return Logged(seq=header.seq, at=header.at, operation=decoded)

    def _remnant(self, seq: int) -> tuple[str, bytes] | None:
        key = seq.to_bytes(8)
        with self.log.environment.read() as transaction:
            stored = transaction.get(key, db=self.log.environment.db("remnants"))
        left = _remnants.decode(unseal(key, stored, f"the remainder of operation {seq}")) if stored else None
        return (left.kind, left.payload) if left else None

    def close(self) -> None:
        """Close the log."""
        self.log.close()
