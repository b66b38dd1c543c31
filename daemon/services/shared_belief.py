"""What the lines of all authors of a shared project together say of a record: added, and not invalidated (H2).

Invariants: nothing is written; the answer follows from the set of the lines that memd has and from what the user thinks
of their authors, never from the order in which they came. An author invalidates the lines of the own partition; those
of others only while the user trusts the author. Lines of authors whom the user muted or revoked say nothing. The lines
by which this home invalidates its own ones follow from its records, so they retire none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from ...protocol.operation import Added, Arrived, AuthorJudged, Invalidated, RecordJudged
from ...protocol.record import LIVE, TEAM, Record, is_partition, record_id
from ...protocol.share import Standing
from ...protocol.shared_lines import MalformedShare, line_name, parse_line_name
from ..projections.stores import Stores
from .record_history import entries

REASON = "another author says that it no longer holds"
"""Beginning of the reason for which a line retires a record."""


class Invalidation(NamedTuple):
    """A line that invalidates another one, in the order in which the first one counts."""

    lamport: int
    partition: str
    n: int
    until: str = ""
    why: str = ""


def document_of(partition: str) -> str:
    """Return the document that a partition is."""
    return f"{TEAM}:{partition}"


def shared_id(pool: str, partition: str, number: int) -> str:
    """Return the id of the record of another author's line: it follows from the line's place alone."""
    return record_id(pool, document_of(partition), str(number), 0, 0)


def is_withheld(stores: Stores, record: Record) -> bool:
    """Whether a hub's lease hides a record of another author, so that no reply may have its words (A1)."""
    if record.status != "hidden" or not record.is_team:
        return False
    partner = stores.sharing.partner(record.pool, record.provenance.source.partition(":")[2])
    return partner is not None and partner.withheld


class SharedBelief:
    """The lines of one pool. `without`: partitions that say nothing besides the muted and revoked ones; `standings`: of
    partitions whose author the user judges now."""

    def __init__(
        self,
        stores: Stores,
        pool: str,
        without: Collection[str] = (),
        standings: Mapping[str, Standing] | None = None,
    ) -> None:
        self._stores, self._pool = stores, pool
        share = stores.sharing.share(pool)
        self._share = share
        revoked = {entry.source for entry in stores.grants.sources()}
        self.partners = {partner.partition: partner for partner in stores.sharing.partners(pool)}
        told = {name: partner.effective for name, partner in self.partners.items()} | dict(standings or {})
        self._trusted = frozenset(name for name, standing in told.items() if standing == "trusted")
        silent = {name for name, standing in told.items() if standing == "muted" or {TEAM, document_of(name)} & revoked}
        self._silent = silent | set(without)

    def id_of(self, ref: str) -> str:
        """Return the id of the record that a named line adds, whether memd has it or not; "" for none."""
        try:
            partition, number = parse_line_name(ref)
        except MalformedShare:
            return ""
        if not self._is_own(partition, number):
            return shared_id(self._pool, partition, number)
        offered = self._stores.sharing.own_line(partition, number)
        return offered.id if offered is not None and offered.what == "add" else ""

    def invalidation(
        self, ref: str, more: Iterable[Invalidation] = (), less: Collection[tuple[str, int]] = ()
    ) -> Invalidation | None:
        """Return the line that invalidates a named one, the first by Lamport time; None if it stands. `more`: lines
        that are not in the tables yet; `less`: places of lines that become gone."""
        lines = (line for line in (*self._lines(ref), *more) if (line.partition, line.n) not in less)
        return min((line for line in lines if self._counts(line, ref)), default=None)

    def untrusted(self, ref: str, more: Iterable[Invalidation] = ()) -> Invalidation | None:
        """Return the first line that would invalidate a named one if the user trusted its author. `more`: as there."""
        lines = (line for line in (*self._lines(ref), *more) if self._is_heard(line) and not self._counts(line, ref))
        return min(lines, default=None)

    def is_taken_back(self, ref: str) -> bool:
        """Whether this home told the others that a line no longer holds."""
        places = self._stores.sharing.invalidating(self._pool, ref)
        return any(self._is_own(place.partition, place.n) for place in places)

    def _is_own(self, partition: str, number: int) -> bool:
        return self._share is not None and self._share.wrote(partition, number)

    def _counts(self, line: Invalidation, ref: str) -> bool:
        author, number = parse_line_name(ref)
        is_own = self._is_own(author, number)
        if self._is_own(line.partition, line.n):
            return not is_own
        is_of_author = line.partition == author and not is_own
        return self._is_heard(line) and (is_of_author or line.partition in self._trusted)

    def _is_heard(self, line: Invalidation) -> bool:
        return line.partition not in self._silent and not self._is_own(line.partition, line.n)

    def reason(self, line: Invalidation, name: str = "") -> str:
        """Return the reason for which a line retires a record. `name`: of an author of whom nothing came before."""
        partner = self.partners.get(line.partition)
        name = partner.name if partner else name or line.partition[:8]
        return f"{REASON} ({name}){f': {line.why}' if line.why else ''}"

    def _lines(self, ref: str) -> Iterator[Invalidation]:
        sharing = self._stores.sharing
        for place in sharing.invalidating(self._pool, ref):
            if self._is_own(place.partition, place.n):
                if offered := sharing.own_line(place.partition, place.n):
                    yield Invalidation(offered.lamport, place.partition, place.n, offered.until, offered.why)
            elif taken := sharing.taken(self._pool, place.partition, place.n):
                line = taken.line
                yield Invalidation(line.lamport, place.partition, place.n, line.until, line.why)

    def invalidated_by(self, partition: str) -> dict[str, str]:
        """Return the names of the lines that an author invalidates, each with the id of its record."""
        lines = self._stores.sharing.all_taken(self._pool, partition)
        refs = dict.fromkeys(taken.line.ref for taken in lines if taken.line.what == "inv" and not taken.gone)
        return {ref: id for ref in refs if (id := self.id_of(ref))}

    def lamport_of(self, record: Record) -> tuple[int, str, int]:
        """Return the Lamport time, partition and number of a shared record's line."""
        span = record.provenance.spans[-1]
        partition, number = record.provenance.source.partition(":")[2], int(span.turn)
        taken = self._stores.sharing.taken(self._pool, partition, number)
        return taken.line.lamport if taken else 0, partition, number


