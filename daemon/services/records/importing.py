"""Imports exported records with their ids, statuses, keys and both times, as ordinary operations (P-25).

Invariants: a record that exists stays as it is, so a second import changes nothing; the gate has removed secrets from
the request; forgotten turns stay forgotten (T10); a key of a live record is not taken from it. `learned_at` and
`retired_at` come from the export, and the decision of the operation has the record's earlier history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from ....protocol.errors import Forgotten, InvalidRequest, MemdError, TooLarge
from ....protocol.instant import from_micros, parse
from ....protocol.operation import Added, AnyOperation, Decision, Step
from ....protocol.record import LIVE, Record
from ....protocol.reply import Change, RecordsImported, Refusal
from ....protocol.request import ImportRecords
from ....protocol.text_limits import TEXT_LIMIT
from ....protocol.wire import problem
from ...projections.placement import Placing, documents_of, narrowed
from ...projections.stores import Stores

REASON = "imported from an export"
_ID = re.compile(r"[0-9a-hjkmnp-tv-z]{26}")
_POOL = re.compile(r"personal|(?:project|agent|unbound)/\S{1,200}")


def import_records(stores: Stores, request: ImportRecords) -> RecordsImported:
    """Add the missing records in one group, on the write thread. Raises StorageFull."""
    operations: list[AnyOperation] = list(_openings(stores, request))
    spans = {exported.record.id: exported.record.provenance.spans for exported in request.records}
    forgotten = stores.forgotten.among((span.document, span.turn) for cited in spans.values() for span in cited)
    existing = stores.records.many(exported.record.id for exported in request.records)
    keys: set[tuple[str, str]] = set()
    narrow = _narrowing(stores, request)
    refused: list[Refusal] = []
    added = known = 0
    for exported in request.records:
        try:
            admitted = admit_record(exported.record)
            record = narrow(admitted)
            if any((span.document, span.turn) in forgotten for span in record.provenance.spans):
                raise Forgotten("the record's source is a turn that the user forgot", hint="say it again in a new turn")
        except MemdError as error:
            refused.append(Refusal(exported.record.id, problem(error)))
            continue
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
    differing = len(request.records) - added - known - len(refused)
    return RecordsImported(added=added, known=known, differing=differing, refused=tuple(refused))


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
        if _POOL.fullmatch(pool.pool) and stores.sources.pool(pool.pool) is None:
            yield pool
    for session in {session.document: session for session in request.sessions}.values():
        known = stores.sources.session(session.document) or stores.forgotten.names(session.document)
        if not known:
            yield session


def admit_record(record: Record) -> Record:
    """Return a record that may be imported. Raises InvalidRequest, NaiveTime or TooLarge for a malformed record."""
    if not _ID.fullmatch(record.id):
        raise InvalidRequest(f"{record.id!r} is not a valid record id")
    if not _POOL.fullmatch(record.pool):
        raise InvalidRequest(f"{record.pool!r} is not a valid pool")
    provenance = record.provenance
    if not provenance.spans:
        raise InvalidRequest("the record has no provenance", hint="every imported record must name its source")
    parse(provenance.said_at)
    for time in filter(None, (record.valid_from, record.valid_to, *(item.at for item in provenance.evidence))):
        parse(time)
    if len(record.content) > TEXT_LIMIT:
        raise TooLarge(f"the text has {len(record.content):,} characters")
    return record


def _decision(changes: tuple[Change, ...], free: bool) -> Decision:
    steps = [Step("export", f"{from_micros(change.at)} {_summary(change)}") for change in changes]
    if not free:
        steps.append(Step("import", "another record already has this key; the user should review both"))
    return Decision(action="add", reason=REASON, steps=tuple(steps))


def _summary(change: Change) -> str:
    reason = change.decision.reason if change.decision else change.reason
    return f"{change.kind}: {reason}" if reason else change.kind
