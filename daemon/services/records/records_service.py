"""The records service: get, list, why, export, history, timeline and journal, and the import of an export.

Invariants: a read under a pass neither shows nor counts a record that the pass does not reach; `why` compares the quote
with the archive, and says if the source has expired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from ....protocol.corrections import RecordList
from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.event import SentPart, text
from ....protocol.export import leaving, leaving_pool, leaving_session
from ....protocol.fading import Reviewed
from ....protocol.history import GetHistory, GetTimeline, History, Version
from ....protocol.instant import micros
from ....protocol.operation import (
    Added,
    AnyOperation,
    Arrived,
    Invalidated,
    Merged,
    Pinned,
    SessionOpened,
    Unknown,
    Updated,
    kind,
)
from ....protocol.record import Record, check_types, learning_order
from ....protocol.reply import (
    Change,
    Explained,
    ExportedRecord,
    ExportPage,
    Journaled,
    Line,
    Logged,
    Page,
    RecordsImported,
)
from ....protocol.request import Export, Get, ImportRecords, Journal, List, Why
from ....stages.batch import PERSONAL
from ...projections.placement import documents_of
from ...projections.pool_directory import PoolDirectory
from ...projections.record_reducer import reason, touched
from ...projections.stores import Stores
from ...projections.timeline import Timeline, View
from ..outgoing_screen import shown, without_secrets
from ..pass_limits import limited, may_read, permitted_ids
from ..record_history import entries, versions
from ..service import Caller, Handler, Handlers, Permits, Service, owner
from ..shared_belief import is_withheld, with_author
from ..statements import speaker
from .importing import import_records

BEFORE, AFTER = 2, 1
"""Captures around a quote that `why` shows."""


SLICE = 500
PAGE_CHARACTERS = 1_000_000
MOST_DIGITS = 16
"""Digits of a time in microseconds in a cursor."""
ALIKE = 0.3
"""Share of a subject's words that a record in its timeline has."""


