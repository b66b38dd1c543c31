"""Proposals that wait for the user's decision (T13, G7), and the index of pinned records.

Invariants: a proposal names records by id and quotes none; a proposal that is repeated, even after its decision, counts
once; forgetting a record removes its proposals.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ...protocol.operation import ChangeDecided, ChangeProposed, ChangeReopened, Redacted
from ...protocol.record import LIVE, Record, record_id
from ...protocol.reply import Logged
from ..storage.checksummed_rows import keys_with, unseal
from .patches import records_of
from .projection import FoldTables, OperationBatch
from .records import digest

State = Literal["open", "accepted", "rejected"]
"""What the user decided about a proposal."""


class PendingProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal; `at` in microseconds."""

    seq: int
    at: int
    what: ChangeProposed
    state: State = "open"


_proposal = msgspec.msgpack.Decoder(PendingProposal)
_encode = msgspec.msgpack.Encoder().encode
_SEPARATOR = b"\n"


def held_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """Return the row of a live record that memd never retires automatically."""
    if record.held and record.status in LIVE:
        yield digest(record.pool) + record.id.encode(), b""


class InboxTable(FoldTables):
    """The fold of proposals."""

    databases = ("proposals", "proposals_open", "proposals_of")
    reads = (ChangeProposed, ChangeDecided, ChangeReopened, Redacted)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        db = self._table
        match entry.operation:
            case ChangeProposed() as what:
                key = what.id.encode()
                if batch.get(key, db=db("proposals")) is not None:
                    return
                batch.put(key, _encode(PendingProposal(seq=entry.seq, at=entry.at, what=what)), db=db("proposals"))
                batch.put(key, b"", db=db("proposals_open"))
                for id in dict.fromkeys(filter(None, (what.record, what.against, *records_of(what.steps)))):
                    known = batch.get(id.encode(), db=db("proposals_of")) or b""
                    batch.put(id.encode(), known + key + _SEPARATOR, db=db("proposals_of"))
            case ChangeDecided(id=id, accepted=accepted):
                if self._set_state(batch, id, "accepted" if accepted else "rejected"):
                    batch.delete(id.encode(), db=db("proposals_open"))
            case ChangeReopened(id=id):
                if self._set_state(batch, id, "open"):
                    batch.put(id.encode(), b"", db=db("proposals_open"))
            case Redacted() as redacted:
                for id in redacted.records:
                    for key in (batch.get(id.encode(), db=db("proposals_of")) or b"").split(_SEPARATOR)[:-1]:
                        batch.delete(key, db=db("proposals"))
                        batch.delete(key, db=db("proposals_open"))
                    batch.delete(id.encode(), db=db("proposals_of"))
            case _:
                pass

    def _set_state(self, batch: OperationBatch, id: str, state: State) -> bool:
        """Return whether there is such a proposal."""
        stored = batch.get(id.encode(), db=self._table("proposals"))
        if stored:
            proposal = msgspec.structs.replace(_proposal.decode(stored), state=state)
            batch.put(id.encode(), _encode(proposal), db=self._table("proposals"))
        return bool(stored)

    def get(self, id: str) -> PendingProposal | None:
        """Return a proposal, or None."""
        stored = self._value("proposals", id.encode(), "a proposal")
        return _proposal.decode(stored) if stored else None

    def starting(self, prefix: str) -> list[str]:
        """Return at most two ids of proposals that start with `prefix`; none for ""."""
        return [prefix + key.decode() for key in self._keys("proposals", prefix.encode())[:2]] if prefix else []

    def list(self, *, decided: bool = False) -> list[PendingProposal]:
        """Return open proposals, or all of them, newest first."""
        with self.environment.read() as snapshot:
            table = self._table("proposals")  # a handle is valid within a read alone: compaction replaces the file
            keys = keys_with(snapshot, self._table("proposals" if decided else "proposals_open"), b"")
            rows = ((key, snapshot.get(key, db=table)) for key in keys)
            proposals = [_proposal.decode(unseal(key, stored, "a proposal")) for key, stored in rows if stored]
        return sorted(proposals, key=lambda proposal: -proposal.seq)

    def open(self) -> int:
        """Return the number of open proposals."""
        return self._count("proposals_open")

    def held(self, pools: Iterable[str]) -> list[str]:
        """Return the ids of the live records of these pools that are pinned or of layer L1 or L2."""
        return [key.decode() for pool in pools for key in self._keys("held", digest(pool))]


def proposal_id(record: str, against: str = "") -> str:
    """Return the id of a proposal: the same two records give the same id."""
    return record_id("inbox", record, against, 0, 0)
