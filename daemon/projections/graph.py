"""Live edges by both of their ends (R8).

Invariants: the rows follow from the live records of kind `edge` alone, whose key is `subject predicate object`;
predicate and object contain no blank, so the key is split from its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ...protocol.record import LIVE, Record
from .projection import FoldTables
from .records import digest


class GraphEdge(msgspec.Struct, frozen=True, array_like=True):
    """A relation as a record states it."""

    id: str
    subject: str
    predicate: str
    object: str


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(GraphEdge)


def edge(record: Record) -> GraphEdge | None:
    """Return the edge that a record states, or None."""
    parts = record.key.rsplit(" ", 2) if record.kind == "edge" else []
    return GraphEdge(record.id, *parts) if len(parts) == 3 else None


def edge_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """Return the two rows of a live edge: by subject and by object."""
    relation = edge(record) if record.status in LIVE else None
    if relation is not None:
        row = _encode(relation)
        yield _end("from", record.pool, relation.subject) + record.id.encode(), row
        yield _end("to", record.pool, relation.object) + record.id.encode(), row


def _end(direction: str, pool: str, thing: str) -> bytes:
    return digest(f"{direction}\0{pool}\0{thing.casefold()}")


class EdgeTable(FoldTables):
    """Reads of the edges."""

    def leaving(self, pools: Sequence[str], thing: str) -> list[GraphEdge]:
        """Return the live edges whose subject is `thing`, in order of id, pool by pool."""
        rows = (row for pool in pools for row in self._values("edges", "an edge", _end("from", pool, thing)))
        return [_decoder.decode(row) for row in rows]
