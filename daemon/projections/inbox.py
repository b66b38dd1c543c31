"""What waits for the user's word: proposals and what was decided (T13, G7); and the records that are held on to.

Comes in: `proposed`, `decided`, `redacted`. Goes out: proposals by id. Invariants: a proposal names records by id and
quotes none; proposed twice is once, also after it was decided; one whose record is forgotten goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ...protocol.operation import ChangeDecided, ChangeProposed, Redacted
from ...protocol.record import LIVE, Record, record_id
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from .projection import OperationBatch
from .records import Records, digest


class PendingProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal with its seq, its time in microseconds and what became of it."""

    seq: int
    at: int
    what: ChangeProposed
    state: Literal["open", "accepted", "rejected"] = "open"


_asked = msgspec.msgpack.Decoder(PendingProposal)
_encode = msgspec.msgpack.Encoder().encode
_SEPARATOR = b"\n"


def held_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """The row of a live record that no statement retires by itself."""
    if record.held and record.status in LIVE:
        yield digest(record.pool) + record.id.encode(), b""


class InboxTable:
    """The fold of proposals."""

    databases = ("proposals", "proposals_open", "proposals_of")
    reads = (ChangeProposed, ChangeDecided, Redacted)

    def __init__(self, records: Records) -> None:
        self._records = records

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        """Fold one operation in."""
        db = self._records.environment.db
        match entry.operation:
            case ChangeProposed() as what:
                key = what.id.encode()
                if batch.get(key, db=db("proposals")) is not None:
                    return
                batch.put(key, _encode(PendingProposal(seq=entry.seq, at=entry.at, what=what)), db=db("proposals"))
                batch.put(key, b"", db=db("proposals_open"))
                for id in filter(None, (what.record, what.against)):
                    known = batch.get(id.encode(), db=db("proposals_of")) or b""
                    batch.put(id.encode(), known + key + _SEPARATOR, db=db("proposals_of"))
            case ChangeDecided(id=id, accepted=accepted):
                if stored := batch.get(id.encode(), db=db("proposals")):
                    decided = msgspec.structs.replace(
                        _asked.decode(stored), state="accepted" if accepted else "rejected"
                    )
                    batch.put(id.encode(), _encode(decided), db=db("proposals"))
                    batch.delete(id.encode(), db=db("proposals_open"))
            case Redacted() as redacted:
                for id in redacted.records:
                    for key in (batch.get(id.encode(), db=db("proposals_of")) or b"").split(_SEPARATOR)[:-1]:
                        batch.delete(key, db=db("proposals"))
                        batch.delete(key, db=db("proposals_open"))
                    batch.delete(id.encode(), db=db("proposals_of"))
            case _:
                pass

    def get(self, id: str) -> PendingProposal | None:
        """The proposal of that id, or None."""
        with self._records.environment.read() as transaction:
            stored = transaction.get(id.encode(), db=self._records.environment.db("proposals"))
        return _asked.decode(unseal(id.encode(), stored, "a proposal")) if stored else None

    def starting(self, prefix: str) -> list[str]:
        """Ids of proposals that start with `prefix`, two at most."""
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("proposals"))
            ids: list[str] = []
            going = cursor.set_range(prefix.encode()) if prefix else False
            while going and len(ids) < 2 and cursor.key().startswith(prefix.encode()):
                ids.append(cursor.key().decode())
                going = cursor.next()
            return ids

    def list(self, *, decided: bool = False) -> list[PendingProposal]:
        """Open proposals, or all of them, newest first."""
        db = self._records.environment.db
        with self._records.environment.read() as transaction:
            keys = [key for key, _ in transaction.cursor(db("proposals" if decided else "proposals_open")).iternext()]
            found = ((key, transaction.get(key, db=db("proposals"))) for key in keys)
            asked = [_asked.decode(unseal(key, stored, "a proposal")) for key, stored in found if stored]
        return sorted(asked, key=lambda each: -each.seq)

    def open(self) -> int:
        """How many are open."""
        with self._records.environment.read() as transaction:
            return int(transaction.stat(self._records.environment.db("proposals_open"))["entries"])

    def held(self, pools: Iterable[str]) -> list[str]:
        """Ids of the live records of these pools that are pinned or of layer L1 or L2."""
        ids: list[str] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("held"))
            for pool in pools:
                going = cursor.set_range(digest(pool))
                while going and cursor.key().startswith(digest(pool)):
                    ids.append(cursor.key()[16:].decode())
                    going = cursor.next()
        return ids


def proposal_id(record: str, against: str = "") -> str:
    """The id of a proposal: the same two records give the same one."""
    return record_id("inbox", record, against, 0, 0)
