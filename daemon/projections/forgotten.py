"""What must never come back, and what was taken back for a while: tombstones, and sessions that are undone (T10).

Comes in: `redacted`, `purged`, `hidden`, `unhidden`. Goes out: whether a turn is forgotten, which redactions are not
carried out yet, which operations hid a document. Invariant: a tombstone is a name (document and turn), no content and
no hash of any; nothing removes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.operation import Hidden, Purged, Redacted, Unhidden
from ...protocol.reply import Logged
from .projection import OperationBatch
from .records import Records, digest

Turn = tuple[str, str]
"""Document and turn."""


def _turn_key(document: str, turn: str) -> bytes:
    return digest(document) + digest(turn)


class ForgottenTable:
    """The fold of tombstones, of pending redactions, and of what is hidden."""

    databases = ("tombstones", "redactions", "undone")
    reads = (Redacted, Purged, Hidden, Unhidden)

    def __init__(self, records: Records) -> None:
        self._records = records

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        db = self._records.environment.db
        match entry.operation:
            case Redacted() as redacted:
                for one in redacted.turns:
                    for turn in one.turns:
                        batch.put(_turn_key(one.document, turn), b"", db=db("tombstones"))
                for document in redacted.sessions:
                    batch.put(digest(document), b"", db=db("tombstones"))
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
        """Those of these turns that are forgotten."""
        database = self._records.environment.db("tombstones")
        with self._records.environment.read() as transaction:
            if not transaction.stat(database)["entries"]:
                return set()
            return {turn for turn in turns if transaction.get(_turn_key(*turn), db=database) is not None}

    def names(self, document: str) -> bool:
        """Whether a whole session of that name was forgotten: its title is not taken again."""
        with self._records.environment.read() as transaction:
            database = self._records.environment.db("tombstones")
            return transaction.get(digest(document), db=database) is not None

    def pending(self) -> list[int]:
        """The seqs of redactions whose bytes may still be somewhere, oldest first."""
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("redactions"))
            return [int.from_bytes(key) for key, _ in cursor.iternext()]

    def hiding(self, document: str) -> list[int]:
        """The seqs of the operations that hide a document's records, newest first."""
        mark = digest(document)
        seqs: list[int] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("undone"))
            found = cursor.set_range(mark)
            while found and cursor.key().startswith(mark):
                seqs.insert(0, int.from_bytes(cursor.key()[16:]))
                found = cursor.next()
        return seqs
