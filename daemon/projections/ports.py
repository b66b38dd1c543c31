"""The ports of the record store and of the two kinds of index: what services need of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ...protocol.record import Record
from .terms import TermQuery, TermScores
from .vector_store import StoredVectors, Vector


class RecordReader(Protocol):
    """Reads of the current records (`Records`)."""

    def get(self, id: str) -> Record | None:
        """Return the record with this id, or None."""
        ...

    def many(self, ids: Iterable[str]) -> dict[str, Record]:
        """Return the records that exist among these ids, from one snapshot."""
        ...

    def successor(self, record: Record) -> str:
        """Return the id at the end of the chain of records that replaced this one, "" for none."""
        ...

    def ever(self, pool: str, key: str = "") -> list[str]:
        """Return the ids of the records that ever were in a pool, or ever held a key there."""
        ...


class TextIndex(Protocol):
    """A keyword index (`TermIndex`). A text is found from the moment it is put."""

    name: str
    applied: int

    def search(
        self, question: TermQuery | str, groups: Sequence[str] | None, limit: int, *, past: bool = False
    ) -> TermScores:
        """Return the scores of the best texts in these groups (None: in all)."""
        ...

    def commit(self) -> None:
        """Write the index to the disk."""
        ...

    def reopen(self) -> None:
        """Go back to the last commit after a failure."""
        ...


class VectorIndex(Protocol):
    """The vectors of one pool (`ExactIndex`, `GraphIndex`). One thread writes, any thread searches."""

    def put(self, ids: Sequence[str], vectors: Vector) -> None:
        """Insert or replace the vectors of these records, one row each."""
        ...

    def drop(self, id: str) -> None:
        """Remove a record, if it is present."""
        ...

    def nearest(self, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """Return at most `limit` records by falling cosine, in [-1, 1]."""
        ...

    def cosines(self, vector: Vector, ids: Sequence[str], stored: StoredVectors) -> dict[str, float]:
        """Return the cosines of those of these records whose vector it has. `stored` is read by an index that holds no
        vectors as rows."""
        ...

    @property
    def is_outgrown(self) -> bool:
        """Whether a new graph would be faster, if there are enough vectors."""
        ...

    def holds(self, id: str) -> bool:
        """Whether it has the vector of a record."""
        ...

    def __len__(self) -> int: ...
