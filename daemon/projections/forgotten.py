"""Tombstones of forgotten turns, unfinished redactions, and the operations that hide a document (T10).

Invariants: a tombstone is a name (document and turn) without content or a hash of it, and where the name itself is
forgotten a hash of the name; nothing removes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.operation import Hidden, Purged, Redacted, Unhidden
from ...protocol.reply import Logged
from .projection import FoldTables, OperationBatch
from .records import digest

Turn = tuple[str, str]
"""Document and turn."""


def turn_key(document: str, turn: str) -> bytes:
    """Return the key of a turn's tombstone, 32 bytes; that of a session is the 16 bytes of its `digest`."""
    return digest(document) + digest(turn)


class ForgottenTable(FoldTables):
    """The fold of tombstones, of pending redactions, and of what is hidden."""

    databases = ("tombstones", "redactions", "undone")
    reads = (Redacted, Purged, Hidden, Unhidden)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        db = self._table
        match entry.operation:
            case Redacted() as redacted:
                for document in redacted.turns:
                    for turn in document.turns:
                        batch.put(turn_key(document.document, turn), b"", db=db("tombstones"))
                for mark in redacted.marks:
                    batch.put(mark, b"", db=db("tombstones"))
                for session in redacted.sessions:
                    batch.put(digest(session), b"", db=db("tombstones"))
                batch.put(entry.seq.to_bytes(8), b"", db=db("redactions"))
            case Purged() as purged:
                batch.delete(purged.redacted.to_bytes(8), db=db("redactions"))
            case Hidden() as hidden:
                for document in hidden.documents:
                    batch.put(digest(document) + entry.seq.to_bytes(8), b"", db=db("undone"))
            case Unhidden() as unhidden:
                for document in unhidden.documents:
                    batch.delete(digest(document) + unhidden.hidden.to_bytes(8), db=db("undone"))
            case _:
                pass

    def among(self, turns: Iterable[Turn]) -> set[Turn]:
        """Return those of these turns that are forgotten."""
        with self.environment.read() as transaction:
            table = self._table("tombstones")
            if not transaction.stat(table)["entries"]:
                return set()
            return {turn for turn in turns if transaction.get(turn_key(*turn), db=table) is not None}

    def names(self, document: str) -> bool:
        """Whether the whole session was forgotten: its title is not stored again."""
        with self.environment.read() as transaction:
            return transaction.get(digest(document), db=self._table("tombstones")) is not None

    def pending(self) -> list[int]:
        """Return the seqs of redactions whose bytes may still be in a file, oldest first."""
        return [int.from_bytes(key) for key in self._keys("redactions")]

    def hiding(self, document: str) -> list[int]:
        """Return the seqs of the operations that hide a document's records, newest first."""
        return [int.from_bytes(key) for key in reversed(self._keys("undone", digest(document)))]