class RecordsService(Service):
    """Reads of records from the projections, the journal and the archive."""

    name = "records"

    def __init__(
        self,
        stores: Stores,
        directory: PoolDirectory,
        timeline: Timeline,
        change_condition: Callable[[Record], str],
        why_not_exported: Callable[[Record], str],
        wake: Callable[[], None],
    ) -> None:
        """`change_condition`: describes what would make a record doubtful; `why_not_exported`: tells why a record may
        not be in a shareable export, "" if it may; `wake`: wakes the distiller, which embeds imported records."""
        self._stores, self._directory, self._timeline = stores, directory, timeline
        self._change_condition, self._why_not_exported, self._wake = change_condition, why_not_exported, wake

    @property
    def handlers(self) -> Handlers:
        return {
            Get: Handler("fast", self.get, under_pass=True),
            List: Handler("slow", self.list, under_pass=True),
            Why: Handler("slow", self.why, under_pass=True),
            Export: Handler("slow", self.export, under_pass=True),
            GetHistory: owner("slow", self.history),
            GetTimeline: Handler("slow", self.timeline, scoped=True),
            Journal: owner("slow", self.journal, lambda request: self._stores.journal.last > request.after),
            ImportRecords: owner("write", self.import_records),
        }

    def get(self, request: Get, caller: Caller) -> Record:
        """Return one record by id or unambiguous prefix, today or as it stood. Raises NotFound."""
        record = self._named(request.id, caller)
        view = self._timeline.view(request.as_of, request.believed_at, caller.permits)
        if view is None:
            return self._limited(self._stores.counters.with_signal(record), caller)
        if (past := view.get(record.id)) is None:
            hint = f"`memd why {record.id[:8]}` shows when it was known and valid"
            raise NotFound(f"{record.id} was not known or not valid at that time", hint=hint)
        return self._limited(past, caller)

    def _named(self, id: str, caller: Caller) -> Record:
        return self._stores.records.named(id, caller.permits)

    def _limited(self, record: Record, caller: Caller) -> Record:
        return limited(with_author(self._stores, record), caller, self._stores.records)

    def list(self, request: List, caller: Caller) -> Page:
        """Return records newest first, filtered, with the cursor of the next page. Raises NotFound, InvalidRequest.

        Without named pools, all pools are listed except those of projects that the user left (P4).
        """
        tally = self._stores.records.tally()
        view = self._timeline.view(request.as_of, request.believed_at, caller.permits)
        pools = list(self._directory.listed(request.pools, caller.knows, caller.reader.pools, past=view is not None))
        before = _parse_cursor(request.after) if request.after else None
        wanted = _filter(request, caller.permits)
        if view:
            page = _past_page(view, pools, before, request, wanted)
            return replace(page, records=tuple(self._limited(record, caller) for record in page.records))
        total = 0  # a pass does not reveal the number of records
        if caller.permits is None:
            total = sum(count for pool in pools for count in tally.get(pool, {}).values())
        page = self._page(request, pools, before, wanted, total)
        signals = self._stores.counters.signals(page.records)
        records = (replace(record, signal=signals[record.id]) for record in page.records)
        return replace(page, records=tuple(self._limited(record, caller) for record in records))

    def _pools(self, names: Sequence[str], caller: Caller) -> list[str]:
        return list(self._directory.resolved(names, caller.knows, caller.reader.pools))

    def _page(
        self,
        request: List,
        pools: list[str],
        before: tuple[int, str] | None,
        wanted: Permits,
        total: int,
    ) -> Page:
        limit, found = max(1, request.limit), filter(wanted, self._stores.records.newest(pools, before))
        records = tuple(islice(found, limit))
        return Page(records=records, next=_cursor(records[-1]) if len(records) == limit else "", total=total)

    def why(self, request: Why, caller: Caller) -> Explained:
        """Return everything that led to a record, as far as the caller may see it (A1, R4). Raises NotFound."""
        record = self._stores.counters.with_signal(self._named(request.id, caller))
        span = record.provenance.spans[0]
        session = self._stores.sources.session(span.document)
        replaced = (self._visible(id, caller) for id in record.supersedes)
        last = self._stores.records.successor(record)
        held_by = self._visible(last, caller) if last and last != record.superseded_by else None
        words = self._stores.archive.span(span) if may_read(caller, span.document, span.turn) else None
        return Explained(
            record=self._limited(record, caller),
            lines=tuple(self._lines(record, caller)),
            quote_holds=None if words is None else words.startswith(record.provenance.quote),
            session=span.document,
            project=session.opened.project if session and _is_known(session.opened.project, caller) else "",
            changes=self._changes(record.id, caller),
            replaced=tuple(other for other in replaced if other is not None),
            replaced_by=self._visible(record.superseded_by, caller) if record.superseded_by else None,
            held_by=held_by if held_by and held_by.status != "retired" else None,
            changes_if=self._change_condition(record),
        )

    def _visible(self, id: str, caller: Caller) -> Record | None:
        record = self._stores.records.get(id)
        if record is None or record.status == "hidden" or (caller.permits and not caller.permits(record)):
            return None
        return self._limited(record, caller)

    def _lines(self, record: Record, caller: Caller) -> Iterator[Line]:
        span, turns = record.provenance.spans[0], {(span.document, span.turn) for span in record.provenance.spans}
        for _, captured in self._stores.archive.around(span.document, span.turn, BEFORE, AFTER):
            event = captured.event
            if isinstance(event, SentPart):
                continue
            if (words := text(event)) and may_read(caller, span.document, event.turn):
                cited = (span.document, event.turn) in turns
                yield Line(turn=event.turn, at=event.at, who=speaker(captured), text=words, cited=cited)

    def _changes(self, id: str, caller: Caller) -> tuple[Change, ...]:
        """Return the changes of a record; under a pass those after which the caller could see it, without reasons,
        because a reason may speak of another record."""
        if caller.knows is None:
            return tuple(_change(id, entry) for entry in entries(self._stores, id))
        changes = [
            _change(id, entry)
            for entry, after in versions(self._stores, id)
            if after is not None and (caller.permits is None or caller.permits(after))
        ]
        permitted = permitted_ids(tuple(change.by for change in changes), caller, self._stores.records)
        return tuple(
            replace(change, by=change.by if change.by in permitted else "", decision=None, reason="")
            for change in changes
        )

    def export(self, request: Export, caller: Caller) -> ExportPage:
        """Return records newest first with their history, about `PAGE_CHARACTERS` a page; `shareable`: only those that
        may leave, which a page can lack altogether. Raises NotFound."""
        pools = self._pools(request.pools, caller) or _known(self._stores.records.tally(), caller)
        limit = min(max(1, request.limit), SLICE)
        wish = List(pools=tuple(pools), after=request.after, limit=limit, token=request.token)
        page = self.list(wish, caller) if pools else Page(records=())
        records, following, size = list(page.records), page.next, 0
        for number, record in enumerate(records[:-1], 1):
            size += len(record.content)
            if size > PAGE_CHARACTERS:
                following = _cursor(record)
                del records[number:]
                break
        stayed: Counter[str] = Counter()
        if request.shareable:
            records = self._leaving(records, stayed)
        documents = dict.fromkeys(document for record in records for document in documents_of(record))
        sessions = (self._stores.sources.session(document) for document in documents if _hears(document, caller))
        inside = {record.pool for record in records}
        screened = [shown(self._stores.counters.with_signal(record)) for record in records]
        exported = ExportPage(
            records=tuple(ExportedRecord(record=row, changes=self._changes(row.id, caller)) for row, _ in screened),
            sessions=tuple(
                _without_secrets(session.opened)
                for session in sessions
                if session is not None and _is_known(session.opened.project, caller)
            ),
            pools=tuple(opened for opened in self._stores.sources.pools() if opened.pool in inside),
            next=following,
            total=page.total,
            screened=dict(Counter(kind for _, seen in screened for kind in seen)),
            stayed=dict(stayed),
        )
        return _leaving_page(exported) if request.shareable else exported

    def _leaving(self, records: Sequence[Record], stayed: Counter[str]) -> list[Record]:
        """Return the records that may leave, and count the others by the reason. The record of the store is judged: a
        pass may show less of its sources."""
        whole = self._stores.records.many(record.id for record in records)
        reasons = {record.id: self._why_not_exported(whole.get(record.id, record)) for record in records}
        stayed.update(filter(None, reasons.values()))
        return [record for record in records if not reasons[record.id]]

    def journal(self, request: Journal) -> Journaled:
        limit = min(max(1, request.limit), SLICE)
        entries = self._stores.journal.slice(max(0, request.after), limit)
        if any(share.lease for share in self._stores.sharing.shares()):
            entries = map(self._readable, entries)
        return Journaled(entries=tuple(entries), last=self._stores.journal.last)

    def _readable(self, entry: Logged) -> Logged:
        """Return an entry, by name alone if it has words that a hub's lease hides."""
        operation = entry.operation
        records = self._stores.records.many(touched(operation)).values()
        if isinstance(operation, Arrived):
            partner = self._stores.sharing.partner(operation.pool, operation.partition)
            is_hidden = partner is not None and partner.withheld
        else:
            is_hidden = any(is_withheld(self._stores, record) for record in records)
        return replace(entry, operation=Unknown(name=kind(operation))) if is_hidden else entry

    def import_records(self, request: ImportRecords) -> RecordsImported:
        """Bring exported records in. Raises InvalidRequest."""
        imported = import_records(self._stores, request)
        self._wake()
        return imported

    def history(self, request: GetHistory) -> History:
        """Return every version of a record: the fold of its operations up to each. Raises NotFound."""
        record = self._stores.records.named(request.id)
        states: list[Version] = []
        for entry, version in versions(self._stores, record.id):
            kind = _kind(record.id, entry.operation)
            row = None if version is None or version.status == "hidden" else shown(version).record
            states.append(Version(seq=entry.seq, at=entry.at, kind=kind, why=reason(entry, record.id), record=row))
        now = with_author(self._stores, self._stores.counters.with_signal(record))
        return History(record=shown(now).record, versions=tuple(states))

    def timeline(self, request: GetTimeline, caller: Caller) -> RecordList:
        """Return what was true of a subject when. Raises InvalidRequest, NotFound."""
        subject = request.subject.strip()
        if not subject:
            raise InvalidRequest("the timeline has no subject", hint='name a key or words: memd timeline "editor"')
        words, possible, *_ = self._stores.keywords.search(subject, caller.scope, 4 * request.limit, past=True)
        ids = [id for id, score in words.items() if possible and score / possible >= ALIKE]
        keyed = [id for pool in caller.scope for id in self._stores.records.ever(pool, subject)]
        matches = self._stores.records.many(dict.fromkeys((*keyed, *ids))).values()
        records = [record for record in matches if record.status != "hidden" and record.pool in caller.scope]
        records.sort(key=_began)
        first = records[: request.limit]
        named = (with_author(self._stores, self._stores.counters.with_signal(record)) for record in first)
        rows = tuple(shown(record).record for record in named)
        return RecordList(records=rows, left=len(records) - len(first))


