"""Imports exported records with their ids, statuses, keys and both times, as ordinary operations (P-25).

Invariants: a record that exists stays as it is, so a second import changes nothing; the gate has removed secrets from
the request; forgotten turns stay forgotten (T10); a key of a live record is not taken from it. `learned_at` and
`retired_at` come from the export, and the decision of the operation has the record's earlier history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from ....protocol.errors import Forgotten, MemdError
from ....protocol.instant import from_micros
from ....protocol.operation import Added, AnyOperation, Decision, Step
from ....protocol.record import LIVE, Record
from ....protocol.reply import Change, RecordsImported, Refusal
from ....protocol.request import ImportRecords
from ....protocol.wire import problem
from ...projections.placement import Placing, documents_of, narrowed
from ...projections.stores import Stores
from .import_checks import check_pool, check_record, check_session

REASON = "imported from an export"
FORGOTTEN = Forgotten("the record's source is a turn that the user forgot", hint="say it again in a new turn")
T = TypeVar("T")


def import_records(stores: Stores, request: ImportRecords) -> RecordsImported:
    """Add the missing records in one group, on the write thread. Raises StorageFull."""
    refused: list[Refusal] = []
    request = ImportRecords(
        records=tuple(_admitted(request.records, check_record, lambda exported: exported.record.id, refused)),
        sessions=tuple(_admitted(request.sessions, check_session, lambda session: session.document, refused)),
        pools=tuple(_admitted(request.pools, check_pool, lambda pool: pool.pool, refused)),
    )
    operations: list[AnyOperation] = list(_openings(stores, request))
    spans = (span for exported in request.records for span in exported.record.provenance.spans)
    forgotten = stores.forgotten.among((span.document, span.turn) for span in spans)
    existing = stores.records.many(exported.record.id for exported in request.records)
    keys: set[tuple[str, str]] = set()
    narrow = _narrowing(stores, request)
    added = known = turned_away = 0
    for exported in request.records:
        admitted = exported.record
        if any((span.document, span.turn) in forgotten for span in admitted.provenance.spans):
            refused.append(Refusal(admitted.id, problem(FORGOTTEN)))
            turned_away += 1
            continue
        record = narrow(admitted)
        if (before := existing.get(record.id)) is not None:
            known += before in (admitted, record)
            continue
        place = (record.pool, record.key)
        free = not record.key or not (place in keys or stores.records.holding_key(*place))
        if record.status in LIVE and not free:
            record = msgspec.structs.replace(record, key="", needs_review=True)
        elif record.status in LIVE and record.key:
            keys.add(place)
        operations.append(Added(record=record, decision=_decision(exported.changes, free)))
        existing[record.id] = record
        added += 1
    if operations:
        stores.commit(operations)
    differing = len(request.records) - added - known - turned_away
    return RecordsImported(added=added, known=known, differing=differing, refused=tuple(refused))


def _admitted(
    rows: Iterable[T], check: Callable[[T], None], name: Callable[[T], str], refused: list[Refusal]
) -> Iterator[T]:
    """Yield the rows that a check admits; list the others in `refused`."""
    for row in rows:
        try:
            check(row)
        except MemdError as error:
            refused.append(Refusal(name(row), problem(error)))
        else:
            yield row


def _narrowing(stores: Stores, request: ImportRecords) -> Callable[[Record], Record]:
    """Return the function that limits a record to the pools of its sessions, which are here or in the export (A2)."""
    exported = {session.document: session for session in request.sessions}
    placing = Placing(stores.sources, stores.aliases)

    def narrow(record: Record) -> Record:
        documents = documents_of(record)
        known = stores.sources.sessions_of(documents)
        sessions = (known[name].opened if name in known else exported.get(name) for name in documents)
        return narrowed(record, [placing.source(session) for session in sessions])

    return narrow


def _openings(stores: Stores, request: ImportRecords) -> Iterator[AnyOperation]:
    for pool in {pool.pool: pool for pool in request.pools}.values():
        if stores.sources.pool(pool.pool) is None:
            yield pool
    for session in {session.document: session for session in request.sessions}.values():
        known = stores.sources.session(session.document) or stores.forgotten.names(session.document)
        if not known:
            yield session


def _decision(changes: tuple[Change, ...], free: bool) -> Decision:
    steps = [Step("export", f"{from_micros(change.at)} {_summary(change)}") for change in changes]
    if not free:
        steps.append(Step("import", "another record already has this key; the user should review both"))
    return Decision(action="add", reason=REASON, steps=tuple(steps))


def _summary(change: Change) -> str:
    reason = change.decision.reason if change.decision else change.reason
    return f"{change.kind}: {reason}" if reason else change.kind
