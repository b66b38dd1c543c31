"""Time at work in a running daemon: counts on their way, sleep when a task ends, what the user asks of time.

Comes in: what recalls brought up, sessions that end, requests, the passing of time. Goes out: operations, through the
writer, and replies. Invariants: nothing here keeps a client waiting; a task is a live session in which somebody
spoke, and tasks of a pool that overlap sleep once, when the last of them ends (T6); jobs have one name each, so they
never pile up, and what they find to do they find again after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import log as ln
from typing import Literal

import msgspec

from ....protocol.errors import MemdError
from ....protocol.lifetime import (
    Asleep,
    Fading,
    FadingList,
    ListFading,
    PutToSleep,
    Slumbered,
)
from ....protocol.record import Record
from ....stages.batch import PERSONAL
from ...forgetting_rules import Rules
from ...projections.counters import KINDS, Weak
from ...projections.placement import agent_pool
from ...projections.pool_directory import PoolDirectory
from ...projections.stores import Stores
from ...world import World
from ..events import CapturesCommitted, Topic
from ..outgoing_screen import shown
from ..scheduler import Scheduler
from ..search_model import Encode
from ..service import Caller, Handler, Handlers, Service, owner
from ..write_thread import Writer
from .consolidate import Consolidation
from .counting import FLUSH_S, UseCounter
from .probation import NO_SESSIONS, Probation
from .reactivation import reactivate
from .review import ReviewJob, is_quiet
from .sleep import Sleep, Slumber
from .usage import UseDetector

DAY_S = 86_400.0
SHOWN = 20
log = logging.getLogger("memd.lifetime")


class LifecycleService(Service):
    """Counts uses, lets pools sleep at the end of a task, archives what is weak, and brings it back."""

    name = "lifecycle"

    def __init__(
        self,
        stores: Stores,
        writer: Writer,
        scheduler: Scheduler,
        directory: PoolDirectory,
        rules: Callable[[], Rules],
        encode: Callable[[], Encode | None],
        captures: Topic[CapturesCommitted],
        world: World,
    ) -> None:
        """`encode`: what turns a sentence into a vector now, if anything does."""
        self._stores, self._writer, self._scheduler, self._directory = stores, writer, scheduler, directory
        self._rules, self._world = rules, world
        self.counter = UseCounter(stores, writer, rules)
        self._detector = UseDetector(stores, self.counter, rules, encode, world.monotonic, self._fed_by)
        self.sleep = Sleep(stores, writer, rules, world.now)
        self._consolidation = Consolidation(stores, writer, rules)
        self.review = ReviewJob(stores, writer, rules, world.now)
        self._reviewed_at, self._looking = -DAY_S, False
        captures.subscribe(self._captured)

    @property
    def handlers(self) -> Handlers:
        """Both wait on the slow lane; what they write goes through the write thread."""
        return {
            PutToSleep: owner("slow", self.put_to_sleep),
            ListFading: Handler("slow", self.fading, scoped=True),
        }

    def start(self) -> None:
        """Write down counts and review records now and then."""
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
    def recalled(self, query: str, scope: Sequence[str], ids: Sequence[str]) -> None:
        """A question to the present brought these records up."""
        self.counter.candidates(ids)
        self._detector.recalled(query, scope, ids)

    def heard(self) -> None:
        """Live sessions went on: there may be an answer that used what was recalled. On the write thread."""
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
        """Bring back those of these records that are archived (T7); on the write thread, soon."""
        if ids:
            self._writer.run(lambda: self.reactivate(ids, "recalled"))

    def reactivate(self, ids: Sequence[str], why: Literal["asked", "recalled"]) -> tuple[str, ...]:
        """Bring back those of these records that are archived; return which ones. On the write thread."""
        return reactivate(self._stores, self._rules(), ids, why)

    def judge(self) -> Callable[[Record], Record]:
        """What says of each new record of a batch whether it is to prove itself first (T8)."""
        return Probation(self._stores, self._rules, self._world.now).judged

    # --- tasks (T6) ----------------------------------------------------------------------------------------------
    def ended(self, documents: Iterable[str]) -> None:
        """These sessions ended. Called on the write thread, which sleeps when it is through with its group."""
        sessions = self._stores.sources.sessions_of(documents)
        pools: dict[str, None] = {}
        for document, session in sessions.items():
            if session.closed_at and session.opened.origin.live and document.partition(":")[0] not in NO_SESSIONS:
                pools.update(dict.fromkeys(self._fed_by(document)))
        if pools:
            self.counter.flush()
            due = [pool for pool in pools if not self._is_busy(pool)]
            self._writer.run(lambda: self._fall_asleep(due))

    def _fed_by(self, document: str) -> tuple[str, ...]:
        """The pools that a session's task belongs to: the user's own, its project's, its agent's."""
        session = self._stores.sources.session(document)
        project = self._stores.aliases.home(session.opened.project) if session and session.opened.project else ""
        agent = agent_pool(session.opened.origin.agent) if session else ""
        known = self._stores.records.tally()
        return tuple(dict.fromkeys(pool for pool in (PERSONAL, project, agent if agent in known else "") if pool))

    def _is_busy(self, pool: str) -> bool:
        """Whether another task of a pool goes on: they sleep together, when it ends."""
        going = self._stores.open_sessions.documents()
        return any(each.partition(":")[0] not in NO_SESSIONS and pool in self._fed_by(each) for each in going)

    def _fall_asleep(self, pools: Sequence[str]) -> None:
        slept = [pool for pool in pools if self.sleep.fall_asleep(pool) is not None]
        for pool in slept:
            self._scheduler.soon(lambda pool=pool: self._rest_quietly(pool), f"sweep {pool}")

    def _rest_quietly(self, pool: str) -> None:
        try:
            self._rest(pool)
        except MemdError as error:  # a full disk, or a stop: what is weak is still so at the next sleep
            log.info("postponed the sweep of %s: %s", pool, error.message)

    def _rest(self, pool: str) -> Slumber:
        """What a sleep does beside the committer: consolidate, archive, prune."""
        self._consolidation.run(pool)
        return self.sleep.sweep(pool)

    # --- requests ------------------------------------------------------------------------------------------------
    def put_to_sleep(self, request: PutToSleep) -> Slumbered:
        """Let pools sleep now. Raises NotFound."""
        named = [self._directory.named(pool) for pool in request.pools]
        pools = named or sorted(self._stores.records.tally())
        rules, told = self._rules(), list[Asleep]()
        for pool in (pool for pool in pools if not rules.is_off(pool)):
            if request.dry_run:
                slumber = self.sleep.weak(pool, self.sleep.next(pool))
            else:
                slept = self._writer.run(lambda pool=pool: self.sleep.fall_asleep(pool)).result()
                slumber = self._rest(pool)
                if slept:
                    slumber = msgspec.structs.replace(slumber, days=slept.days, tasks_per_day=slept.tasks_per_day)
            told.append(self._asleep(slumber))
        off = tuple(pool for pool in pools if rules.is_off(pool))
        return Slumbered(pools=tuple(told), off=off, dry_run=request.dry_run)

    def _asleep(self, slumber: Slumber) -> Asleep:
        first = self._stores.records.many((*slumber.faded, *slumber.pruned)[:SHOWN])
        return Asleep(
            pool=slumber.pool,
            tasks_per_day=round(slumber.tasks_per_day, 2),
            days=round(slumber.days, 4),
            faded=len(slumber.faded),
            pruned=len(slumber.pruned),
            first=tuple(shown(each).record for each in first.values()),
        )

    def fading(self, request: ListFading, caller: Caller) -> FadingList:
        """List what fades first if nobody uses it. Raises NotFound."""
        rules = self._rules()
        scope = caller.scope
        soonest: list[tuple[float, str]] = []
        total = 0
        for pool in scope:
            if not rules.is_off(pool):
                total += sum(self._stores.counters.by_level(pool))
                soonest += self._soonest(pool, request.limit)
        soonest = sorted(soonest)[: request.limit]
        records = self._stores.records.many(id for _, id in soonest)
        signals = self._stores.counters.signals(records.values())
        rows = tuple(
            Fading(
                record=shown(msgspec.structs.replace(records[id], signal=signals[id])).record, days_left=round(days, 1)
            )
            for days, id in soonest
            if id in records
        )
        due = islice((shown(each).record for each in self.review.overdue(scope)), SHOWN)
        return FadingList(records=rows, scope=tuple(scope), total=total, overdue=tuple(due))

    def _soonest(self, pool: str, limit: int) -> list[tuple[float, str]]:
        rules, found = self._rules(), list[tuple[float, str]]()
        for kind in KINDS:
            for level, loss in enumerate(rules.daily_loss):
                if loss and kind not in rules.never:
                    weak = self._stores.counters.soonest(pool, kind, level, limit)
                    found += [(_days_left(each, rules.floor, loss), each.id) for each in weak]
        return found

    def stop(self) -> None:
        """Write down what waits; the committer still runs."""
        try:
            self.counter.flush().result()
        except MemdError as error:  # they are only light counts
            log.warning("could not count some retrievals: %s", error.message)


def _days_left(weak: Weak, floor: float, loss: float) -> float:
    """Active days until the strength is below the floor."""
    return max(0.0, (weak.strength - ln(floor)) / -ln(1 - loss)) if loss < 1 else 0.0
