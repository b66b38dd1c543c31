"""What became of the tasks of agents (O2), by session.

Invariant: a row has names of agents and turns, and no text; forgetting a turn or a session removes what it has of it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...protocol.operation import JudgedTask, Redacted, TaskRated, TasksJudged
from ...protocol.reply import Logged
from .projection import FoldTables, OperationBatch
from .records import digest


class SessionTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one document: what memd judged, and what the user said of them."""

    document: str
    judged: tuple[JudgedTask, ...] = ()
    rated: tuple[TaskRated, ...] = ()

    def where(self, stays: Callable[[str], bool]) -> SessionTasks:
        """Return the tasks whose turns stay."""
        judged = tuple(task for task in self.judged if stays(task.turn))
        return SessionTasks(
            document=self.document, judged=judged, rated=tuple(task for task in self.rated if stays(task.turn))
        )


_rows = msgspec.msgpack.Decoder(SessionTasks)
_encode = msgspec.msgpack.Encoder().encode
_CURSOR = b"archive_seq"


class OutcomeTable(FoldTables):
    """The fold of judgements."""

    databases = ("outcomes", "judged_upto")
    reads = (TasksJudged, TaskRated, Redacted)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        match entry.operation:
            case TasksJudged(document=document, archive_seq=seq, tasks=tasks):
                batch.put(_CURSOR, seq.to_bytes(8), db=self._table("judged_upto"))
                if document:
                    row = msgspec.structs.replace(self._row(batch, document), judged=tasks)
                    self._put(batch, digest(document), row)
            case TaskRated(document=document, agent=agent, turn=turn, outcome=outcome) as rated:
                row = self._row(batch, document)
                others = tuple(task for task in row.rated if (task.agent, task.turn) != (agent, turn))
                row = msgspec.structs.replace(row, rated=(*others, rated) if outcome else others)
                self._put(batch, digest(document), row)
            case Redacted() as redacted:
                self._forget(batch, redacted)
            case _:
                pass

    def _row(self, batch: OperationBatch, document: str) -> SessionTasks:
        stored = batch.get(digest(document), db=self._table("outcomes"))
        return _rows.decode(stored) if stored else SessionTasks(document=document)

    def _put(self, batch: OperationBatch, key: bytes, row: SessionTasks) -> None:
        if row.judged or row.rated:
            batch.put(key, _encode(row), db=self._table("outcomes"))
        else:
            batch.delete(key, db=self._table("outcomes"))

    def _forget(self, batch: OperationBatch, redacted: Redacted) -> None:
        """Remove forgotten turns and sessions (T10)."""
        gone = {digest(of.document) + digest(turn) for of in redacted.turns for turn in of.turns} | set(redacted.marks)
        size = len(digest(""))
        for key in {mark[:size] for mark in gone}:
            if stored := batch.get(key, db=self._table("outcomes")):
                self._put(batch, key, _rows.decode(stored).where(lambda turn, of=key: of + digest(turn) not in gone))
        for key in (*map(digest, redacted.sessions), *(mark for mark in redacted.marks if len(mark) == size)):
            batch.delete(key, db=self._table("outcomes"))

    def of(self, document: str) -> SessionTasks:
        """Return the tasks of a document."""
        stored = self._value("outcomes", digest(document), "the outcomes of a session")
        return _rows.decode(stored) if stored else SessionTasks(document=document)

    def all(self) -> list[SessionTasks]:
        """Return the tasks of all documents that have any."""
        return [_rows.decode(row) for row in self._values("outcomes", "the outcomes of a session")]

    def archive_seq(self) -> int:
        """Return the seq of the last capture that memd judged."""
        stored = self._value("judged_upto", _CURSOR, "the mark of the outcomes")
        return int.from_bytes(stored) if stored else 0
