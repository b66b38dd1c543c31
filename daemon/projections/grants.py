"""Passes and revoked sources, as the journal tells of them (A1, A3).

Comes in: `granted`, `revoked`. Goes out: grants by id, what is void, of which sources nothing is shown. Invariant: what
is void stays void; a source can be shown again.
"""

from __future__ import annotations

import msgspec

from ...protocol.access import GrantState, RevokedSource
from ...protocol.instant import from_micros
from ...protocol.operation import Granted, Revoked
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from .projection import OperationBatch
from .records import Records, digest

_grant = msgspec.msgpack.Decoder(GrantState)
_source = msgspec.msgpack.Decoder(RevokedSource)
_encode = msgspec.msgpack.Encoder().encode


class GrantTable:
    """The fold of grants and of revoked sources."""

    databases = ("grants", "revoked_sources")
    reads = (Granted, Revoked)

    def __init__(self, records: Records) -> None:
        self._records = records

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        db = self._records.environment.db
        match entry.operation:
            case Granted() as made if made.grant:
                state = GrantState(
                    id=made.grant,
                    subject=made.subject,
                    pools=made.pools,
                    sources=made.sources,
                    granted_at=from_micros(entry.at),
                    expires_at=made.expires_at,
                )
                batch.put(digest(made.grant), _encode(state), db=db("grants"))
            case Granted(sources=sources):
                for source in sources:
                    batch.delete(digest(source), db=db("revoked_sources"))
            case Revoked(grants=grants, sources=sources):
                at = from_micros(entry.at)
                for grant in grants:
                    stored = batch.get(digest(grant), db=db("grants"))
                    state = _grant.decode(stored) if stored else GrantState(id=grant, subject="")
                    batch.put(digest(grant), _encode(msgspec.structs.replace(state, revoked_at=at)), db=db("grants"))
                for source in sources:
                    row = _encode(RevokedSource(source=source, at=at))
                    batch.put(digest(source), row, db=db("revoked_sources"))
            case _:
                pass

    def get(self, grant: str) -> GrantState | None:
        """The grant of that id, or None: one that somebody else signed, and that was never revoked here."""
        key = digest(grant)
        with self._records.environment.read() as transaction:
            stored = transaction.get(key, db=self._records.environment.db("grants"))
        return _grant.decode(unseal(key, stored, "a grant")) if stored else None

    def all(self) -> list[GrantState]:
        """Every grant, newest first."""
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("grants"))
            found = [_grant.decode(unseal(*row, "a grant")) for row in cursor.iternext()]
        return sorted(found, key=lambda each: (each.granted_at or each.revoked_at, each.id), reverse=True)

    def sources(self) -> tuple[RevokedSource, ...]:
        """The sources of which nothing is shown; empty for nearly everybody, and then this takes microseconds."""
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("revoked_sources"))
            found = [_source.decode(unseal(*row, "a revoked source")) for row in cursor.iternext()]
        return tuple(sorted(found, key=lambda each: each.source))
