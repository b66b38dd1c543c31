"""Passes and revoked sources (A1, A3). Invariants: a revoked pass stays revoked; a source can be shown again."""

from __future__ import annotations

import msgspec

from ...protocol.access import GrantState, RevokedSource
from ...protocol.instant import from_micros
from ...protocol.operation import Granted, Revoked
from ...protocol.reply import Logged
from .projection import FoldTables, OperationBatch
from .records import digest

_grant = msgspec.msgpack.Decoder(GrantState)
_source = msgspec.msgpack.Decoder(RevokedSource)
_encode = msgspec.msgpack.Encoder().encode


class GrantTable(FoldTables):
    """The fold of grants and of revoked sources."""

    databases = ("grants", "revoked_sources")
    reads = (Granted, Revoked)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        db = self._table
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
        """Return the grant, or None for one that was neither made nor revoked in this store."""
        stored = self._value("grants", digest(grant), "a grant")
        return _grant.decode(stored) if stored else None

    def all(self) -> list[GrantState]:
        """Return every grant, newest first."""
        grants = map(_grant.decode, self._values("grants", "a grant"))
        return sorted(grants, key=lambda grant: (grant.granted_at or grant.revoked_at, grant.id), reverse=True)

    def sources(self) -> tuple[RevokedSource, ...]:
        """Return the sources of which memd shows nothing; takes microseconds if there are none."""
        sources = map(_source.decode, self._values("revoked_sources", "a revoked source"))
        return tuple(sorted(sources, key=lambda revoked: revoked.source))