def is_invalidated(stores: Stores, record: Record) -> bool:
    """Whether a record is retired because of other authors' lines alone."""
    if record.status != "retired" or record.superseded_by:
        return False
    for entry in entries(stores, record.id, newest_first=True):
        match entry.operation:
            case Invalidated(reason=reason):
                return reason.startswith(REASON)
            case Arrived(after=after) | AuthorJudged(after=after) if any(shift.id == record.id for shift in after):
                return True
            case RecordJudged():
                return False
            case _:
                pass
    return False


def first_until(stores: Stores, record: Record) -> str:
    """Return until when a record holds by its own line, whatever retired it since."""
    for entry in entries(stores, record.id):
        if isinstance(entry.operation, Added) and entry.operation.record.id == record.id:
            return entry.operation.record.valid_to
    return ""


def no_longer_invalidated(stores: Stores, documents: Iterable[str]) -> Iterator[Record]:
    """Yield the records that only these authors invalidate (A3)."""
    partitions: dict[str, list[str]] = {}
    for document in documents:
        session = stores.sources.session(document)
        if session is not None and is_partition(document):
            partitions.setdefault(session.opened.project, []).append(document.partition(":")[2])
    for pool, names in partitions.items():
        belief = SharedBelief(stores, pool, without=names)
        refs = {ref: id for name in names for ref, id in belief.invalidated_by(name).items()}
        for record in stores.records.many(dict.fromkeys(refs.values())).values():
            ref = next(ref for ref, id in refs.items() if id == record.id)
            if is_invalidated(stores, record) and belief.invalidation(ref) is None:
                yield record


def still_invalidated(stores: Stores, documents: Iterable[str]) -> list[Invalidated]:
    """Return the retirements of live records of these authors, and of live ones that they invalidate: while an author
    was revoked or undone, lines came and records changed."""
    ends: dict[str, Invalidated] = {}
    for document in filter(is_partition, documents):
        session = stores.sources.session(document)
        if session is None:
            continue
        belief, partition = SharedBelief(stores, session.opened.project), document.partition(":")[2]
        ids = {*belief.invalidated_by(partition).values(), *stores.records.citing(document)}
        for id, record in stores.records.many(ids).items():
            is_believed = record.is_shared and record.status in (*LIVE, "archived")
            if is_believed and (line := belief.invalidation(name_of(record))):
                ends[id] = Invalidated(id=id, valid_to=line.until, reason=belief.reason(line))
    return [ends[id] for id in sorted(ends)]


def with_author(stores: Stores, record: Record) -> Record:
    """Return a record of another author with the name that its author has now."""
    if not record.is_shared:
        return record
    partner = stores.sharing.partner(record.pool, record.provenance.source.partition(":")[2])
    if partner is None or partner.name in ("", record.provenance.author):
        return record
    provenance = msgspec.structs.replace(record.provenance, author=partner.name)
    return msgspec.structs.replace(record, provenance=provenance)


def name_of(record: Record) -> str:
    """Return the name of a shared record's line."""
    partition = record.provenance.source.partition(":")[2]
    return line_name(partition, int(record.provenance.spans[-1].turn))
