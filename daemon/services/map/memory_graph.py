"""Records and the things that they name, as a graph of two kinds of nodes; what of it a map shows (U4).

Invariants: it is made of the records that it is given alone, so that a pass limits it before anything is counted; the
same records give the same map. A step leads from a record to a thing or back, or from a record to one that it replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from typing import NamedTuple

from ....protocol.errors import NotFound
from ....protocol.map import POOLS, TOPICS, LinkKind
from ....protocol.record import Record
from .things import LowerCaseWords, folded, things_of

FEWEST = 2
"""Records that name a topic, at least."""

UNIQUE = 6
"""Least characters of the beginning of a record's id."""


class GraphNode(NamedTuple):
    """A node: a record by its id, or a thing by its folded name."""

    is_record: bool
    id: str


class PoolTopic(NamedTuple):
    """A thing that sets a pool apart; how many of its records name it."""

    thing: str
    records: int


class GraphRecord(NamedTuple):
    """A record as a node: the things that it names, the records that it replaced, its strength as it was written."""

    pool: str
    things: tuple[str, ...]
    replaced: tuple[str, ...]
    strength: float
    relation: tuple[str, ...] = ()
    """Subject and object, where the record is a relation."""


class MemoryGraph:
    """The graph of some records."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records: dict[str, GraphRecord] = {}
        self.naming: dict[str, list[str]] = {}
        """By thing: the records that name it."""
        self._spelt: dict[str, Counter[str]] = {}
        leading: dict[str, tuple[str, ...]] = {}
        given: set[str] = set()
        words = LowerCaseWords()
        for record in records:
            things = things_of(record)
            self._add(record, things.certain)
            given.update(map(folded, things.given))
            words.read(record)
            if things.leading:
                leading[record.id] = things.leading
        certain = set(self.naming)
        for id, names in leading.items():
            for name in names:
                self._name(id, name, certain)
        named = ((self.label(thing), len(ids)) for thing, ids in self.naming.items() if thing not in given)
        self._common = frozenset(map(folded, words.common(named)))
        """Things whose name is but a common word; no map shows them beside others."""
        self._replaced_by: dict[str, list[str]] = {}
        for id, node in self.records.items():
            for old in node.replaced:
                if old in self.records:
                    self._replaced_by.setdefault(old, []).append(id)

    def _add(self, record: Record, names: Sequence[str]) -> None:
        things = tuple(map(folded, names))
        relation = things if record.kind == "edge" and len(things) == 2 else ()
        self.records[record.id] = GraphRecord(record.pool, things, record.supersedes, record.signal.strength, relation)
        for thing, name in zip(things, names, strict=True):
            self.naming.setdefault(thing, []).append(record.id)
            self._spelt.setdefault(thing, Counter())[name] += 1

    def _name(self, id: str, name: str, certain: set[str]) -> None:
        """Count a word that begins a sentence as a name, if another record has it as one."""
        thing, node = folded(name), self.records[id]
        if thing in certain and thing not in node.things:
            self.records[id] = node._replace(things=(*node.things, thing))
            self.naming[thing].append(id)

    def label(self, thing: str) -> str:
        """Return the most frequent spelling of a thing's name."""
        spelt = self._spelt[thing]
        return min(spelt, key=lambda name: (-spelt[name], name))

    # --- the whole -----------------------------------------------------------------------------------------------
    def pools(self) -> list[tuple[str, int]]:
        """Return the pools with their numbers of records, the largest first."""
        sizes = Counter(node.pool for node in self.records.values())
        return sorted(sizes.items(), key=lambda pool: (-pool[1], pool[0]))

    def topics(self, pools: Sequence[tuple[str, int]]) -> dict[str, list[PoolTopic]]:
        """Return the topics of these pools, the most telling first: things that many records of the pool name, and few
        of the other pools."""
        counts: dict[str, Counter[str]] = {pool: Counter() for pool, _ in pools[:POOLS]}
        for thing, ids in self.naming.items():
            for id in ids:
                if (count := counts.get(self.records[id].pool)) is not None:
                    count[thing] += 1
        total = len(self.records)
        topics: dict[str, list[PoolTopic]] = {}
        for pool, size in pools[:POOLS]:
            others = max(1, total - size)

            def weight(topic: PoolTopic, size: int = size, others: int = others) -> float:
                outside = (len(self.naming[topic.thing]) - topic.records) / others
                return topic.records * log(1 + topic.records / size / (outside + 1 / total))

            named = [
                PoolTopic(thing, count)
                for thing, count in counts[pool].items()
                if count >= FEWEST and thing not in self._common
            ]
            topics[pool] = sorted(named, key=lambda topic: (-round(weight(topic), 6), topic.thing))
        return topics

    # --- around something ------------------------------------------------------------------------------------------
    def place(self, name: str) -> GraphNode:
        """Return the node of a record's id, of a thing's name, or of the beginning of an id. Raises NotFound."""
        name = name.strip()
        if name.lower() in self.records:
            return GraphNode(True, name.lower())
        if folded(name) in self.naming:
            return GraphNode(False, folded(name))
        prefix = name.lower()
        starting = [id for id in self.records if id.startswith(prefix)] if len(prefix) >= UNIQUE else []
        if len(starting) == 1:
            return GraphNode(True, starting[0])
        problem = "several records start with" if starting else "no record here names"
        raise NotFound(f"{problem} {name!r}", hint="`memd map` lists topics, `memd list` the ids of records")

    def reached(self, centre: GraphNode, hops: int) -> list[list[GraphNode]]:
        """Return the nodes by their distance from a node, 0 to `hops`."""
        rings, seen = [[centre]], {centre}
        for _ in range(hops):
            ring = list(dict.fromkeys(near for place in rings[-1] for near in self._near(place) if near not in seen))
            seen.update(ring)
            rings.append(ring)
        return rings

    def _near(self, place: GraphNode) -> Iterator[GraphNode]:
        if not place.is_record:
            yield from (GraphNode(True, id) for id in self.naming[place.id])
            return
        node = self.records[place.id]
        yield from (GraphNode(False, thing) for thing in node.things if thing not in self._common)
        replaced = (id for id in node.replaced if id in self.records)
        yield from (GraphNode(True, id) for id in (*replaced, *self._replaced_by.get(place.id, ())))

    def links(self, shown: Mapping[GraphNode, int]) -> Iterator[tuple[int, int, LinkKind]]:
        """Yield the links between shown nodes, by their places."""
        for place, at in shown.items():
            if place.is_record:
                node = self.records[place.id]
                for thing in node.things:
                    if (to := shown.get(GraphNode(False, thing))) is not None:
                        yield at, to, _kind(node, thing)
                for id in node.replaced:
                    if (to := shown.get(GraphNode(True, id))) is not None:
                        yield at, to, "replaces"


