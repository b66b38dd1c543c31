"""The map of the memory, and the rhythm in which it changed (U4, Q12).

Invariants: only records that the caller may see are read, so their number, their names and the times of their changes
tell nothing of others; nothing is written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ....protocol.map import LABEL, REPLY_BYTES, GetMap, GetRhythm, MapLink, MapMark, MemoryMap, Rhythm
from ....protocol.record import LIVE, Record
from ...projections.pool_directory import PoolDirectory
from ...projections.stores import Stores
from ...projections.timeline import Timeline, View
from ..outgoing_screen import secrets_in, shown, without_secrets
from ..scheduler import Scheduler
from ..service import Caller, Handler, Handlers, Service
from .memory_graph import GraphNode, MemoryGraph, by_strength, in_turns
from .rhythm import changes, rhythm

SLICE = 500
KEPT_S = 60.0
ENVELOPE_BYTES = 500
"""Bytes of a reply around its marks and links, at most."""

_encode = msgspec.json.Encoder().encode


class MapService(Service):
    """Reads of many records at once, on the slow lane."""

    name = "map"

    def __init__(self, stores: Stores, directory: PoolDirectory, timeline: Timeline, scheduler: Scheduler) -> None:
        self._stores, self._directory, self._timeline, self._scheduler = stores, directory, timeline, scheduler
        self._last: tuple[object, MemoryGraph] | None = None
        """The last graph with what it was made of, for the next step of the same reader."""

    def start(self) -> None:
        self._scheduler.every(KEPT_S, self._drop, "map")

    def _drop(self) -> None:
        """Release the last graph, so that memory has no names of forgotten records for long."""
        self._last = None

    @property
    def handlers(self) -> Handlers:
        return {
            GetMap: Handler("slow", self.map, under_pass=True),
            GetRhythm: Handler("slow", self.rhythm, under_pass=True),
        }

    def map(self, request: GetMap, caller: Caller) -> MemoryMap:
        """Return a map of pools and topics, or of what is near something. Raises NotFound, InvalidRequest."""
        view = self._timeline.view(request.as_of, request.believed_at, caller.permits)
        pools = self._directory.listed(request.pools, caller.knows, caller.reader.pools, past=view is not None)
        graph = self._graph((request.as_of, request.believed_at, pools), view, caller)
        if request.around:
            return self._around(graph, request, view)
        return self._whole(graph, request.limit)

    def _graph(self, key: tuple[str, str, tuple[str, ...]], view: View | None, caller: Caller) -> MemoryGraph:
        """Return the graph of some pools at a time, made again if anything changed since the last request."""
        made_of = (self._stores.tables.applied_seq, caller.reader, key)
        last = self._last
        if last is not None and last[0] == made_of:
            return last[1]
        graph = MemoryGraph(self._standing(key[2], view, caller))
        self._last = made_of, graph
        return graph

    def _standing(self, pools: Sequence[str], view: View | None, caller: Caller) -> Iterator[Record]:
        """Yield the records of these pools that are live now, or that a question about that time finds."""
        for pool in pools:
            if view is not None:
                yield from view.standing(pool)
                continue
            for record in self._stores.records.in_pool(pool):
                if record.status in LIVE and (caller.permits is None or caller.permits(record)):
                    yield record

    def _whole(self, graph: MemoryGraph, limit: int) -> MemoryMap:
        pools = graph.pools()
        topics = graph.topics(pools)
        marks = [self._pool(pool, size) for pool, size in pools if pool in topics][:limit]
        at = {mark.id: number for number, mark in enumerate(marks)}
        things: dict[str, int] = {}
        links: list[MapLink] = []
        named = [turn for turn in in_turns(topics) if turn[0] in at and not secrets_in(graph.label(turn[1].thing))]
        for pool, topic in named:
            if topic.thing not in things and len(marks) < limit:
                things[topic.thing] = len(marks)
                size = sum(found.records for _, found in named if found.thing == topic.thing)
                marks.append(MapMark("topic", topic.thing, _label(graph.label(topic.thing)), size=size))
            if topic.thing in things:
                links.append(MapLink(things[topic.thing], at[pool], "in"))
        total = len(pools) + len({topic.thing for found in topics.values() for topic in found})
        return _fitting(marks, links, len(graph.records), total)

    def _pool(self, pool: str, size: int) -> MapMark:
        return MapMark("pool", pool, _label(self._directory.title(pool) or pool), size=size)

    def _around(self, graph: MemoryGraph, request: GetMap, view: View | None) -> MemoryMap:
        rings = graph.reached(graph.place(request.around), request.hops)
        ids = [place.id for ring in rings for place in ring if place.is_record]
        strengths = {id: graph.records[id].strength for id in ids} if view else self._strengths(ids)
        ordered = by_strength(graph, rings, strengths)
        first = ordered[: request.limit]
        ids = [place.id for place, _ in first if place.is_record]
        records = view.many(ids) if view else self._stores.records.many(ids)
        marks: list[MapMark] = []
        at: dict[GraphNode, int] = {}
        for place, strength in first:
            if mark := _mark(graph, place, strength, records):
                at[place] = len(marks)
                marks.append(mark)
        links = [MapLink(*link) for link in graph.links(at)]
        return _fitting(marks, links, len(graph.records), len(ordered))

    def _strengths(self, ids: Sequence[str]) -> Mapping[str, float]:
        strengths: dict[str, float] = {}
        for start in range(0, len(ids), SLICE):
            records = self._stores.records.many(ids[start : start + SLICE]).values()
            strengths.update((id, signal.strength) for id, signal in self._stores.counters.signals(records).items())
        return strengths

    def rhythm(self, request: GetRhythm, caller: Caller) -> Rhythm:
        """Return how much was learnt and retired when. Raises NotFound, NaiveTime, InvalidRequest."""
        pools = self._directory.listed(request.pools, caller.knows, caller.reader.pools)
        records = (record for pool in pools for record in self._stores.records.in_pool(pool))
        seen = (record for record in records if caller.permits is None or caller.permits(record))
        return rhythm(changes(seen, request.clock), request)


def _mark(graph: MemoryGraph, place: GraphNode, strength: float, records: Mapping[str, Record]) -> MapMark | None:
    """Return the mark of a node; None for a record that was removed meanwhile, and for a thing if today's rules take
    its name for a secret."""
    weight = round(strength, 3)
    if not place.is_record:
        name = graph.label(place.id)
        size = len(graph.naming[place.id])
        return None if secrets_in(name) else MapMark("thing", place.id, _label(name), strength=weight, size=size)
    if place.id not in records:
        return None
    record = shown(records[place.id]).record
    label, trust = _label(record.description), record.provenance.trust
    return MapMark("record", record.id, label, record.type, record.status, trust, weight)


def _label(text: str) -> str:
    """Return a text on one line, without secrets, in at most `LABEL` characters."""
    line = " ".join(without_secrets(text).split())
    return line if len(line) <= LABEL else f"{line[: LABEL - 1].rstrip()}…"


def _fitting(marks: Sequence[MapMark], links: Sequence[MapLink], records: int, total: int) -> MemoryMap:
    """Return a map of as many of these marks as a reply has room for, the first ones."""

    def of(number: int) -> MemoryMap:
        inside = tuple(link for link in links if link.source < number and link.target < number)
        return MemoryMap(marks=tuple(marks[:number]), links=inside, records=records, left=total - number)

    def is_over(number: int) -> bool:
        return len(_encode(of(number))) + ENVELOPE_BYTES > REPLY_BYTES

    return of(bisect_left(range(len(marks)), True, key=lambda number: is_over(number + 1)))
