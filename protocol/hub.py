"""What a client and a hub say to each other, as MessagePack over HTTP (H3).

Invariants: a hub gets the same heads and lines that git carries, and can change none of them, because their authors
signed them; a request carries the holder's pass in the `Authorization` header and names pools by their names at the
hub; a reply about a pool has only what the pass and the hub's grants cover at that moment.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from .share import SegmentData

HUB_DIMENSIONS = 384
HUB_TYPE = "application/msgpack"
MOST_BYTES = 32 * 1024 * 1024
"""Most bytes of a request or reply: some 100,000 lines."""

MOST_LINES_AT_ONCE = 200_000
"""Most new lines of one put."""

PAGE, MOST_HITS = 16, 50
"""Most segments of one reply, and most records of an answer."""

PoolName = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._/-]{0,119}$")]
PartitionName = Annotated[str, msgspec.Meta(pattern="^[a-z2-7]{24}$")]
Vector = Annotated[bytes, msgspec.Meta(min_length=2 * HUB_DIMENSIONS, max_length=2 * HUB_DIMENSIONS)]
"""A unit vector: little-endian float16."""


class HubRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the requests. `path`: where it is posted to."""

    path: ClassVar[str] = ""


class HubPools(HubRequest, frozen=True, kw_only=True):
    """List the pools that the pass covers."""

    path: ClassVar[str] = "/v1/pools"


class HubHeads(HubRequest, frozen=True, kw_only=True):
    """Return the heads of a pool's partitions. `partition`: of this one alone."""

    path: ClassVar[str] = "/v1/heads"
    pool: PoolName
    partition: PartitionName | None = None


class HubSegments(HubRequest, frozen=True, kw_only=True):
    """Return segments of a partition, at most `PAGE`."""

    path: ClassVar[str] = "/v1/segments"
    pool: PoolName
    partition: PartitionName
    numbers: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=PAGE)]


class LineVector(msgspec.Struct, frozen=True, array_like=True):
    """The embedding of the text of line `n`."""

    n: Annotated[int, msgspec.Meta(ge=0)]
    vector: Vector


class HubPut(HubRequest, frozen=True, kw_only=True):
    """Put a partition. `hashes`: of all segments; `segments`: those that the hub does not have as they are. `model`:
    the one that made `vectors`, which may be missing."""

    path: ClassVar[str] = "/v1/put"
    pool: PoolName
    head: bytes
    hashes: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=3000)] = ()
    segments: Annotated[tuple[SegmentData, ...], msgspec.Meta(max_length=3000)] = ()
    model: Annotated[str, msgspec.Meta(max_length=200)] = ""
    vectors: Annotated[tuple[LineVector, ...], msgspec.Meta(max_length=MOST_LINES_AT_ONCE)] = ()


class HubRecall(HubRequest, frozen=True, kw_only=True):
    """Search pools, all that the pass covers if `pools` is empty. `vector`: of the question, by `model`."""

    path: ClassVar[str] = "/v1/recall"
    query: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    pools: Annotated[tuple[PoolName, ...], msgspec.Meta(max_length=500)] = ()
    model: Annotated[str, msgspec.Meta(max_length=200)] = ""
    vector: Vector | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_HITS)] = 8


# --- replies ---------------------------------------------------------------------------------------------------------
class PoolAtHub(msgspec.Struct, frozen=True, kw_only=True):
    """A pool. `mark`: what heads name it by; `until`: when the holder's right ends, microseconds of UTC."""

    name: str
    mark: str
    until: int


class PoolsAtHub(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `HubPools`."""

    subject: str
    pools: tuple[PoolAtHub, ...]


class HeadAtHub(msgspec.Struct, frozen=True, array_like=True):
    """A partition: its signed head, and the hashes of its segments."""

    partition: str
    head: bytes
    hashes: tuple[bytes, ...]


class HeadsAtHub(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `HubHeads`. `withheld`: the partitions of this pool that the hub shows to nobody."""

    pool: PoolAtHub
    subject: str
    heads: tuple[HeadAtHub, ...] = ()
    withheld: tuple[str, ...] = ()


class SegmentsAtHub(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `HubSegments`: the first of them that fit into one reply, at least one."""

    segments: tuple[SegmentData, ...] = ()


class PutAtHub(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `HubPut`. `problem`: why the hub refused the partition; `wanted`: segments that were not sent and that
    it lacks."""

    problem: str = ""
    wanted: tuple[int, ...] = ()


class HubHit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record at the hub. `author`: what the author calls himself; `similarity`: cosine, None without vectors;
    `disputed`: another author retracted it."""

    pool: str
    partition: str
    n: int
    text: str
    author: str
    type: str = "note"
    key: str = ""
    said: str = ""
    similarity: float | None = None
    disputed: bool = False


class RecalledAtHub(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `HubRecall`, best first. `late`: pools that the hub left out, because the search took too long."""

    hits: tuple[HubHit, ...] = ()
    late: tuple[str, ...] = ()


class HubProblem(msgspec.Struct, frozen=True, kw_only=True):
    """The body of any reply that is not 200."""

    code: str
    message: str
    hint: str = ""


def pool_mark(hub: str, pool: str) -> str:
    """Return the mark that heads of a hub's pool carry. It names the hub too, so that nobody can replay what was signed
    for one audience to another."""
    return f"hub/{hub[:32]}/{pool}"
