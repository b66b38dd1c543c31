"""Consolidation: repeated episodes get one general successor and are archived after it.

Invariants: a successor is a clause of one of its sources, names no time and cites all; sources are archived once
the successor has a vector; the same episodes get one successor at most; pinned, keyed and flagged records take no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from ....protocol.fading import Archived
from ....protocol.operation import Added, Decision, Neighbour, Step
from ....protocol.record import CONSOLIDATED, LIVE, Evidence, Record, record_id
from ....stages.episodes import Telling, general
from ...forgetting_rules import Rules
from ...projections.records import digest
from ...projections.stores import Stores
from ..record_history import entries
from ..statements import line
from ..write_thread import Writer

NEWEST = 200
"""Newest records of a pool that one sleep compares."""

ORDINAL = 1_000_000
"""Sets a successor's id apart from those of the statements of its turn."""

HAPPENED = frozenset({"note", "lesson", "fact", "event"})
"""Types of notes about events; in rules and wishes a time is part of the meaning."""


class Consolidation:
    """Looks for episodes in a pool; not on the write thread."""

    def __init__(self, stores: Stores, writer: Writer, rules: Callable[[], Rules]) -> None:
        self._stores, self._writer, self._rules = stores, writer, rules

    def run(self, pool: str) -> tuple[str, ...]:
        """Add successors of a pool's episodes, and archive the sources of earlier successors; return the new ids."""
        if self._rules().is_off(pool):
            return ()
        newest = self._stores.records.recent(pool, None, NEWEST)
        earlier = [record for record in newest if CONSOLIDATED in record.tags and record.status in LIVE]
        for successor in earlier:
            if self._stores.vectors.holds(successor.id):
                self._writer.run(lambda successor=successor: self._archive(successor)).result()
        represented = {id for successor in earlier for id in successor.supersedes}
        notes = [record for record in newest if _is_episode(record) and record.id not in represented]
        successors = [successor for group in self._episodes(notes) if (successor := self._successor(group)) is not None]
        for successor, near in successors:
            self._writer.run(lambda s=successor, near=near: self._add(s, near)).result()
        return tuple(successor.id for successor, _ in successors)

    def _episodes(self, notes: Sequence[Record]) -> list[tuple[Record, ...]]:
        """Return disjoint groups of similar notes, the most central of the believed ones first."""
        places, vectors = self._stores.vector_store.get([digest(note.description) for note in notes])
        notes = [notes[place] for place in places]
        rows = vectors.astype(np.float32)
        alike = rows @ rows.T >= self._rules().episode_alike
        groups: list[tuple[Record, ...]] = []
        taken: set[int] = set()
        for place in np.argsort(-alike.sum(axis=1), kind="stable"):
            inside = [
                int(n) for n in np.flatnonzero(alike[place]) if int(n) not in taken and _same(notes, int(place), int(n))
            ]
            if int(place) in taken or not self._is_enough([notes[n] for n in inside]):
                continue
            taken.update(inside)
            central = sorted(inside, key=lambda n: _centrality(notes[n], rows[n] @ rows[inside].T))
            groups.append(tuple(notes[n] for n in central))
        return groups

    def _is_enough(self, group: Sequence[Record]) -> bool:
        rules, told = self._rules(), [source for note in group for source, _ in _tellings(note)]
        return len(told) >= rules.episodes and len(set(told)) >= rules.episode_sessions

    def _successor(self, group: Sequence[Record]) -> tuple[Record, tuple[Neighbour, ...]] | None:
        """Return the most central clause that is whole without time and place, citing the whole group; None if there is
        no such clause, or it exists."""
        told = [Telling(note.content, at, note.language) for note in group for _, at in _tellings(note)]
        for note in group:
            content, description = (general(words, note.language, told) for words in (note.content, note.description))
            if content and description and (len(group) > 1 or content != note.content):
                return self._stated(note, content, description, group)
        return None

    def _stated(
        self, medoid: Record, content: str, description: str, group: Sequence[Record]
    ) -> tuple[Record, tuple[Neighbour, ...]] | None:
        span = medoid.provenance.spans[0]
        id = record_id(medoid.pool, span.document, span.turn, span.start, ORDINAL)
        if self._stores.records.get(id) is not None:
            return None
        others = [note for note in group if note is not medoid]
        evidence = tuple(
            Evidence(
                kind="restated", span=note.provenance.spans[0], trust=note.provenance.trust, at=note.provenance.said_at
            )
            for note in others
        )
        signals = self._stores.counters.signals(group).values()
        strongest = max(signals, key=lambda signal: (signal.level, signal.strength))
        provenance = msgspec.structs.replace(
            medoid.provenance, evidence=(*medoid.provenance.evidence, *evidence), distiller="consolidation"
        )
        successor = msgspec.structs.replace(
            medoid,
            id=id,
            rev=1,
            content=content,
            description=line(description),
            tags=(*medoid.tags, CONSOLIDATED),
            provenance=provenance,
            supersedes=tuple(note.id for note in group),
            valid_from="",
            learned_at=0,
            volatility="stable",
            signal=msgspec.structs.replace(strongest, importance=max(note.signal.importance for note in group)),
        )
        return successor, tuple(Neighbour(note.id, note.rev, 1.0, "episode") for note in group)

    # --- on the write thread -----------------------------------------------------------------------------------
    def _add(self, successor: Record, near: Sequence[Neighbour]) -> None:
        standing = self._stores.records.many(neighbour.id for neighbour in near)
        if all(id in standing and standing[id].status in LIVE for id in successor.supersedes):
            steps = (Step("sleep", "a clause of one episode, without its time and place"),)
            reason = f"{len(near)} episodes at different times say the same"
            decision = Decision(action="add", reason=reason, steps=steps, neighbours=tuple(near))
            self._stores.commit([Added(record=successor, decision=decision)])

    def _archive(self, successor: Record) -> None:
        sources = self._stores.records.many(successor.supersedes).values()
        live = (record.id for record in sources if record.status in LIVE and not record.held)
        if ids := tuple(id for id in live if not self._came_back(id)):
            self._stores.commit([Archived(pool=successor.pool, ids=ids, why="consolidated", by=successor.id)])

    def _came_back(self, id: str) -> bool:
        """Return whether the user restored an archived record, and so wants it beside its successor."""
        return any(isinstance(entry.operation, Archived) for entry in entries(self._stores, id))


def _is_episode(record: Record) -> bool:
    return (
        record.status in LIVE
        and record.kind == "note"
        and record.type in HAPPENED
        and not record.is_team
        and not (record.held or record.key or record.flags or record.needs_review)
        and CONSOLIDATED not in record.tags
        and bool(record.provenance.spans)
    )


def _same(notes: Sequence[Record], first: int, second: int) -> bool:
    """Return whether two notes may share a successor: what a statement supports has the trust of its speaker."""
    return notes[first].provenance.trust == notes[second].provenance.trust


def _tellings(note: Record) -> Iterator[tuple[str, str]]:
    """Yield the session and time of each statement of a note by its speaker."""
    yield note.provenance.source, note.provenance.said_at
    for evidence in note.provenance.evidence:
        if evidence.kind == "restated" and evidence.trust == note.provenance.trust:
            yield evidence.span.document, evidence.at


def _centrality(note: Record, alike: NDArray[np.float32]) -> tuple[bool, float, str]:
    """Return the order of a note in its group: a successor is believed only if one of its sources is."""
    return note.status == "quarantined", -float(alike.sum()), note.id
