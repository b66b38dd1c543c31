"""The last gate before a record is believed: it lies no wider than any of its sources (A2, P7, P-17).

Comes in: a record and where each of its sources lies. Goes out: the record, narrowed if need be. Invariants: one with a
source in the personal pool, in another project or in no known pool never lands in a project's; one with a private
source is private; only the user's own word (`placed`) puts a record elsewhere, and nothing here makes one visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ...protocol.event import Visibility
from ...protocol.operation import SessionOpened
from ...protocol.record import Evidence, Record
from ...stages.batch import PERSONAL
from .aliases import Aliases
from .sources import SourceTable


class SourcePool(NamedTuple):
    """The pool that a captured document feeds ("" for one that is not known), who may see it, its agent's own pool."""

    pool: str
    visibility: Visibility = "private"
    agent: str = ""


def agent_pool(agent: str) -> str:
    """The pool of an agent's own memory; "" for no agent (P5)."""
    return f"agent/{agent}" if agent else ""


def may_hold(pool: str, sources: Sequence[SourcePool]) -> bool:
    """Whether a pool may hold what rests on these sources: all of them lie there or are that agent's own sessions, or
    it is the user's own."""
    return pool == PERSONAL or (bool(sources) and all(pool in (source.pool, source.agent) for source in sources))


def narrowed(record: Record, sources: Sequence[SourcePool]) -> Record:
    """The record in a pool that all its sources allow, with the narrowest of their visibilities."""
    if not record.placed and not may_hold(record.pool, sources):
        record = msgspec.structs.replace(record, pool=PERSONAL)
    shareable = bool(sources) and all(source.visibility == "shared" for source in sources)
    own = record.pool == PERSONAL or record.pool.startswith("agent/")
    if record.provenance.visibility == "shared" and (own or not shareable):
        private = msgspec.structs.replace(record.provenance, visibility="private")
        record = msgspec.structs.replace(record, provenance=private)
    return record


def documents_of(record: Record, *more: Evidence) -> tuple[str, ...]:
    """The documents that a record rests on, with the evidence it would get."""
    provenance = record.provenance
    spans = (*provenance.spans, *(each.span for each in (*provenance.evidence, *more)))
    return tuple(dict.fromkeys(span.document for span in spans))


class Placing:
    """The gate with what it must know: which pool each document feeds, as the user joined them."""

    def __init__(self, sources: SourceTable, aliases: Aliases) -> None:
        self._sources, self._aliases = sources, aliases

    def of(self, documents: Iterable[str]) -> tuple[SourcePool, ...]:
        """Where documents lie, each."""
        wanted = tuple(documents)
        sessions = self._sources.sessions_of(wanted)
        return tuple(self.source(sessions[each].opened if each in sessions else None) for each in wanted)

    def source(self, opened: SessionOpened | None) -> SourcePool:
        """Where what a session says lies; one that is not known lies nowhere."""
        if opened is None:
            return SourcePool("")
        origin = opened.origin
        return SourcePool(self._aliases.home(opened.project or PERSONAL), origin.visibility, agent_pool(origin.agent))

    def narrowed(self, record: Record) -> Record:
        """The record as it may be believed."""
        return narrowed(record, self.of(documents_of(record)))

    def may_rest(self, record: Record, evidence: Evidence) -> bool:
        """Whether a record may get this evidence: else it would have a source that is narrower than itself."""
        source = self.of((evidence.span.document,))
        shown = record.provenance.visibility == "shared"
        return may_hold(record.pool, source) and not (shown and source[0].visibility == "private")
