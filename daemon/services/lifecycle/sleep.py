"""Sleep: at the end of a task the strength of a pool decays, and memd archives weak records.

Invariants: sleep is one row, so a read sees all strengths from before or all from after; a record that was used since
it was found weak stays; one run archives at most the configured share of a pool, and no section of an open course.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from ....protocol.fading import Archived, Slept
from ....protocol.record import LIVE
from ...forgetting_rules import Rules
from ...projections.stores import Stores
from ...projections.strength import DAY, pace, share_of_day
from ..write_thread import Writer

SLICE = 250
"""Records archived in one commit."""

GIVEN = 5_000
"""Most records of which memd knows that an agent had them in its context; the newest stay."""


class SleepEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a sleep on a pool: its pace, the part of a day that it counts for, the records to archive by
    reason."""

    pool: str
    tasks_per_day: float
    days: float
    faded: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()


class Sleep:
    """The sleep of pools."""

    def __init__(
        self,
        stores: Stores,
        writer: Writer,
        rules: Callable[[], Rules],
        now: Callable[[], int],
        rules_of: Callable[[str], Rules] | None = None,
    ) -> None:
        """`rules_of`: the rules of a pool, by default `rules`, those of all."""
        self._stores, self._writer, self._rules, self._now = stores, writer, rules, now

        def of_all(pool: str) -> Rules:
            return rules()

        self._rules_of = rules_of or of_all
        self._given: dict[str, int] = {}
        self._lock = threading.Lock()

    def given(self, ids: Iterable[str]) -> None:
        """Note that an agent has these records in its context, so that today's sleeps leave them as strong as they are.
        Any thread may call it; a restart forgets it."""
        now = self._now()
        with self._lock:
            for id in ids:
                self._given.pop(id, None)
                self._given[id] = now
            while len(self._given) > GIVEN:
                del self._given[next(iter(self._given))]

    def _given_today(self, pool: str) -> tuple[str, ...]:
        """Return the records of a pool that an agent had in its context in the last 24 hours."""
        start = self._now() - DAY
        with self._lock:
            self._given = {id: at for id, at in self._given.items() if at > start}
            ids = tuple(self._given)
        records = self._stores.records.many(ids) if ids else {}
        return tuple(sorted(id for id, record in records.items() if record.pool == pool))

    def fall_asleep(self, pool: str) -> Slept | None:
        """Commit the decay at the end of a pool's task; None where forgetting is off. On the write thread."""
        slept = self.next(pool)
        if slept is not None:
            self._stores.commit([slept])
        return slept

    def next(self, pool: str) -> Slept | None:
        """Return the operation that the end of a task would commit now."""
        rules = self._rules_of(pool)
        if rules.is_off(pool):
            return None
        rest, now = self._stores.counters.rest(pool), self._now()
        days = share_of_day(rest, now)
        retention = rules.retention(days)
        return Slept(
            pool=pool,
            tasks_per_day=pace(rest, now),
            days=days,
            retention=retention,
            spared=rules.never,
            given=self._given_today(pool),
        )

    def limit(self, pool: str) -> int:
        """Return how many records of a pool one run may archive."""
        counts = self._stores.records.tally().get(pool, {})
        live = sum(count for status, count in counts.items() if status in LIVE)
        return min(live, max(1, int(live * self._rules().share_a_run)))

    def weak(self, pool: str, sleeps: Slept | None = None) -> SleepEffect:
        """Return what a sweep would archive now, or after one more sleep: weak records first, then those over the
        capacity, the lightest and longest unused first."""
        rules, counters = self._rules(), self._stores.counters
        if rules.is_off(pool):
            return SleepEffect(pool=pool, tasks_per_day=0.0, days=0.0)
        most, held = self.limit(pool), self._stores.courses.held(pool)
        weakest = counters.weakest(pool, rules.floor, most + len(held), sleeps)
        faded = tuple(weak.id for weak in weakest if weak.id not in held)[:most]
        return SleepEffect(
            pool=pool,
            tasks_per_day=sleeps.tasks_per_day if sleeps else pace(counters.rest(pool), self._now()),
            days=sleeps.days if sleeps else 0.0,
            faded=faded,
            pruned=self._over(pool, most - len(faded), {*faded, *held}),
        )

    def _over(self, pool: str, most: int, known: Collection[str]) -> tuple[str, ...]:
        """Return the records over the pool's capacity, at most `most`; none of `known`."""
        rules, counters = self._rules(), self._stores.counters
        capacity = rules.capacity_of(pool)
        if sum(self._stores.records.tally().get(pool, {}).values()) * max(rules.weights) <= capacity:
            return ()
        by_level = counters.by_level(pool)
        weight = sum(count * level_weight for count, level_weight in zip(by_level, rules.weights, strict=True))
        over, pruned = weight - capacity, list[str]()
        for level, level_weight in enumerate(rules.weights):
            if over <= 0 or len(pruned) >= most:
                break
            for id in counters.lightest(pool, level, most + len(known)):
                if over <= 0 or len(pruned) >= most:
                    break
                over -= level_weight
                if id not in known:
                    pruned.append(id)
        return tuple(pruned)

    def sweep(self, pool: str) -> SleepEffect:
        """Archive weak records in slices, between captures. Not on the write thread."""
        effect = self.weak(pool)
        for why, ids in (("faded", effect.faded), ("capacity", effect.pruned)):
            for start in range(0, len(ids), SLICE):
                part = ids[start : start + SLICE]
                self._writer.run(lambda part=part, why=why: self.archive(pool, part, why)).result()
        return effect

    def archive(self, pool: str, ids: Sequence[str], why: str) -> None:
        """Archive those of the chosen records that have not changed. On the write thread."""
        counters, floor = self._stores.counters, self._rules().floor
        held = self._stores.courses.held(pool)
        records = {id: record for id, record in self._stores.records.many(ids).items() if record.status in LIVE}
        signals = counters.signals(records.values())
        standing = tuple(
            id
            for id, record in records.items()
            if record.pool == pool
            and not record.held
            and id not in held
            and (why != "faded" or max(signals[id].strength, *signals[id].strength_by.values(), 0.0) < floor)
        )
        if standing:
            self._stores.commit([Archived(pool=pool, ids=standing, why="faded" if why == "faded" else "capacity")])
