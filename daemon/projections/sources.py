"""Pools, sessions, the history of each record, and the distiller's cursor.

Invariant: `history` names operations by seq and quotes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from ...protocol.errors import InvalidRequest, NotFound
from ...protocol.operation import (
    Distilled,
    Hidden,
    PoolOpened,
    Redacted,
    SessionClosed,
    SessionOpened,
    SessionResumed,
    Unhidden,
)
from ...protocol.reply import Logged
from ...stages.batch import PERSONAL
from ..storage.checksummed_rows import rows_with, unseal
from .projection import FoldTables, OperationBatch
from .records import digest


def own_family(document: str) -> str:
    """Return the family of a session that is no copy, for its copies."""
    return digest(document).hex()


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A document's session; `closed_at` is "" while it is open."""

    opened: SessionOpened
    closed_at: str = ""
    reason: str = ""

    @property
    def family(self) -> str:
        """The session family: forked and resumed files of one conversation share it."""
        return self.opened.family or own_family(self.opened.document)


class DistillProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The distiller's cursor and totals; `last_at` in microseconds."""

    archive_seq: int = 0
    captures: int = 0
    candidates: int = 0
    rejected: dict[str, int] = {}
    last_at: int = 0


_session = msgspec.msgpack.Decoder(SessionEntry)
_pool = msgspec.msgpack.Decoder(PoolOpened)
_progress = msgspec.msgpack.Decoder(DistillProgress)
_encode = msgspec.msgpack.Encoder().encode