def _leaving_page(page: ExportPage) -> ExportPage:
    """Return a page as it may leave."""
    return replace(
        page,
        records=tuple(leaving(exported, shareable=True) for exported in page.records),
        sessions=tuple(map(leaving_session, page.sessions)),
        pools=tuple(map(leaving_pool, page.pools)),
    )


def _known(pools: Iterable[str], caller: Caller) -> list[str]:
    """Return the pools that the caller may know, in order."""
    return [pool for pool in sorted(pools) if caller.knows is None or caller.knows(pool)]


def _is_known(project: str, caller: Caller) -> bool:
    """Whether the caller may know the pool of a session."""
    return caller.knows is None or caller.knows(project or PERSONAL)


def _hears(document: str, caller: Caller) -> bool:
    return caller.hears is None or caller.hears(document)


def _change(id: str, entry: Logged) -> Change:
    operation = entry.operation
    change = Change(seq=entry.seq, at=entry.at, kind=_kind(id, operation))
    match operation:
        case Added() | Updated() if operation.record.id == id:
            return replace(change, rev=operation.record.rev, decision=operation.decision)
        case Added() | Updated():
            why = next((retired.reason for retired in operation.retires if retired.id == id), "")
            return replace(change, by=operation.record.id, reason=why)
        case Merged():
            return replace(change, decision=operation.decision)
        case Invalidated():
            return replace(change, by=operation.by, reason=operation.reason)
        case Reviewed():
            return replace(change, reason=operation.why)
        case _:
            return change


