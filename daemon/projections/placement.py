"""Restricts a record's pool and visibility to those of its sources before memd stores it (A2, P7, P-17).

Invariants: a record with a source in the personal pool, in another project or in no known pool is never in a project's
pool; one with a private source is private; only the user (`placed`) moves a record elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ...protocol.event import VISIBILITIES, Visibility
from ...protocol.operation import SessionOpened
from ...protocol.record import Evidence, Record
from ...stages.batch import PERSONAL
from .aliases import Aliases
from .sources import SourceTable


class SourcePool(NamedTuple):
    """The pool that a document feeds ("" for an unknown one), its visibility, and the pool of its agent."""

    pool: str
    visibility: Visibility = "private"
    agent: str = ""


PROJECT = "project/"
"""Prefix of the pools of projects."""

AGENT = "agent/"
"""Prefix of the pools of agents."""


def agent_pool(agent: str) -> str:
    """Return the pool of an agent's own memory; "" for no agent (P5)."""
    return f"{AGENT}{agent}" if agent else ""


def may_hold(pool: str, sources: Sequence[SourcePool]) -> bool:
    """Whether a pool may have a record with these sources: it is the personal pool, or each source feeds it or is a
    session of its agent."""
    return pool == PERSONAL or (bool(sources) and all(pool in (source.pool, source.agent) for source in sources))


def narrowed(record: Record, sources: Sequence[SourcePool]) -> Record:
    """Return the record in a pool that all its sources allow, with their narrowest visibility."""
    if not record.placed and not may_hold(record.pool, sources):
        record = msgspec.structs.replace(record, pool=PERSONAL)
    own = record.pool == PERSONAL or record.pool.startswith(AGENT) or not sources
    levels = [0] if own else [VISIBILITIES.index(source.visibility) for source in sources]
    return visible_to(record, VISIBILITIES[min(VISIBILITIES.index(record.provenance.visibility), *levels)])


def visible_to(record: Record, visibility: Visibility) -> Record:
    """Return the record with this visibility."""
    if record.provenance.visibility == visibility:
        return record
    return msgspec.structs.replace(record, provenance=msgspec.structs.replace(record.provenance, visibility=visibility))


def documents_of(record: Record, *more: Evidence) -> tuple[str, ...]:
    """Return the documents of a record's spans, of its evidence and of `more`."""
    provenance = record.provenance
    spans = (*provenance.spans, *(evidence.span for evidence in (*provenance.evidence, *more)))
    return tuple(dict.fromkeys(span.document for span in spans))


class Placing:
    """Restricts records with the pools of documents and the pools that the user joined."""

    def __init__(self, sources: SourceTable, aliases: Aliases) -> None:
        self._sources, self._aliases = sources, aliases

    def of(self, documents: Iterable[str]) -> tuple[SourcePool, ...]:
        """Return the source pool of each document."""
        wanted = tuple(documents)
        sessions = self._sources.sessions_of(wanted)
        return tuple(self.source(sessions[name].opened if name in sessions else None) for name in wanted)

    def source(self, opened: SessionOpened | None) -> SourcePool:
        """Return the source pool of a session; an unknown session has none."""
        if opened is None:
            return SourcePool("")
        origin = opened.origin
        return SourcePool(self._aliases.home(opened.project or PERSONAL), origin.visibility, agent_pool(origin.agent))

    def narrowed(self, record: Record) -> Record:
        """Return the record in the pool and with the visibility that its sources allow."""
        return narrowed(record, self.of(documents_of(record)))

    def visibility(self, record: Record) -> Visibility:
        """Return who may see a new record: as many as all its sources allow, in their own project (P7)."""
        sources = self.of(documents_of(record))
        if not (record.pool.startswith(PROJECT) and may_hold(record.pool, sources)):
            return "private"
        return VISIBILITIES[min(VISIBILITIES.index(source.visibility) for source in sources)]

    def may_rest(self, record: Record, evidence: Evidence) -> bool:
        """Whether a record may get this evidence without a source that is narrower than itself."""
        source = self.of((evidence.span.document,))
        shown = VISIBILITIES.index(record.provenance.visibility)
        return may_hold(record.pool, source) and VISIBILITIES.index(source[0].visibility) >= shown
