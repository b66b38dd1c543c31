"""The graph: live edges from both of their ends (R8).

Comes in: records, through the fold of records. Goes out: edges that leave or reach a thing. Invariants: the rows follow
from the live records of kind `edge` alone, whose key reads `subject predicate object`; predicate and object hold no
blank, so the key comes apart from its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ...protocol.record import LIVE, Record
from ..storage.checksummed_rows import unseal
from .records import Records, digest


class GraphEdge(msgspec.Struct, frozen=True, array_like=True):
    """One relation as a record states it."""

    id: str
    subject: str
    predicate: str
    object: str


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(GraphEdge)


def edge(record: Record) -> GraphEdge | None:
    """The edge that a record states, or None."""
    parts = record.key.rsplit(" ", 2) if record.kind == "edge" else []
    return GraphEdge(record.id, *parts) if len(parts) == 3 else None


def edge_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """The two rows of a live edge: one below its subject, one below its object."""
    found = edge(record) if record.status in LIVE else None
    if found is not None:
        row = _encode(found)
        yield _end("from", record.pool, found.subject) + record.id.encode(), row
        yield _end("to", record.pool, found.object) + record.id.encode(), row


def _end(direction: str, pool: str, thing: str) -> bytes:
    return digest(f"{direction}\0{pool}\0{thing.casefold()}")


class EdgeTable:
    """Reads of the edges."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def leaving(self, pools: Sequence[str], thing: str) -> list[GraphEdge]:
        """The live edges whose subject is `thing`, in order of id, pool by pool."""
        return self._edges("from", pools, thing)

    def reaching(self, pools: Sequence[str], thing: str) -> list[GraphEdge]:
        """The live edges whose object is `thing`, in order of id, pool by pool."""
        return self._edges("to", pools, thing)

    def _edges(self, direction: str, pools: Sequence[str], thing: str) -> list[GraphEdge]:
        edges: list[GraphEdge] = []
        with self._records.environment.read() as transaction:
            cursor = transaction.cursor(self._records.environment.db("edges"))
            for pool in pools:
                mark = _end(direction, pool, thing)
                found = cursor.set_range(mark)
                while found and cursor.key().startswith(mark):
                    edges.append(_decoder.decode(unseal(*cursor.item(), "an edge")))
                    found = cursor.next()
        return edges
