"""Live sessions that have not ended: those whose idleness a start goes on to watch (W2).

Comes in: `session_opened`, `session_resumed`, `session_ended`, `redacted`. Goes out: documents. Invariant: a session is
here exactly from its opening, or its going on, to its end.
"""

from __future__ import annotations

from ...protocol.operation import Redacted, SessionClosed, SessionOpened, SessionResumed
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from .projection import OperationBatch
from .records import Records, digest


class OpenSessions:
    """The fold of open live sessions."""

    databases = ("unfinished",)
    reads = (SessionOpened, SessionResumed, SessionClosed, Redacted)

    def __init__(self, records: Records) -> None:
        self._records = records

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        db = self._records.environment.db("unfinished")
        match entry.operation:
            case SessionOpened(document=document, origin=origin) if origin.live:
                batch.put(digest(document), document.encode(), db=db)
            case SessionResumed(document=document):
                batch.put(digest(document), document.encode(), db=db)
            case SessionClosed(document=document):
                batch.delete(digest(document), db=db)
            case Redacted(sessions=documents):
                for document in documents:
                    batch.delete(digest(document), db=db)
            case _:
                pass

    def documents(self) -> list[str]:
        """The documents of all open live sessions, in no order."""
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("unfinished"))
            return [unseal(*row, "an open session").decode() for row in cursor.iternext()]