def _kind(node: GraphRecord, thing: str) -> LinkKind:
    if thing not in node.relation:
        return "names"
    return "subject" if thing == node.relation[0] else "object"


def in_turns(topics: Mapping[str, Sequence[PoolTopic]]) -> list[tuple[str, PoolTopic]]:
    """Return topics with their pools: the first of each pool, then the second of each, and so on, no more than `TOPICS`
    of one."""
    ranked = [(rank, pool, topic) for pool, found in topics.items() for rank, topic in enumerate(found[:TOPICS])]
    ranked.sort(key=lambda turn: (turn[0], -turn[2].records, turn[1]))
    return [(pool, topic) for _, pool, topic in ranked]


def by_strength(
    graph: MemoryGraph, rings: Sequence[Sequence[GraphNode]], of: Mapping[str, float]
) -> list[tuple[GraphNode, float]]:
    """Return nodes with their strengths: nearer ones first, in a ring the strongest first. `of`: by record."""
    ordered: list[tuple[GraphNode, float]] = []
    for ring in rings:
        weighed = [
            (place, of[place.id] if place.is_record else _strongest(graph.naming[place.id], of)) for place in ring
        ]
        sizes = {place: 0 if place.is_record else len(graph.naming[place.id]) for place in ring}
        ordered += sorted(weighed, key=lambda row: (-row[1], -sizes[row[0]], row[0].id))
    return ordered


def _strongest(ids: Sequence[str], of: Mapping[str, float]) -> float:
    return max((of[id] for id in ids if id in of), default=0.0)
