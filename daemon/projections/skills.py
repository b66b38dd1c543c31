"""The states of the files of placed skills (K2).

Invariant: a row has hashes and times, no text; forgetting the record of a skill removes its row.
"""

from __future__ import annotations

import msgspec

from ...protocol.operation import Redacted, SkillRevised
from ...protocol.reply import Logged
from .projection import FoldTables, OperationBatch


class SkillState(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a skill's file. `at`: microseconds."""

    what: SkillRevised
    at: int


_states = msgspec.msgpack.Decoder(tuple[SkillState, ...])
_encode = msgspec.msgpack.Encoder().encode


class SkillTable(FoldTables):
    """The fold of revisions, by record."""

    databases = ("skills",)
    reads = (SkillRevised, Redacted)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        db = self._table("skills")
        match entry.operation:
            case SkillRevised(record=record) as what:
                stored = batch.get(record.encode(), db=db)
                states = _states.decode(stored) if stored else ()
                batch.put(record.encode(), _encode((*states, SkillState(what=what, at=entry.at))), db=db)
            case Redacted(records=records):
                for id in records:
                    batch.delete(id.encode(), db=db)
            case _:
                pass

    def states(self, record: str) -> tuple[SkillState, ...]:
        """Return the states of a skill's file, the oldest first; none for an unknown record."""
        stored = self._value("skills", record.encode(), "the states of a skill")
        return _states.decode(stored) if stored else ()

    def ids(self) -> list[str]:
        """Return the ids of the records of all skills that were ever placed."""
        return [key.decode() for key in self._keys("skills", b"")]