class SourceTable(FoldTables):
    """The fold of pools, sessions, history and the cursor."""

    databases = ("pools", "sessions", "projects", "history", "progress")
    reads = ()

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        operation = entry.operation
        match operation:
            case PoolOpened():
                batch.put(digest(operation.pool), _encode(operation), db=self._table("pools"))
            case SessionOpened():
                key = digest(operation.document)
                batch.put(key, _encode(SessionEntry(opened=operation)), db=self._table("sessions"))
                batch.put(digest(operation.project) + key, operation.document.encode(), db=self._table("projects"))
            case SessionClosed() | SessionResumed():
                key = digest(operation.document)
                if stored := batch.get(key, db=self._table("sessions")):
                    closed = operation if isinstance(operation, SessionClosed) else None
                    at, why = (closed.at, closed.reason) if closed else ("", "")
                    session = msgspec.structs.replace(_session.decode(stored), closed_at=at, reason=why)
                    batch.put(key, _encode(session), db=self._table("sessions"))
            case Distilled():
                self._advance(batch, operation, entry.at)
            case Redacted():
                self._forget(batch, operation)
            case Hidden() | Unhidden():
                self._show(batch, operation.documents, isinstance(operation, Unhidden))
                self._add_history(batch, entry)
            case _:
                self._add_history(batch, entry)

    def _add_history(self, batch: OperationBatch, entry: Logged) -> None:
        rows, seq = batch.rows(self._table("history")), entry.seq.to_bytes(8)
        for id in batch.touched(entry):
            rows[id.encode() + seq] = b""

    def _show(self, batch: OperationBatch, documents: Sequence[str], shown: bool) -> None:
        """Remove an undone session from its pool, so that no turn of it is searched, or put it back."""
        for document in documents:
            key = digest(document)
            if stored := batch.get(key, db=self._table("sessions")):
                place = digest(_session.decode(stored).opened.project) + key
                if shown:
                    batch.put(place, document.encode(), db=self._table("projects"))
                else:
                    batch.delete(place, db=self._table("projects"))

    def _advance(self, batch: OperationBatch, distilled: Distilled, at: int) -> None:
        stored = batch.get(b"progress", db=self._table("progress"))
        before = _progress.decode(stored) if stored else DistillProgress()
        rejected = dict(before.rejected)
        for reason, count in distilled.rejected.items():
            rejected[reason] = rejected.get(reason, 0) + count
        after = DistillProgress(
            archive_seq=distilled.archive_seq,
            captures=before.captures + distilled.captures,
            candidates=before.candidates + distilled.candidates,
            rejected=rejected,
            last_at=at,
        )
        batch.put(b"progress", _encode(after), db=self._table("progress"))

    def _forget(self, batch: OperationBatch, redacted: Redacted) -> None:
        """Remove forgotten sessions (T10)."""
        for key in (*map(digest, redacted.sessions), *redacted.marks):
            if stored := batch.get(key, db=self._table("sessions")):
                project = _session.decode(stored).opened.project
                batch.delete(digest(project) + key, db=self._table("projects"))
                batch.delete(key, db=self._table("sessions"))

    def documents_named(self, name: str, *, source: bool) -> frozenset[str]:
        """Return the documents of a source (a host), or the one of a session's name or prefix.

        Raises NotFound, and InvalidRequest if several sessions match.
        """
        known = self.sessions()
        if source:
            matches = {document for document in known if document.partition(":")[0] == name}
        else:
            names = {document: (document, document.partition(":")[2]) for document in known}
            matches = {document for document in known if name in names[document]} or {
                document for document in known if any(part.startswith(name) for part in names[document])
            }
        if not matches:
            raise NotFound(
                f"no {'source' if source else 'session'} {name!r}", hint="`memd show ID` names a record's session"
            )
        if len(matches) > 1 and not source:
            few = ", ".join(sorted(matches)[:5])
            raise InvalidRequest(f"{len(matches)} sessions match {name!r}", hint=f"give one in full: {few}")
        return frozenset(matches)

    def sessions(self) -> list[str]:
        """Return every document that was opened, in no order."""
        return [session.opened.document for session in self.all_sessions()]

    def all_sessions(self) -> list[SessionEntry]:
        """Return every session, in no order."""
        return [_session.decode(row) for row in self._values("sessions", "a session")]

    def documents(self, pools: Sequence[str], most: int | None = None) -> list[str]:
        """Return at most `most` documents whose session feeds these pools; one without a project feeds `personal`."""
        marks = [digest("" if pool == PERSONAL else pool) for pool in pools]
        with self.environment.read() as transaction:
            rows = (row for mark in marks for row in rows_with(transaction, self._table("projects"), mark))
            return [unseal(key, stored, "a session of a pool").decode() for key, stored in islice(rows, most)]

    def feeds(self, document: str, pools: Sequence[str]) -> bool:
        """Whether a document's session feeds one of these pools; an undone session feeds none."""
        key = digest(document)
        marks = (digest("" if pool == PERSONAL else pool) for pool in pools)
        with self.environment.read() as transaction:
            return any(transaction.get(mark + key, db=self._table("projects")) is not None for mark in marks)

    def session(self, document: str) -> SessionEntry | None:
        """Return the session of a document, or None."""
        return self.sessions_of([document]).get(document)

    def relatives(self, document: str) -> list[str]:
        """Return the other documents of a session's family, in no order."""
        session = self.session(document)
        if session is None:
            return []
        others = (other.opened.document for other in self.all_sessions() if other.family == session.family)
        return [other for other in others if other != document]

    def sessions_of(self, documents: Iterable[str]) -> dict[str, SessionEntry]:
        """Return the known sessions of these documents, from one snapshot."""
        sessions: dict[str, SessionEntry] = {}
        with self.environment.read() as transaction:
            for document in documents:
                key = digest(document)
                if stored := transaction.get(key, db=self._table("sessions")):
                    sessions[document] = _session.decode(unseal(key, stored, "a session"))
        return sessions

    def pool(self, pool: str) -> PoolOpened | None:
        """Return the pool of that name, or None."""
        stored = self._value("pools", digest(pool), "a pool")
        return _pool.decode(stored) if stored else None

    def pools(self) -> list[PoolOpened]:
        """Return every pool, in order of name."""
        return sorted(map(_pool.decode, self._values("pools", "a pool")), key=lambda pool: pool.pool)

    def history(self, id: str) -> list[int]:
        """Return the seqs of all operations that touched a record, in order."""
        return [int.from_bytes(key) for key in self._keys("history", id.encode())]

    def progress(self) -> DistillProgress:
        """Return the distiller's cursor and totals."""
        stored = self._value("progress", b"progress", "the cursor")
        return _progress.decode(stored) if stored else DistillProgress()


class OpenSessions(FoldTables):
    """The fold of live sessions that have not ended (W2)."""

    databases = ("unfinished",)
    reads = (SessionOpened, SessionResumed, SessionClosed, Redacted)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        table = self._table("unfinished")
        match entry.operation:
            case SessionOpened(document=document, origin=origin) if origin.live:
                batch.put(digest(document), document.encode(), db=table)
            case SessionResumed(document=document):
                batch.put(digest(document), document.encode(), db=table)
            case SessionClosed(document=document):
                batch.delete(digest(document), db=table)
            case Redacted(sessions=documents, marks=marks):
                for key in (*map(digest, documents), *marks):
                    batch.delete(key, db=table)
            case _:
                pass

    def documents(self) -> list[str]:
        """Return the documents of all open live sessions, in no order."""
        return [row.decode() for row in self._values("unfinished", "an open session")]
