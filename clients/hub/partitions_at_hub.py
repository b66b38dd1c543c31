"""Partitions in the hub's tables: their heads, their lines, and putting what is new (H3).

Invariants: a partition is put whole or not at all, by the same rules by which a daemon takes one; a reader sees the
lines of a head and none beyond; what a reader has is told by heads, never by a sequence, because transactions commit in
another order than they begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from psycopg import Connection

from ...protocol.errors import Denied, InvalidRequest, NotFound
from ...protocol.hub import (
    MOST_LINES_AT_ONCE,
    HeadAtHub,
    HubPut,
    HubSegments,
    PoolAtHub,
    PutAtHub,
    SegmentsAtHub,
    pool_mark,
)
from ...protocol.partition_acceptance import Accepted, KnownPartition, accept
from ...protocol.share import SegmentData
from ...protocol.shared_lines import (
    SEGMENT,
    AddLine,
    InvLine,
    MalformedShare,
    ShareHead,
    decode_shared,
    of_repository,
    parse_line_name,
    shown_name,
    verified_head,
)
from .hub_candidates import as_halfvec, searchable

T = TypeVar("T")
REPLY_BYTES = 8 * 1024 * 1024
HASH_BYTES = 32
MOST_PARTITIONS = 64
"""Partitions of one subject in a pool: one a device."""

GROUP = 1_000
"""Lines of one statement."""


class GrantedPool(NamedTuple):
    """A pool that the asker may use, with the number by which the tables know it."""

    number: int
    at_hub: PoolAtHub


def granted(connection: Connection, pools: Sequence[str], expires_at: int) -> dict[str, GrantedPool]:
    """Return the pools of the asker by name: those of the grants that the pass covers too (none named: all). The right
    ends with the grant or the pass (`expires_at`, microseconds), whichever is first."""
    rows = connection.execute(
        "select p.id, p.name, h.id, (extract(epoch from g.until) * 1000000)::bigint"
        " from memd.granted() g join memd.pool p on p.id = g.pool, memd.hub h"
        " where %s::text[] = '{}' or p.name = any(%s) order by p.name",
        (list(pools), list(pools)),
    )
    return {
        name: GrantedPool(number, PoolAtHub(name=name, mark=pool_mark(hub, name), until=min(until, expires_at)))
        for number, name, hub, until in rows
    }


# --- reading ---------------------------------------------------------------------------------------------------------
def heads(connection: Connection, pool: int, partition: str | None = None) -> tuple[HeadAtHub, ...]:
    """Return the heads of a pool's partitions, or of one."""
    rows = connection.execute(
        "select part, head, hashes from memd.head where pool = %s and (%s::text is null or part = %s) order by part",
        (pool, partition, partition),
    )
    return tuple(HeadAtHub(part, head, _split(hashes)) for part, head, hashes in rows)


def withheld(connection: Connection, pool: int) -> tuple[str, ...]:
    """Return the partitions of a pool that the hub shows to nobody."""
    return tuple(row[0] for row in connection.execute("select memd.withheld_in(%s)", (pool,)))


def segments(connection: Connection, pool: int, request: HubSegments) -> SegmentsAtHub:
    """Return segments of a partition, as many as one reply can hold. Raises NotFound."""
    row = connection.execute(
        "select count from memd.head where pool = %s and part = %s", (pool, request.partition)
    ).fetchone()
    if row is None:
        raise NotFound("there is no such partition in this pool")
    found: list[SegmentData] = []
    size = 0
    for number in request.numbers:
        data = _segment(connection, pool, request.partition, number, row[0])
        size += len(data)
        if not data or (found and size > REPLY_BYTES):
            break
        found.append(SegmentData(number, data))
    return SegmentsAtHub(segments=tuple(found))


def _segment(connection: Connection, pool: int, partition: str, number: int, count: int) -> bytes:
    rows = connection.execute(
        "select line from memd.op where pool = %s and part = %s and n >= %s and n < %s order by n",
        (pool, partition, number * SEGMENT, min(count, (number + 1) * SEGMENT)),
    )
    return b"".join(line + b"\n" for (line,) in rows)


def _split(hashes: bytes) -> tuple[bytes, ...]:
    return tuple(hashes[start : start + HASH_BYTES] for start in range(0, len(hashes), HASH_BYTES))


# --- putting ---------------------------------------------------------------------------------------------------------
def put(connection: Connection, pool: GrantedPool, subject: str, request: HubPut) -> PutAtHub:
    """Put what is new of a partition. Raises Denied for one that is revoked."""
    try:
        head = verified_head(request.head)
        connection.execute("select pg_advisory_xact_lock(%s, hashtext(%s))", (pool.number, head.partition))
        if connection.execute("select from memd.revoked where part = %s", (head.partition,)).fetchone() is not None:
            raise Denied("the hub no longer takes this author's lines", hint="ask the hub's administrator")
        known = _known(connection, pool.number, head)
        if not known.hashes and not known.count and _partitions(connection, pool.number, subject) >= MOST_PARTITIONS:
            raise Denied(f"{subject} has {MOST_PARTITIONS} partitions in this pool", hint="ask the hub's administrator")
        marks = {of_repository("", pool.at_hub.mark)}
        accepted = accept(known, head, request.hashes, request.segments, marks, most=MOST_LINES_AT_ONCE)
    except MalformedShare as error:
        return PutAtHub(problem=str(error))
    if accepted.left:
        return PutAtHub(wanted=accepted.wanted)
    _write(connection, pool.number, subject, request, _PutLines(head, known.count, accepted))
    return PutAtHub()