def _kind(id: str, operation: AnyOperation) -> str:
    """Return what an operation did to a record: its tag, `unpinned`, `retired` if it changed another record."""
    if isinstance(operation, Pinned) and not operation.pinned:
        return "unpinned"
    other = isinstance(operation, Added | Updated) and operation.record.id != id
    return "retired" if other else str(operation.__struct_config__.tag)


def _began(record: Record) -> tuple[int, int]:
    return micros(record.valid_from or record.provenance.said_at), record.learned_at


def _without_secrets(opened: SessionOpened) -> SessionOpened:
    title = without_secrets(opened.origin.title)
    return replace(opened, origin=replace(opened.origin, title=title))


def _filter(request: List, permits: Permits | None) -> Permits:
    """Return the filter of a list for its asker. Raises NaiveTime, InvalidRequest."""
    check_types([request.type] if request.type else ())
    since = micros(request.since) if request.since else 0
    until = micros(request.until) if request.until else None

    def wanted(record: Record) -> bool:
        return (
            (not request.kinds or record.kind in request.kinds)
            and (record.status in request.statuses if request.statuses else record.status != "hidden")
            and (not request.type or record.type == request.type)
            and (not request.document or record.provenance.source == request.document)
            and (not request.key or record.key == request.key)
            and since <= record.learned_at
            and (until is None or record.learned_at < until)
            and (permits is None or permits(record))
        )

    return wanted


def _past_page(
    view: View, pools: Sequence[str], before: tuple[int, str] | None, request: List, wanted: Permits
) -> Page:
    """Return a page of records at another time; `total` counts all matches (Q12)."""
    matches = [record for pool in pools for record in filter(wanted, view.pool(pool, request.key))]
    matches.sort(key=learning_order, reverse=True)
    following = [record for record in matches if before is None or learning_order(record) < before]
    records = tuple(following[: max(1, request.limit)])
    return Page(records=records, next=_cursor(records[-1]) if records != tuple(following) else "", total=len(matches))


def _cursor(record: Record) -> str:
    return f"{record.learned_at}:{record.id}"


def _parse_cursor(after: str) -> tuple[int, str]:
    learned_at, _, id = after.partition(":")
    if not (learned_at.isascii() and learned_at.isdecimal() and len(learned_at) <= MOST_DIGITS and id):
        raise InvalidRequest(
            f"{after!r} is not a page cursor", hint="pass the `next` value of the previous page unchanged"
        )
    return int(learned_at), id
