"""The lifecycle service: counts use, lets pools sleep when a task ends, reviews, and restores archived records.

Invariants: no client waits for it; a task is a live session in which somebody spoke, and overlapping tasks of a pool
sleep once, when the last of them ends; after a restart the jobs find the same work again.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import ceil
from math import log as ln
from typing import Literal

import msgspec

from ....protocol.decay import Asleep, Fading, FadingBin, FadingList, ListFading, PutToSleep, Slumbered
from ....protocol.errors import MemdError
from ....protocol.event import AnyEvent, Noted, Said
from ....protocol.fading import Archived, Restored
from ....protocol.instant import micros
from ....protocol.record import Record
from ....stages.batch import PERSONAL
from ....stages.lead_ins import is_asked_for
from ...forgetting_rules import Rules, UseOutcome
from ...projections.counters import KINDS, Weak
from ...projections.placement import agent_pool
from ...projections.stores import Stores
from ...projections.strength import DAY
from ..core import Core
from ..events import AnswerUsed, CapturesCommitted, Topic
from ..outgoing_screen import shown
from ..record_history import versions
from ..search_model import Encode
from ..service import Caller, Handler, Handlers, Service, owner
from ..write_thread import Writer
from .consolidate import Consolidation
from .counting import FLUSH_S, UseCounter
from .duplicates import Duplicates
from .review import ReviewJob, condition, is_quiet
from .sleep import Sleep, SleepEffect
from .task_outcome import task_outcome
from .usage import UseDetector

DAY_S = 86_400.0
SHOWN = 20
BINS = 60
"""Most bins of the forecast."""

log = logging.getLogger("memd.lifetime")

NO_SESSIONS = frozenset({"memd", "cli", "python"})
"""Hosts whose documents are single statements, not sessions in which somebody works."""


def _is_asked_for(event: AnyEvent, start: int) -> bool:
    """Whether the user or an agent asked to remember the statement of an event that begins at `start`."""
    return isinstance(event, Noted) or (
        isinstance(event, Said) and event.role == "user" and is_asked_for(event.text, start)
    )


class Probation:
    """Judges the records of one batch. On the write thread."""

    def __init__(self, stores: Stores, rules: Callable[[], Rules], now: Callable[[], int]) -> None:
        self._stores, self._rules, self._now = stores, rules, now
        self._first: dict[str, str] = {}

    def judged(self, record: Record) -> Record:
        """Return the record, unconfirmed if it is on probation."""
        if record.status != "active" or record.held or record.supersedes or not self._is_doubtful(record):
            return record
        span = record.provenance.spans[0]
        captured = self._stores.archive.turn(span.document, span.turn)
        if captured is not None and _is_asked_for(captured.event, span.start):
            return record
        return msgspec.structs.replace(record, status="quarantined")

    def _is_doubtful(self, record: Record) -> bool:
        rules, document = self._rules(), record.provenance.source
        session = self._stores.sources.session(document)
        if session is None or document.partition(":")[0] in NO_SESSIONS or rules.is_off(record.pool):
            return False
        if session.opened.origin.live:
            return rules.first_session and self._first_live(record.pool) == session.family
        age_days = (self._now() - micros(record.provenance.said_at)) / DAY
        return bool(rules.old_import_days) and age_days > rules.old_import_days

    def _first_live(self, pool: str) -> str:
        """Return the family of a pool's first live session; all sessions belong to the user's own pool."""
        if pool not in self._first:
            sources = self._stores.sources
            documents = sources.sessions() if pool == PERSONAL else sources.documents([pool])
            live = [
                (micros(session.opened.at), document, session.family)
                for document, session in sources.sessions_of(documents).items()
                if session.opened.origin.live and document.partition(":")[0] not in NO_SESSIONS
            ]
            self._first[pool] = min(live)[2] if live else ""
        return self._first[pool]


def reactivate(stores: Stores, rules: Rules, ids: Iterable[str], why: Literal["asked", "recalled"]) -> tuple[str, ...]:
    """Make archived records active unless a live record holds their key; return their ids. On the write thread."""
    back: list[str] = []
    quarantined: list[str] = []
    for record in stores.records.many(ids).values():
        if record.status != "archived":
            continue
        holder = stores.records.holding_key(record.pool, record.key) if record.key else ""
        if holder and holder != record.id:
            continue
        back.append(record.id)
        if _was_quarantined(stores, record):
            quarantined.append(record.id)
    if back:
        restored = Restored(
            ids=tuple(back),
            why=why,
            quarantined=tuple(quarantined),
            strength=rules.restored_strength,
            levels_down=rules.restored_levels_down,
            level_uses=rules.level_uses,
        )
        stores.commit([restored])
    return tuple(back)


def _was_quarantined(stores: Stores, record: Record) -> bool:
    """Return whether a record was unconfirmed when it was archived."""
    before: Record | None = None
    quarantined = False
    for entry, version in versions(stores, record.id):
        if isinstance(entry.operation, Archived):
            quarantined = before is not None and before.status == "quarantined"
        before = version
    return quarantined


class LifecycleService(Service):
    """Counts uses, lets pools sleep at the end of a task, archives what is weak, and brings it back."""

    name = "lifecycle"

    def __init__(
        self,
        core: Core,
        writer: Writer,
        *,
        encode: Callable[[], Encode | None],
        rules_of: Callable[[str], Rules] | None = None,
    ) -> None:
        """`encode`: returns the encoder of the current model, if it has one; `rules_of`: the rules of a pool, by
        default those of all."""
        stores, world = core.stores, core.world

        def rules() -> Rules:
            return core.config().forgetting

        self._stores, self._writer, self._scheduler, self._directory = stores, writer, core.scheduler, core.directory

        def of_all(pool: str) -> Rules:
            return rules()

        self._rules, self._rules_of, self._world = rules, rules_of or of_all, world
        self.counter = UseCounter(stores, writer, rules)
        self.used = Topic[AnswerUsed]()

        def noted(answer: str, ids: Sequence[str]) -> None:
            writer.run(lambda: self.used.publish(AnswerUsed(answer, tuple(ids))))

        self._detector = UseDetector(stores, self.counter, rules, encode, world.monotonic, self._fed_by, noted)
        self.sleep = Sleep(stores, writer, rules, world.now, rules_of)
        self._consolidation = Consolidation(stores, writer, rules)
        self._duplicates = Duplicates(stores, writer, rules)
        self.review = ReviewJob(stores, writer, rules, world.now, rules_of)
        self._reviewed_at, self._looking = -DAY_S, False
        core.captures.subscribe(self._captured)

    @property
    def handlers(self) -> Handlers:
        """Both on the slow lane; changes go through the write thread."""
        return {
            PutToSleep: owner("slow", self.put_to_sleep),
            ListFading: Handler("slow", self.fading, scoped=True),
        }

    def start(self) -> None:
        """Commit counts and review records at intervals."""
        self._scheduler.every(FLUSH_S, self._tick, "lifetime")

    def _captured(self, event: CapturesCommitted) -> None:
        self.heard()
        self.ended([document for document in event.ended if document in event.closed])

    def _tick(self) -> None:
        self.counter.flush()
        if self._world.monotonic() - self._reviewed_at >= DAY_S and is_quiet():
            self._reviewed_at = self._world.monotonic()
            if count := self.review.run():
                log.info("lowered the confidence of %d records: review overdue or change condition met", count)

    # --- recalls and uses (T3) -----------------------------------------------------------------------------------
    def recalled(self, query: str, scope: Sequence[str], ids: Sequence[str], answer: str, perspective: str) -> None:
        """Count records that a question about the present retrieved."""
        self.counter.candidates(ids)
        self._detector.recalled(query, scope, ids, answer, perspective)

    def uncounted(self) -> Mapping[str, int]:
        """Return the retrievals of records that wait to be counted."""
        return self.counter.uncounted()

    def injected(self, ids: Iterable[str]) -> None:
        """Count records that a hook printed into a session."""
        self.counter.candidates(ids)

    def in_context(self, document: str, prompt: str, ids: Sequence[str]) -> None:
        """Wait for the answer of a session that has these records in its context; spare them today's decay."""
        self._detector.in_context(document, prompt, ids)
        self.sleep.given(ids)

    def heard(self) -> None:
        """Look for uses in new answers of live sessions, soon. On the write thread."""
        if self._detector.is_waiting and not self._looking:
            self._looking = True
            self._scheduler.soon(self._look, "usage")

    def _look(self) -> None:
        self._looking = False
        try:
            self._detector.heard()
        except MemdError as error:
            log.info("could not count uses yet: %s", error.message)

    def reactivated(self, ids: Sequence[str]) -> None:
        """Make archived records active that the user's question retrieved; on the write thread, soon."""
        if ids:
            self._writer.run(lambda: self.reactivate(ids, "recalled"))

    def reactivate(self, ids: Sequence[str], why: Literal["asked", "recalled"]) -> tuple[str, ...]:
        """Bring back those of these records that are archived; return which ones. On the write thread."""
        return reactivate(self._stores, self._rules(), ids, why)

    def change_condition(self, record: Record) -> str:
        """Return in words what would make a belief doubtful; "" where nothing would."""
        stated = condition(record, self._rules())
        return stated.text if stated else ""

    def judge(self) -> Callable[[Record], Record]:
        """Return the function that puts new records of a batch on probation."""
        return Probation(self._stores, self._rules, self._world.now).judged

    # --- tasks (T6) ----------------------------------------------------------------------------------------------
    def ended(self, documents: Iterable[str]) -> None:
        """Let pools of ended sessions sleep, after the current group; credit what these used. On the write thread."""
        documents = tuple(documents)
        self._scheduler.soon(lambda: self._credit(documents), f"credit {documents}")
        sessions = self._stores.sources.sessions_of(documents)
        pools: dict[str, None] = {}
        for document, session in sessions.items():
            if session.closed_at and session.opened.origin.live and document.partition(":")[0] not in NO_SESSIONS:
                pools.update(dict.fromkeys(self._fed_by(document)))
        if pools:
            self.counter.flush()
            due = [pool for pool in pools if not self._is_busy(pool)]
            self._writer.run(lambda: self._fall_asleep(due))

    def _credit(self, documents: Iterable[str]) -> None:
        """Add the outcome of the tasks of ended sessions to the records that they used (T3, T4)."""
        self._look()
        for document in documents:
            if uses := self._detector.take_uses(document):
                captures = self._stores.archive.turns(document)
                by_outcome: dict[UseOutcome, list[str]] = {}
                for id, at in uses.items():
                    by_outcome.setdefault(task_outcome(captures, at), []).append(id)
                for outcome, ids in by_outcome.items():
                    if outcome:
                        self.counter.credit(ids, outcome)

    def _fed_by(self, document: str) -> tuple[str, ...]:
        """Return the pools of a session: the user's own, its project's, its agent's."""
        session = self._stores.sources.session(document)
        project = self._stores.aliases.home(session.opened.project) if session and session.opened.project else ""
        agent = agent_pool(session.opened.origin.agent) if session else ""
        known = self._stores.records.tally()
        return tuple(dict.fromkeys(pool for pool in (PERSONAL, project, agent if agent in known else "") if pool))

    def _is_busy(self, pool: str) -> bool:
        """Return whether another task of a pool goes on; the pool sleeps when the last one ends."""
        going = self._stores.open_sessions.documents()
        return any(
            document.partition(":")[0] not in NO_SESSIONS and pool in self._fed_by(document) for document in going
        )

    def _fall_asleep(self, pools: Sequence[str]) -> None:
        slept = [pool for pool in pools if self.sleep.fall_asleep(pool) is not None]
        for pool in slept:
            self._scheduler.soon(lambda pool=pool: self._rest_quietly(pool), f"sweep {pool}")

    def _rest_quietly(self, pool: str) -> None:
        try:
            self._rest(pool)
        except MemdError as error:  # a full disk or a stop; the next sleep tries again
            log.info("postponed the sweep of %s: %s", pool, error.message)

    def _rest(self, pool: str) -> SleepEffect:
        """Merge duplicates, consolidate, archive and prune; beside the write thread."""
        self._duplicates.run(pool)
        self._consolidation.run(pool)
        return self.sleep.sweep(pool)

    def rest_after_test(self, pool: str) -> None:
        """Let a pool sleep once, as at the end of a task, and sweep it (O3). Not on the write thread. Raises
        StorageFull, Stopping."""
        if self._writer.run(lambda: self.sleep.fall_asleep(pool)).result() is not None:
            self._rest(pool)

    # --- requests ------------------------------------------------------------------------------------------------
    def put_to_sleep(self, request: PutToSleep) -> Slumbered:
        """Let pools sleep now. Raises NotFound."""
        named = [self._directory.named(pool) for pool in request.pools]
        pools = named or sorted(self._stores.records.tally())
        rules, asleep = self._rules(), list[Asleep]()
        for pool in (pool for pool in pools if not rules.is_off(pool)):
            if request.dry_run:
                effect = self.sleep.weak(pool, self.sleep.next(pool))
            else:
                slept = self._writer.run(lambda pool=pool: self.sleep.fall_asleep(pool)).result()
                effect = self._rest(pool)
                if slept:
                    effect = msgspec.structs.replace(effect, days=slept.days, tasks_per_day=slept.tasks_per_day)
            asleep.append(self._asleep(effect))
        off = tuple(pool for pool in pools if rules.is_off(pool))
        return Slumbered(pools=tuple(asleep), off=off, dry_run=request.dry_run)

    def _asleep(self, effect: SleepEffect) -> Asleep:
        first = self._stores.records.many((*effect.faded, *effect.pruned)[:SHOWN])
        return Asleep(
            pool=effect.pool,
            tasks_per_day=round(effect.tasks_per_day, 2),
            days=round(effect.days, 4),
            faded=len(effect.faded),
            pruned=len(effect.pruned),
            first=tuple(shown(record).record for record in first.values()),
        )

    def fading(self, request: ListFading, caller: Caller) -> FadingList:
        """List what fades first if nobody uses it. Raises NotFound."""
        rules = self._rules()
        scope = caller.scope
        decaying: list[tuple[float, str]] = []
        total = 0
        for pool in scope:
            if not rules.is_off(pool):
                records_of_pool = sum(self._stores.counters.by_level(pool))
                total += records_of_pool
                decaying += self._soonest(pool, records_of_pool)
        decaying.sort()
        gone = bisect_left(decaying, (float(request.after_days), ""))
        soonest = decaying[: min(request.limit, gone if request.after_days else request.limit)]
        bin_days = max(1, ceil((decaying[-1][0] + 1) / BINS)) if decaying else 1
        bins = Counter(int(days) // bin_days * bin_days for days, _ in decaying)
        records = self._stores.records.many(id for _, id in soonest)
        signals = self._stores.counters.signals(records.values())
        rows = tuple(
            Fading(
                record=shown(msgspec.structs.replace(records[id], signal=signals[id])).record, days_left=round(days, 1)
            )
            for days, id in soonest
            if id in records
        )
        due = islice((shown(record).record for record in self.review.overdue(scope)), SHOWN)
        return FadingList(
            records=rows,
            scope=tuple(scope),
            total=total,
            overdue=tuple(due),
            gone=gone,
            bin_days=bin_days,
            histogram=tuple(FadingBin(days, bins[days]) for days in sorted(bins)),
            retention=tuple(round(share, 4) for share in self._rules_of(scope[-1]).retention(request.after_days or 1)),
        )

    def fading_within(self, pools: Iterable[str], days: int, most: int) -> list[tuple[float, str]]:
        """Return the records of pools that sleep archives within so many active days of their pool if nobody uses them:
        days left and id, the soonest first; at most `most` of a pool's kind and level."""
        rules = self._rules()
        rows = (row for pool in pools if not rules.is_off(pool) for row in self._soonest(pool, most))
        return sorted(row for row in rows if row[0] <= days)

    def _soonest(self, pool: str, limit: int) -> list[tuple[float, str]]:
        rules, soonest = self._rules_of(pool), list[tuple[float, str]]()
        held = self._stores.courses.held(pool)
        for kind in KINDS:
            for level, loss in enumerate(rules.daily_loss):
                if loss and kind not in rules.never:
                    weak = self._stores.counters.soonest(pool, kind, level, limit + len(held))
                    soonest += [(_days_left(row, rules.floor, loss), row.id) for row in weak if row.id not in held]
        return soonest

    def stop(self) -> None:
        """Commit the waiting counts; the write thread still runs."""
        try:
            self.counter.flush().result()
        except MemdError as error:  # only counts of retrievals
            log.warning("could not count some retrievals: %s", error.message)


def _days_left(weak: Weak, floor: float, loss: float) -> float:
    """Return the active days until the strength is below the floor."""
    return max(0.0, (weak.strength - ln(floor)) / -ln(1 - loss)) if loss < 1 else 0.0
