"""Where things come from: pools, sessions, the history of each record, and how far the pipeline has come.

Comes in: every operation. Goes out: a session's origin and project, the operations that touched a record, the
distiller's cursor. Invariant: `history` names operations by seq and quotes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import lmdb
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
from ..storage.checksummed_rows import unseal
from .projection import OperationBatch
from .records import Records, digest


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was opened, when it was closed ("" while it is open) and why."""

    opened: SessionOpened
    closed_at: str = ""
    reason: str = ""


class DistillProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The pipeline's cursor and its totals since the beginning."""

    archive_seq: int = 0
    captures: int = 0
    candidates: int = 0
    rejected: dict[str, int] = {}
    last_at: int = 0


_session = msgspec.msgpack.Decoder(SessionEntry)
_pool = msgspec.msgpack.Decoder(PoolOpened)
_progress = msgspec.msgpack.Decoder(DistillProgress)
_encode = msgspec.msgpack.Encoder().encode


class SourceTable:
    """The fold of pools, sessions, history and the cursor."""

    databases = ("pools", "sessions", "projects", "history", "progress")
    reads = ()

    def __init__(self, records: Records) -> None:
        self._records = records

    def _db(self, name: str) -> lmdb.Database:
        return self._records.environment.db(name)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        operation = entry.operation
        match operation:
            case PoolOpened():
                batch.put(digest(operation.pool), _encode(operation), db=self._db("pools"))
            case SessionOpened():
                key = digest(operation.document)
                batch.put(key, _encode(SessionEntry(opened=operation)), db=self._db("sessions"))
                batch.put(digest(operation.project) + key, operation.document.encode(), db=self._db("projects"))
            case SessionClosed() | SessionResumed():
                key = digest(operation.document)
                if stored := batch.get(key, db=self._db("sessions")):
                    closed = operation if isinstance(operation, SessionClosed) else None
                    at, why = (closed.at, closed.reason) if closed else ("", "")
                    session = msgspec.structs.replace(_session.decode(stored), closed_at=at, reason=why)
                    batch.put(key, _encode(session), db=self._db("sessions"))
            case Distilled():
                self._advance(batch, operation, entry.at)
            case Redacted():
                self._forget(batch, operation)
            case Hidden() | Unhidden():
                self._show(batch, operation.documents, isinstance(operation, Unhidden))
                self._remember(batch, entry)
            case _:
                self._remember(batch, entry)

    def _remember(self, batch: OperationBatch, entry: Logged) -> None:
        rows, seq = batch.rows(self._db("history")), entry.seq.to_bytes(8)
        for id in batch.touched(entry):
            rows[id.encode() + seq] = b""

    def _show(self, batch: OperationBatch, documents: Sequence[str], shown: bool) -> None:
        """A session that was taken back feeds no pool: none of its turns is searched until it is brought back."""
        for document in documents:
            key = digest(document)
            if stored := batch.get(key, db=self._db("sessions")):
                place = digest(_session.decode(stored).opened.project) + key
                if shown:
                    batch.put(place, document.encode(), db=self._db("projects"))
                else:
                    batch.delete(place, db=self._db("projects"))

    def _advance(self, batch: OperationBatch, distilled: Distilled, at: int) -> None:
        stored = batch.get(b"progress", db=self._db("progress"))
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
        batch.put(b"progress", _encode(after), db=self._db("progress"))

    def _forget(self, batch: OperationBatch, redacted: Redacted) -> None:
        """No session of that name was ever opened (T10)."""
        for document in redacted.sessions:
            key = digest(document)
            if stored := batch.get(key, db=self._db("sessions")):
                project = _session.decode(stored).opened.project
                batch.delete(digest(project) + key, db=self._db("projects"))
                batch.delete(key, db=self._db("sessions"))

    def documents_named(self, name: str, *, source: bool) -> frozenset[str]:
        """The documents of a source (its host), or the one of a session's name. Raises NotFound, InvalidRequest."""
        known = self.sessions()
        if source:
            found = {document for document in known if document.partition(":")[0] == name}
        else:
            found = {document for document in known if name in (document, document.partition(":")[2])}
            if not found:
                found = {each for each in known if each.startswith(name) or each.partition(":")[2].startswith(name)}
        if not found:
            raise NotFound(
                f"no {'source' if source else 'session'} {name!r}", hint="`memd show ID` names a record's session"
            )
        if len(found) > 1 and not source:
            few = ", ".join(sorted(found)[:5])
            raise InvalidRequest(f"{len(found)} sessions match {name!r}", hint=f"give one in full: {few}")
        return frozenset(found)

    def sessions(self) -> list[str]:
        """Every document that was opened, in no order."""
        return [session.opened.document for session in self.all_sessions()]

    def all_sessions(self) -> list[SessionEntry]:
        """Every session, in no order."""
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._db("sessions"))
            return [_session.decode(unseal(*row, "a session")) for row in cursor.iternext()]

    def documents(self, pools: Sequence[str], most: int | None = None) -> list[str]:
        """At most `most` documents whose session feeds these pools; one outside of a project feeds the personal one."""
        found: list[str] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._db("projects"))
            for pool in pools:
                mark = digest("" if pool == PERSONAL else pool)
                going = cursor.set_range(mark)
                while going and cursor.key().startswith(mark) and (most is None or len(found) < most):
                    found.append(unseal(*cursor.item(), "a session of a pool").decode())
                    going = cursor.next()
        return found

    def feeds(self, document: str, pools: Sequence[str]) -> bool:
        """Whether a document's session feeds one of these pools; none that was taken back does."""
        key = digest(document)
        marks = (digest("" if pool == PERSONAL else pool) for pool in pools)
        with self._records.environment.read() as transaction:
            return any(transaction.get(mark + key, db=self._db("projects")) is not None for mark in marks)

    def session(self, document: str) -> SessionEntry | None:
        """The session of a document, or None."""
        return self.sessions_of([document]).get(document)

    def sessions_of(self, documents: Iterable[str]) -> dict[str, SessionEntry]:
        """The sessions of these documents, from one snapshot; unknown ones are left out."""
        found: dict[str, SessionEntry] = {}
        with self._records.environment.read() as transaction:
            for document in documents:
                key = digest(document)
                if stored := transaction.get(key, db=self._db("sessions")):
                    found[document] = _session.decode(unseal(key, stored, "a session"))
        return found

    def pool(self, pool: str) -> PoolOpened | None:
        """The pool of that name, or None."""
        key = digest(pool)
        with self._records.environment.read() as transaction:
            stored = transaction.get(key, db=self._db("pools"))
        return _pool.decode(unseal(key, stored, "a pool")) if stored else None

    def pools(self) -> list[PoolOpened]:
        """Every pool, in order of name."""
        pools: list[PoolOpened] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._db("pools"))
            found = cursor.first()
            while found:
                pools.append(_pool.decode(unseal(*cursor.item(), "a pool")))
                found = cursor.next()
        return sorted(pools, key=lambda pool: pool.pool)

    def history(self, id: str) -> list[int]:
        """The seqs of all operations that touched a record, in order."""
        prefix = id.encode()
        seqs: list[int] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._db("history"))
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                seqs.append(int.from_bytes(cursor.key()[len(prefix) :]))
                found = cursor.next()
        return seqs

    def progress(self) -> DistillProgress:
        """How far the pipeline has come."""
        with self._records.environment.read() as transaction:
            stored = transaction.get(b"progress", db=self._db("progress"))
        return _progress.decode(unseal(b"progress", stored, "the cursor")) if stored else DistillProgress()
