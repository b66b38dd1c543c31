"""How much was learnt and retired when, on both timelines, and the changes beside a time (Q12, U4, A1)."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.daemon.projections.pool_directory import PoolDirectory
from memd.daemon.projections.timeline import Timeline
from memd.daemon.services.map.map_service import MapService
from memd.daemon.services.map.rhythm import Changes, rhythm
from memd.daemon.services.scheduler import Scheduler
from memd.daemon.services.service import Caller
from memd.protocol.errors import InvalidRequest, NaiveTime, NotFound
from memd.protocol.instant import from_micros, micros
from memd.protocol.map import BUCKETS, GetRhythm, Rhythm
from memd.protocol.operation import Hidden, Invalidated, PoolOpened, Shift
from memd.protocol.record import Record
from tests.daemon.living import Running, added

DAY = 86_400_000_000
ORCHARD, QUARRY = "project/orchard", "project/quarry"


@pytest.fixture
def running(tmp_path: Path) -> Any:
    running = Running(tmp_path / "data")
    yield running
    running.close()


@pytest.fixture
def service(running: Running) -> MapService:
    stores = running.stores
    stores.commit([PoolOpened(pool=pool, title=pool) for pool in (ORCHARD, QUARRY)])
    timeline = Timeline(stores.records, stores.sources, stores.journal)
    return MapService(stores, PoolDirectory(stores), timeline, Scheduler(running.world))


def counts(told: Rhythm) -> list[tuple[int, int]]:
    return [(bucket.learnt, bucket.retired) for bucket in told.buckets]


def world(day: int) -> str:
    return f"2026-01-{day:02d}T00:00:00Z"


def test_when_statements_became_true_and_false_Q12(running: Running, service: MapService) -> None:
    running.stores.commit([added(day, valid_from=world(day), pool=ORCHARD) for day in (1, 1 + 1, 4, 9)])
    running.stores.commit([Invalidated(id="id2", valid_to=world(4), reason="wrong")])
    told = service.rhythm(GetRhythm(since=world(1), until=world(11), buckets=10, beside=world(4)), Caller())
    assert counts(told) == [(1, 0), (1, 0), (0, 0), (1, 1), (0, 0), (0, 0), (0, 0), (0, 0), (1, 0), (0, 0)]
    assert [bucket.start for bucket in told.buckets[:2]] == [world(1), world(2)] and told.until == world(11)
    assert (told.before, told.after) == (world(2), world(9))
    beside = service.rhythm(GetRhythm(beside=world(1), buckets=1), Caller())
    assert (beside.before, beside.after) == ("", world(2)) and counts(beside) == [(4, 1)]
    assert service.rhythm(GetRhythm(), Caller()).before == world(9)


def test_when_memd_learned_and_retired_them_Q12(running: Running, service: MapService) -> None:
    start = running.now
    for number in range(4):
        running.now = start + number * DAY
        running.stores.commit([added(number, valid_from=world(1))])
    running.now = start + 5 * DAY
    running.stores.commit([Invalidated(id="id1", valid_to=world(4), reason="wrong")])
    begin, end = from_micros(start), from_micros(start + 6 * DAY)
    wish = GetRhythm(clock="system", since=begin, until=end, buckets=6)
    assert counts(service.rhythm(wish, Caller())) == [(1, 0)] * 4 + [(0, 0), (0, 1)]
    shift = Shift("id3", "hidden")
    running.stores.commit([Hidden(documents=(), before=(shift,), after=(shift,))])
    assert counts(service.rhythm(wish, Caller())) == [(1, 0)] * 3 + [(0, 0)] * 2 + [(0, 1)], "hidden is not there"


def test_an_empty_home_and_wrong_times_Q12(running: Running, service: MapService) -> None:
    assert service.rhythm(GetRhythm(beside=world(1)), Caller()) == Rhythm(buckets=())
    running.stores.commit([added(1)])
    with pytest.raises(NaiveTime):
        service.rhythm(GetRhythm(since="2026-01-01T00:00:00"), Caller())
    with pytest.raises(InvalidRequest):
        service.rhythm(GetRhythm(since=world(9), until=world(2)), Caller())


TIMES = st.integers(0, 10**15)


@given(st.lists(TIMES, min_size=1), st.lists(TIMES), st.integers(1, BUCKETS), TIMES)
def test_no_change_is_lost_or_counted_twice_Q12(learnt: list[int], retired: list[int], number: int, at: int) -> None:
    told = rhythm(Changes(sorted(learnt), sorted(retired)), GetRhythm(buckets=number, beside=from_micros(at)))
    assert sum(bucket.learnt for bucket in told.buckets) == len(learnt) and len(told.buckets) <= number
    assert sum(bucket.retired for bucket in told.buckets) == len(retired)
    earlier = [instant for instant in (*learnt, *retired) if instant < at]
    later = [instant for instant in (*learnt, *retired) if instant > at]
    assert told.before == (from_micros(max(earlier)) if earlier else "")
    assert told.after == (from_micros(min(later)) if later else "")
    starts = [micros(bucket.start) for bucket in told.buckets]
    assert starts == sorted(set(starts)) and micros(told.until) > starts[-1]


def test_a_pass_counts_the_changes_of_its_pool_alone_A1(running: Running, service: MapService) -> None:
    running.stores.commit([added(1, valid_from=world(1), pool=ORCHARD), added(2, valid_from=world(3), pool=QUARRY)])

    def permits(record: Record) -> bool:
        return record.pool == ORCHARD

    holder = Caller(permits=permits, knows=lambda pool: pool == ORCHARD)
    told = service.rhythm(GetRhythm(beside=world(2)), holder)
    assert sum(bucket.learnt for bucket in told.buckets) == 1 and (told.before, told.after) == (world(1), "")
    with pytest.raises(NotFound):
        service.rhythm(GetRhythm(pools=("nosuch",)), Caller())
