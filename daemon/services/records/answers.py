"""One function a request: what each read answers, from projections alone (U8).

Comes in: a decoded request. Goes out: its typed reply, or an error of the tree. Invariants: nothing here writes; the
scope is resolved before anything is searched; the lanes of `protocol.request` decide which thread calls it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from .... import __version__
from ....protocol.errors import Denied, InvalidRequest, NotFound
from ....protocol.instant import from_micros
from ....protocol.operation import SessionOpened
from ....protocol.profile import ContextPackage, GetContext, Injections, ListInjected, Printed, PrintNoted
from ....protocol.record import Record
from ....protocol.reply import (
    AnyData,
    Explained,
    ExportedRecord,
    ExportPage,
    Heard,
    Journaled,
    Outcome,
    Page,
    PoolList,
    PoolSummary,
    ProfileText,
    Recalled,
    StatusText,
)
from ....protocol.request import PROTOCOL, AnyRequest, Export, Get, Journal, List, Profile, Recall, Why
from ....stages.batch import PERSONAL
from ...config import Config
from ...projections.placement import documents_of
from ...projections.records import no_record
from ...projections.salience import salience
from ...projections.stores import Stores
from ...projections.timeline import Timeline
from ...server.request_server import Arrived, Respond
from ...world import World
from ..access.access import ReadScope
from ..capture.pauses import PauseRegister
from ..distillation.reembedding import EmbeddingModels
from ..lifecycle.conditions import condition
from ..outgoing_screen import screened, shown, without_secrets
from ..profile.context_package import ContextPackager
from ..profile.echo_ledger import EchoLedger
from ..profile.hot import ProfileCache
from ..profile.injection_log import InjectionLog
from ..profile.profile_lines import ProfileLines
from ..recall.deep import DeepCaller, DeepRecall, DeepSources, narrowed
from ..recall.simple import TurnSearch, with_turns
from ..recall.warm import WarmRecall
from ..service import OWNER, Reader
from .explainer import Explainer
from .paging import cursor_of, filtering, past_page, total_of

SLICE = 500
PAGE_CHARACTERS = 1_000_000

AnyRead = Recall | Profile | Get | List | Why | Export | GetContext | Printed
"""What may be asked under a pass: the reads that it limits, and the report of what was printed (A1)."""


class Answers:
    """Everything that is read, in one place; `last` is what happened last, for `status` (U6)."""

    def __init__(
        self,
        stores: Stores,
        access: ReadScope,
        warm: WarmRecall,
        world: World,
        models: EmbeddingModels,
        deliveries: InjectionLog,
        config: Config,
        givings: EchoLedger,
    ) -> None:
        self._stores, self._access, self._warm = stores, access, warm
        self._givings, self._deliveries, self._config = givings, deliveries, config

        def boost(record: Record) -> float:
            boosts = self._config.tag_boost
            return max((boosts[tag] for tag in record.tags if tag in boosts), default=1.0)

        def pieces(text: str) -> int:  # of the model that searches now: it may change
            return models.searching.pieces(text)

        def weighed(records: Sequence[Record], now: int) -> Mapping[str, float]:
            signals = stores.counters.signals(records)
            return {each.id: salience(each, signals[each.id], now, self._config.forgetting) for each in records}

        lines = ProfileLines(stores.profile, stores.archive, pieces, boost, weighed)
        self._hot = ProfileCache(stores.profile, lines, access.title, access.permits)
        self._context = ContextPackager(stores.records, stores.inbox.held, lines, boost, world.now)
        told = (stores.records, stores.sources, stores.archive, stores.turns)
        self._simple = TurnSearch(*told, config.simple_below_sessions)
        self._timeline = Timeline(stores.records, stores.sources, stores.journal)
        self._explainer = Explainer(stores.records, stores.sources, stores.archive, stores.journal)
        self._heard = TurnSearch(
            *told, sys.maxsize
        )  # in depth, what was said is searched however many sessions there are
        self._deep = DeepRecall(
            DeepSources(stores.records, stores.sources, stores.archive, stores.journal, stores.lines)
        )
        self._world, self._models = world, models
        self._started = world.now()
        self.last: dict[str, Outcome] = {}
        self.worker_state: Callable[[], str] = lambda: "idle"
        self.retrieved: Callable[[str, Sequence[str], Sequence[str]], None] = lambda question, ids, pools: None
        self.reactivated: Callable[[Sequence[str]], None] = lambda _: None
        self.pauses: PauseRegister | None = None
        self.trouble: Callable[[], str] = lambda: ""
        self._heard_at: dict[str, int] = {}

    def follow(self, config: Config) -> None:
        """Go on with these settings."""
        self._warm.follow(config.relevance_floor)
        self._simple.follow(config.simple_below_sessions)
        self._config = config
        self._hot.follow()

    def heard(self, documents: Mapping[str, int]) -> None:
        """Remember when these hosts, or those of these live sessions, were heard, in microseconds."""
        for document, at in documents.items():
            host = document.partition(":")[0]
            self._heard_at[host] = max(at, self._heard_at.get(host, 0))

    def start(self) -> None:
        """Begin to render profiles ahead."""
        self._hot.start()

    def check(self, request: AnyRequest) -> None:
        """Let nothing pass but reads where somebody asks under a pass (A1). Raises Denied."""
        if request.token and not isinstance(request, AnyRead):
            what = str(request.__struct_config__.tag)
            raise Denied(f"a pass reads: it does not cover {what!r}", hint="ask without it, as the user of this home")

    def allowed(self, arrived: Arrived) -> Arrived:
        """Those of these requests that may go on; the others hear why not."""
        going: list[tuple[AnyRequest, Respond]] = []
        for request, respond in arrived:
            try:
                self.check(request)
                going.append((request, respond))
            except Denied as error:
                respond(error)
        return going

    def note(self, name: str, what: str) -> None:
        """Remember that this just happened."""
        self.put(name, Outcome(at=from_micros(self._world.now()), what=what))

    def put(self, name: str, outcome: Outcome) -> None:
        """Remember an outcome that has a time of its own."""
        self.last[name] = outcome

    def pending(self) -> int:
        """Captures that the distiller has not seen yet."""
        return self._stores.pending

    def recall(self, request: Recall) -> Recalled:
        """WARM, or DEEP. Raises NotFound for a pool that does not exist, InvalidRequest for an empty question."""
        if not request.query.strip():
            raise InvalidRequest("an empty question", hint="say what you look for, or use `memd list`")
        reader = self._access.reader(request.token)
        scope = self._access.scope(request.cwd, request.pools, request.repository, reader=reader, agent=request.agent)
        view = self._timeline.view(request.as_of, request.believed_at)
        permits = self._access.permits(reader)
        asked = narrowed(request) if request.deep else request
        answer = self._warm.recall(asked, scope, self.pending(), view, permits)
        if view is None:
            self.retrieved(request.query, scope, [hit.record.id for hit in answer.hits])
            if not request.token:
                self.reactivated([hit.record.id for hit in answer.hits if hit.record.status == "archived"])
        turns = () if view else self._turns(asked, scope, answer, reader)
        if turns:
            answer = with_turns(answer, turns, asked)
        if request.deep:
            answer = self._deep.around(answer, request, DeepCaller(scope, self._access.heard_in(scope), permits, view))
        self._givings.told(request.document, answer)
        answer = screened(answer)
        if note := self._models.note:
            answer = msgspec.structs.replace(answer, note=note)
        found = f"{len(answer.hits)} records, {len(answer.turns)} turns"
        self.note("recalled", f"abstained: {answer.reason}" if answer.abstained else found)
        return answer

    def _turns(self, request: Recall, scope: Sequence[str], answer: Recalled, reader: Reader) -> tuple[Heard, ...]:
        pools, hears = self._access.heard_in(scope), self._access.hears(reader)
        search = self._heard if request.deep else self._simple
        return search.heard(request, self._world.now(), pools, answer.hits, hears)

    def profile(self, request: Profile) -> ProfileText:
        """HOT. Raises NotFound, Denied."""
        reader = self._access.reader(request.token)
        scope = self._access.scope(request.cwd, request.pools, request.repository, reader=reader, agent=request.agent)
        answer = self._hot.profile(scope, request.budget_tokens, self.pending(), reader)
        self._givings.note(request.document, answer.ids)
        self.note("profiled", f"{len(answer.ids)} lines, {answer.tokens} tokens")
        return self._deliveries.offer(request, answer)

    def read(self, request: AnyRead) -> AnyData:
        """Any of these requests."""
        match request:
            case Recall():
                return self.recall(request)
            case Profile():
                return self.profile(request)
            case Get():
                return self.get(request)
            case List():
                return self.list(request)
            case Why():
                return self.why(request)
            case Export():
                return self.export(request)
            case GetContext():
                return self.context(request)
            case Printed():
                return self.printed(request)

    def injected(self, request: ListInjected) -> Injections:
        """What sessions were given. Raises NotFound, InvalidRequest."""
        return self._deliveries.list(request)

    def printed(self, request: Printed) -> PrintNoted:
        """A hook's report. Raises Denied."""
        self._access.reader(request.token)
        noted = self._deliveries.printed(request)
        if noted.known:
            self.note("injected", request.document)
        return noted

    def context(self, request: GetContext) -> ContextPackage:
        """The context package (Q11). Raises NotFound, Denied."""
        reader = self._access.reader(request.token)
        scope = self._access.scope(request.cwd, request.pools, request.repository, reader=reader, agent=request.agent)
        return self._context.package(request, scope, self._access.permits(reader))

    def get(self, request: Get) -> Record:
        """One record by id or unambiguous prefix, today or as it stood. Raises NotFound."""
        found = self._find(request.id, self._access.reader(request.token))
        view = self._timeline.view(request.as_of, request.believed_at)
        record = self._stores.counters.with_signal(found) if view is None else view.get(found.id)
        if record is None:
            raise NotFound(
                f"{found.id} was not known or not true then", hint=f"`memd why {found.id[:8]}` has its times"
            )
        return record

    def _find(self, id: str, reader: Reader = OWNER) -> Record:
        record = self._stores.records.named(id)
        permits = self._access.permits(reader)
        if permits and not permits(record):
            raise no_record(id)
        return record

    def list(self, request: List) -> Page:
        """Records newest first, filtered, with the cursor of the next page. Raises NotFound, InvalidRequest.

        Without a pool it is all of them but those of projects that the user left (P4).
        """
        tally = self._stores.records.tally()
        reader = self._access.reader(request.token)
        pools = [self._access.named(pool) for pool in request.pools]
        pools = pools or [pool for pool in sorted(tally) if not self._access.is_left(pool)]
        view = self._timeline.view(request.as_of, request.believed_at)
        if view and not request.pools:  # a pool that is empty today may have held something then
            known = {PERSONAL, *tally, *(pool.pool for pool in self._stores.sources.pools())}
            pools = [pool for pool in sorted(known) if not self._access.is_left(pool)]
        pools = [pool for pool in pools if not reader.pools or pool in reader.pools]
        start, before = cursor_of(request.after, pools)
        permits = self._access.permits(reader)
        wanted = filtering(request, permits)
        total = total_of(tally, pools) if permits is None else 0  # under a pass: how much there is, is not told
        if view:
            return past_page(view, pools, start, before, request, wanted)
        found: list[Record] = []
        for number, pool in enumerate(pools[start:], start):
            while group := self._stores.records.recent(pool, before, SLICE):
                for record in group:
                    before = (record.learned_at, record.id)
                    if wanted(record):
                        found.append(record)
                        if len(found) == max(1, request.limit):
                            cursor = f"{number}:{record.learned_at}:{record.id}"
                            return Page(records=tuple(found), next=cursor, total=total)
            before = None
        return Page(records=tuple(found), total=total)

    def why(self, request: Why) -> Explained:
        """The whole way of one record. Raises NotFound."""
        reader = self._access.reader(request.token)
        found = self._stores.counters.with_signal(self._find(request.id, reader))
        told = self._explainer.why(found, self._access.permits(reader))
        changes_if = condition(found, self._config.forgetting)
        return msgspec.structs.replace(told, changes_if=changes_if.text if changes_if else "")

    def export(self, request: Export) -> ExportPage:
        """Records newest first with all that happened to them, about `PAGE_CHARACTERS` a page. Raises NotFound."""
        pools = [self._access.named(pool) for pool in request.pools] or sorted(self._stores.records.tally())
        limit = min(max(1, request.limit), SLICE)
        wish = List(pools=tuple(pools), after=request.after, limit=limit, token=request.token)
        page = self.list(wish) if pools else Page(records=())
        records, following, size = list(page.records), page.next, 0
        for number, record in enumerate(records[:-1], 1):
            size += len(record.content)
            if size > PAGE_CHARACTERS:
                following = f"{pools.index(record.pool)}:{record.learned_at}:{record.id}"
                del records[number:]
                break
        documents = dict.fromkeys(document for record in records for document in documents_of(record))
        found = (self._stores.sources.session(document) for document in documents)
        inside = {record.pool for record in records}
        out = [shown(self._stores.counters.with_signal(each)) for each in records]
        return ExportPage(
            records=tuple(ExportedRecord(record=each, changes=self._explainer.changes(each.id)) for each, _ in out),
            sessions=tuple(_untold(session.opened) for session in found if session is not None),
            pools=tuple(pool for pool in self._stores.sources.pools() if pool.pool in inside),
            next=following,
            total=page.total,
            screened=dict(Counter(kind for _, seen in out for kind in seen)),
        )

    def journal(self, request: Journal) -> Journaled:
        """Operations after a seq."""
        limit = min(max(1, request.limit), SLICE)
        entries = self._stores.journal.slice(max(0, request.after), limit)
        return Journaled(entries=tuple(entries), last=self._stores.journal.last)

    def pools(self) -> PoolList:
        """Every pool with its counts."""
        tally = self._stores.records.tally()
        mine = PoolSummary(pool=PERSONAL, title="you", counts=tally.get(PERSONAL, {}))
        others = (
            PoolSummary(
                pool=each.pool,
                title=each.title,
                counts=tally.get(each.pool, {}),
                role=each.role,
                perspectives=each.perspectives,
            )
            for each in self._stores.sources.pools()
            if each.pool != PERSONAL
        )
        return PoolList(pools=(mine, *others))

    def status(self) -> StatusText:
        """One screen of actual outcomes (U6)."""
        stores = self._stores
        progress = stores.sources.progress()
        counts: dict[str, int] = {}
        tally = stores.records.tally()
        for statuses in tally.values():
            for status, count in statuses.items():
                counts[status] = counts.get(status, 0) + count
        failed = (f"{each.document} {each.turn}: {each.stage}: {each.reason}" for each in stores.letters.newest())
        last = dict(self.last)
        if progress.last_at:
            what = f"{progress.captures} captures, {progress.candidates} candidates so far"
            last["distilled"] = Outcome(at=from_micros(progress.last_at), what=what)
        return StatusText(
            version=__version__,
            protocol=PROTOCOL,
            pid=os.getpid(),
            started_at=from_micros(self._started),
            data_dir=str(stores.folder),
            model=self._models.searching.id,
            reembedding=self._models.reembedding,
            journal_seq=stores.journal.last,
            archive_seq=stores.archive.last,
            pending=self.pending(),
            unembedded=self._stores.vectors.waiting,
            worker=self.worker_state(),
            records=counts,
            pools=len({PERSONAL, *tally}),
            last=last,
            failures=tuple(failed),
            size_bytes=stores.size_bytes(),
            troubles=(*stores.troubles, *self._models.troubles, *filter(None, [self.trouble()])),
            pauses=self.pauses.state().pauses if self.pauses else (),
            ignored=self.pauses.ignored if self.pauses else (),
            inbox=stores.inbox.open(),
            hosts={host: from_micros(at) for host, at in sorted(self._heard_at.items())},
            sessions_open=len(stores.unfinished.documents()),
        )


def _untold(opened: SessionOpened) -> SessionOpened:
    """A session without what its title gives away."""
    title = without_secrets(opened.origin.title)
    return msgspec.structs.replace(opened, origin=msgspec.structs.replace(opened.origin, title=title))
