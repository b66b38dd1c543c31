"""Requests and replies about the memory as a whole: what it has in it, and when it changed (U4, Q12).

Invariants: a mark has no text but its label; a reply is at most `REPLY_BYTES` long, however large the memory is.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .record import Status
from .request_fields import Names, Request

MARKS, POOLS, TOPICS = 400, 40, 60
"""Most marks of a map, pools in it, and topics of one pool."""

LABEL = 60
"""Most characters of a label."""

REPLY_BYTES = 64_000
BUCKETS = 400

MarkKind = Literal["pool", "topic", "thing", "record"]
LinkKind = Literal["in", "names", "subject", "object", "replaces"]


class GetMap(Request, tag="map", frozen=True, kw_only=True):
    """Draw a map of the memory. Without `around`: the pools with their topics, the things that many of a pool's records
    name. With `around`, a record's id or a thing's name: that, and what is at most `hops` steps away; a step leads from
    a record to a thing that it names or is about, or back. `pools`, `as_of` and `believed_at` as in `list` (Q12)."""

    pools: Names = ()
    around: Annotated[str, msgspec.Meta(max_length=200)] = ""
    hops: Annotated[int, msgspec.Meta(ge=1, le=3)] = 2
    as_of: str = ""
    believed_at: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MARKS)] = MARKS


class MapMark(msgspec.Struct, frozen=True, array_like=True):
    """A pool, a topic, a thing or a record. `id`: what `around` takes, of a pool its name. `size`: records in a pool,
    or that name a thing; `strength`: of a record now, or the largest of the records that lead to a thing."""

    kind: MarkKind
    id: str
    label: str
    type: str = ""
    status: Status | Literal[""] = ""
    trust: str = ""
    strength: float = 0.0
    size: int = 0


class MapLink(msgspec.Struct, frozen=True, array_like=True):
    """A link between two marks, by their places in `marks`: a topic `in` a pool; a record that `names` a thing, or has
    it as `subject` or `object` of its relation; a record that `replaces` another."""

    source: int
    target: int
    kind: LinkKind


class MemoryMap(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `map`. Around a thing or a record, that is the first mark; nearer marks come first, stronger ones before
    weaker ones. `left`: marks over a limit, the weakest; `records`: records that the map is made of."""

    marks: tuple[MapMark, ...]
    links: tuple[MapLink, ...]
    records: int
    left: int = 0


Clock = Literal["world", "system"]


class GetRhythm(Request, tag="rhythm", frozen=True, kw_only=True):
    """Count how many records were learnt and retired in each of some equal periods. `clock`: when a statement began and
    ceased to be true (`world`), or when memd learnt and retired it (`system`). `pools` as in `list`. `since` and
    `until` (RFC 3339): by default the first and the last change. `beside`: a time whose neighbouring changes are told;
    by default after the last (Q12)."""

    pools: Names = ()
    clock: Clock = "world"
    since: str = ""
    until: str = ""
    buckets: Annotated[int, msgspec.Meta(ge=1, le=BUCKETS)] = 60
    beside: str = ""


class RhythmBucket(msgspec.Struct, frozen=True, array_like=True):
    """A period: its start (RFC 3339), and how many records were learnt and retired in it."""

    start: str
    learnt: int
    retired: int


class Rhythm(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `rhythm`: periods in order, none where nothing was learnt. `until`: the end of the last one; `before`,
    `after`: the changes before and after `beside`, "" for none, anywhere in time."""

    buckets: tuple[RhythmBucket, ...]
    until: str = ""
    before: str = ""
    after: str = ""