def _partitions(connection: Connection, pool: int, subject: str) -> int:
    """Return how many partitions a subject has put into a pool."""
    row = connection.execute(
        "select count(*) from memd.head where pool = %s and subject = %s", (pool, subject)
    ).fetchone()
    return row[0] if row else 0


def _known(connection: Connection, pool: int, head: ShareHead) -> KnownPartition:
    partition = head.partition
    row = connection.execute(
        "select epoch, count, hashes from memd.head where pool = %s and part = %s", (pool, partition)
    ).fetchone()
    if row is None:
        return KnownPartition()
    epoch, count, hashes = row
    gone: frozenset[int] = frozenset()
    if head.epoch > epoch:
        rows = connection.execute(
            'select n from memd.op where pool = %s and part = %s and substring(line for 9) = \'{"gone":"\'::bytea',
            (pool, partition),
        )
        gone = frozenset(number for (number,) in rows)
    return KnownPartition(epoch, count, _split(hashes), gone.__contains__)


class _PutLines(NamedTuple):
    """The head that is put, the number of lines that the hub had, and what is new."""

    head: ShareHead
    known: int
    accepted: Accepted


def _write(connection: Connection, pool: int, subject: str, request: HubPut, lines: _PutLines) -> None:
    head, known, accepted = lines
    if accepted.gone:
        gone = [accepted.lines[n // SEGMENT][n % SEGMENT] for n in accepted.gone]
        connection.execute("select memd.redact(%s, %s, %s, %s)", (pool, head.partition, list(accepted.gone), gone))
    fresh = list(enumerate(accepted.fresh, known))
    for group in _groups(fresh):
        connection.execute(
            "insert into memd.op (pool, part, n, line) select %s, %s, * from unnest(%s::int[], %b::bytea[])",
            (pool, head.partition, [number for number, _ in group], [raw for _, raw in group]),
        )
    _project(connection, pool, head.partition, fresh, request)
    connection.execute(
        "insert into memd.head (pool, part, subject, name, epoch, count, head, hashes)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s) on conflict (pool, part) do update set"
        " name = excluded.name, epoch = excluded.epoch, count = excluded.count, head = excluded.head,"
        " hashes = excluded.hashes",
        (
            *(pool, head.partition, subject, _author(head), head.epoch, head.count),
            *(request.head, b"".join(request.hashes)),
        ),
    )


def _author(head: ShareHead) -> str:
    try:
        return shown_name(head.name)
    except InvalidRequest:
        return head.partition[:8]


def _project(
    connection: Connection, pool: int, partition: str, lines: Iterable[tuple[int, bytes]], request: HubPut
) -> None:
    """Make the rows that search needs from new lines. A line that can't be read is stored and not searched."""
    vectors = {row.n: row.vector for row in request.vectors}
    for group in _groups(list(_readable(lines))):
        adds = [line for line in group if isinstance(line, AddLine)]
        _add(connection, pool, partition, adds, request.model, vectors)
        retracted = [(line.n, *parse_line_name(line.id)) for line in group if isinstance(line, InvLine)]
        if retracted:
            numbers, parts, places = (list(column) for column in zip(*retracted, strict=True))
            connection.execute(
                "insert into memd.inv (pool, by_part, by_n, part, n)"
                " select %s, %s, * from unnest(%s::int[], %s::text[], %s::int[])",
                (pool, partition, numbers, parts, places),
            )


def _groups(lines: list[T]) -> Iterator[list[T]]:
    """Yield the lines of one statement after the other."""
    return (lines[start : start + GROUP] for start in range(0, len(lines), GROUP))


def _readable(lines: Iterable[tuple[int, bytes]]) -> Iterator[AddLine | InvLine]:
    for number, raw in lines:
        try:
            line = decode_shared(raw, number)
            if isinstance(line, InvLine):
                parse_line_name(line.id)
        except MalformedShare:
            continue
        if isinstance(line, AddLine | InvLine):
            yield line


def _add(
    connection: Connection, pool: int, partition: str, lines: Sequence[AddLine], model: str, vectors: dict[int, bytes]
) -> None:
    if not lines:
        return
    columns = (
        [line.n for line in lines],
        [_storable(line.text) for line in lines],
        [_storable(line.type) for line in lines],
        [_storable(line.key) for line in lines],
        [_storable(line.said) for line in lines],
        [searchable(" ".join((line.text, line.key, *line.tags))) for line in lines],
        [model if line.n in vectors else "" for line in lines],
        [as_halfvec(vectors[line.n]) if line.n in vectors else None for line in lines],
    )
    connection.execute(
        "insert into memd.rec (pool, part, n, text, type, key, said, words, model, vec, held)"
        " select %s, %s, n, text, type, key, said,"
        " to_tsvector('memd.any_language', words) || to_tsvector('english', words), model, vec,"
        " n <> all ((select memd.retracted(%s, %s))::int[])"
        " from unnest(%s::int[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %b::halfvec[])"
        " as line(n, text, type, key, said, words, model, vec)",
        (pool, partition, pool, partition, *columns),
    )


def _storable(text: str) -> str:
    """Return a text without zero characters, which PostgreSQL can't store."""
    return text.replace("\0", "")
