"""The records service: get, list, why, export, the history of a record, the journal; and the import of an export.

A read under a pass never shows a record that the pass does not reach, and does not count such records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.instant import micros
from ....protocol.lifetime import GetHistory, GetTimeline, History, RecordList, Version
from ....protocol.operation import Added, SessionOpened, Updated
from ....protocol.record import Record
from ....protocol.reply import Explained, ExportedRecord, ExportPage, Journaled, Page, RecordsImported
from ....protocol.request import Export, Get, ImportRecords, Journal, List, Why
from ....stages.batch import PERSONAL
from ...projections.placement import documents_of
from ...projections.pool_directory import PoolDirectory
from ...projections.record_reducer import apply, reason
from ...projections.records import no_record
from ...projections.stores import Stores
from ...projections.timeline import Timeline
from ..outgoing_screen import shown, without_secrets
from ..service import Caller, Handler, Handlers, Permits, Service, owner
from .explainer import Explainer
from .importing import import_records
from .paging import cursor_of, filtering, past_page, total_of

SLICE = 500
PAGE_CHARACTERS = 1_000_000
ALIKE = 0.3
"""The share of a subject's words that a record must hold to be in its timeline."""


class RecordsService(Service):
    """Reads of records from the projections, the journal and the archive."""

    name = "records"

    def __init__(
        self,
        stores: Stores,
        directory: PoolDirectory,
        timeline: Timeline,
        change_condition: Callable[[Record], str],
        wake: Callable[[], None],
    ) -> None:
        """`change_condition`: what would make a record doubtful, in words; `wake`: wakes the distiller, which embeds
        imported records."""
        self._stores, self._directory, self._timeline = stores, directory, timeline
        self._change_condition, self._wake = change_condition, wake
        self._explainer = Explainer(stores.records, stores.sources, stores.archive, stores.journal)

    @property
    def handlers(self) -> Handlers:
        """Reads that a pass may limit, and the user's own reads of history."""
        return {
            Get: Handler("fast", self.get, under_pass=True),
            List: Handler("slow", self.list, under_pass=True),
            Why: Handler("slow", self.why, under_pass=True),
            Export: Handler("slow", self.export, under_pass=True),
            GetHistory: owner("slow", self.history),
            GetTimeline: Handler("slow", self.timeline, scoped=True),
            Journal: owner("slow", self.journal),
            ImportRecords: owner("write", self.import_records),
        }

    def get(self, request: Get, caller: Caller) -> Record:
        """Return one record by id or unambiguous prefix, today or as it stood. Raises NotFound."""
        record = self._named(request.id, caller)
        view = self._timeline.view(request.as_of, request.believed_at)
        if view is None:
            return self._stores.counters.with_signal(record)
        if (past := view.get(record.id)) is None:
            hint = f"`memd why {record.id[:8]}` shows when it was known and valid"
            raise NotFound(f"{record.id} was not known or not valid at that time", hint=hint)
        return past

    def _named(self, id: str, caller: Caller) -> Record:
        record = self._stores.records.named(id)
        if caller.permits and not caller.permits(record):
            raise no_record(id)
        return record

    def list(self, request: List, caller: Caller) -> Page:
        """Return records newest first, filtered, with the cursor of the next page. Raises NotFound, InvalidRequest.

        Without named pools, every pool is listed but those of projects that the user left (P4).
        """
        tally = self._stores.records.tally()
        pools = [self._directory.named(pool) for pool in request.pools]
        view = self._timeline.view(request.as_of, request.believed_at)
        if not pools:
            known = set(tally)
            if view:  # a pool that is empty today may have held something then
                known |= {PERSONAL, *(opened.pool for opened in self._stores.sources.pools())}
            pools = [pool for pool in sorted(known) if not self._directory.is_left(pool)]
        pools = [pool for pool in pools if not caller.reader.pools or pool in caller.reader.pools]
        start, before = cursor_of(request.after, pools)
        wanted = filtering(request, caller.permits)
        if view:
            return past_page(view, pools, start, before, request, wanted)
        total = total_of(tally, pools) if caller.permits is None else 0  # a pass does not tell how much there is
        return self._page(request, pools, start, before, wanted, total)

    def _page(
        self,
        request: List,
        pools: list[str],
        start: int,
        before: tuple[int, str] | None,
        wanted: Permits,
        total: int,
    ) -> Page:
        records: list[Record] = []
        for number, pool in enumerate(pools[start:], start):
            while group := self._stores.records.recent(pool, before, SLICE):
                for record in group:
                    before = (record.learned_at, record.id)
                    if wanted(record):
                        records.append(record)
                        if len(records) == max(1, request.limit):
                            cursor = f"{number}:{record.learned_at}:{record.id}"
                            return Page(records=tuple(records), next=cursor, total=total)
            before = None
        return Page(records=tuple(records), total=total)

    def why(self, request: Why, caller: Caller) -> Explained:
        """Return everything that led to a record. Raises NotFound."""
        record = self._stores.counters.with_signal(self._named(request.id, caller))
        explained = self._explainer.why(record, caller.permits)
        return msgspec.structs.replace(explained, changes_if=self._change_condition(record))

    def export(self, request: Export, caller: Caller) -> ExportPage:
        """Return records newest first with their history, about `PAGE_CHARACTERS` a page. Raises NotFound."""
        pools = [self._directory.named(pool) for pool in request.pools] or sorted(self._stores.records.tally())
        limit = min(max(1, request.limit), SLICE)
        wish = List(pools=tuple(pools), after=request.after, limit=limit, token=request.token)
        page = self.list(wish, caller) if pools else Page(records=())
        records, following, size = list(page.records), page.next, 0
        for number, record in enumerate(records[:-1], 1):
            size += len(record.content)
            if size > PAGE_CHARACTERS:
                following = f"{pools.index(record.pool)}:{record.learned_at}:{record.id}"
                del records[number:]
                break
        documents = dict.fromkeys(document for record in records for document in documents_of(record))
        sessions = (self._stores.sources.session(document) for document in documents)
        inside = {record.pool for record in records}
        screened = [shown(self._stores.counters.with_signal(record)) for record in records]
        return ExportPage(
            records=tuple(
                ExportedRecord(record=record, changes=self._explainer.changes(record.id)) for record, _ in screened
            ),
            sessions=tuple(_without_secrets(session.opened) for session in sessions if session is not None),
            pools=tuple(opened for opened in self._stores.sources.pools() if opened.pool in inside),
            next=following,
            total=page.total,
            screened=dict(Counter(kind for _, seen in screened for kind in seen)),
        )

    def journal(self, request: Journal) -> Journaled:
        """Return the operations after a seq."""
        limit = min(max(1, request.limit), SLICE)
        entries = self._stores.journal.slice(max(0, request.after), limit)
        return Journaled(entries=tuple(entries), last=self._stores.journal.last)

    def import_records(self, request: ImportRecords) -> RecordsImported:
        """Bring exported records in. Raises InvalidRequest."""
        imported = import_records(self._stores, request)
        self._wake()
        return imported

    def history(self, request: GetHistory) -> History:
        """Return every version of a record: the fold of its operations up to each. Raises NotFound."""
        record = self._stores.records.named(request.id)
        versions: list[Version] = []
        version: Record | None = None
        for seq in self._stores.sources.history(record.id):
            entry = self._stores.journal.get(seq)
            if entry is None:
                continue
            version = apply(version, record.id, entry)
            kind = str(entry.operation.__struct_config__.tag)
            if isinstance(entry.operation, Added | Updated) and entry.operation.record.id != record.id:
                kind = "retired"
            row = None if version is None or version.status == "hidden" else shown(version).record
            versions.append(Version(seq=seq, at=entry.at, kind=kind, why=reason(entry, record.id), record=row))
        return History(record=shown(self._stores.counters.with_signal(record)).record, versions=tuple(versions))

    def timeline(self, request: GetTimeline, caller: Caller) -> RecordList:
        """Return what was true of a subject when. Raises InvalidRequest, NotFound."""
        subject = request.subject.strip()
        if not subject:
            raise InvalidRequest("the timeline has no subject", hint='name a key or words: memd timeline "editor"')
        words, possible = self._stores.keywords.search(subject, caller.scope, 4 * request.limit, past=True)
        ids = [id for id, score in words.items() if possible and score / possible >= ALIKE]
        keyed = [id for pool in caller.scope for id in self._stores.records.ever(pool, subject)]
        matches = self._stores.records.many(dict.fromkeys((*keyed, *ids))).values()
        records = [record for record in matches if record.status != "hidden" and record.pool in caller.scope]
        records.sort(key=_began)
        first = records[: request.limit]
        rows = tuple(shown(self._stores.counters.with_signal(record)).record for record in first)
        return RecordList(records=rows, left=len(records) - len(first))


def _began(record: Record) -> tuple[int, int]:
    return micros(record.valid_from or record.provenance.said_at), record.learned_at


def _without_secrets(opened: SessionOpened) -> SessionOpened:
    """Return a session without the secrets in its title."""
    title = without_secrets(opened.origin.title)
    return msgspec.structs.replace(opened, origin=msgspec.structs.replace(opened.origin, title=title))
