"""Measures a sleep over a home that `fill-home` filled: commit, search for weak records, archiving by slice (T6)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from ..daemon.forgetting_rules import Rules
from ..daemon.projections.stores import Stores
from ..daemon.projections.strength import DAY
from ..daemon.services.lifecycle.sleep import SLICE, Sleep
from ..daemon.services.write_thread import NoCaptures, WriteThread
from ..daemon.world import World
from ..models import registry
from ..protocol.places import Places
from ..protocol.record import LIVE

DAYS = 60
"""Active days that are slept through: what nobody used is then below the floor."""


def sleep_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`measure-sleep`: the median and the slowest commit of a sleep, the look at every pool, the slices of a sweep."""
    shift = 0
    later = World(now=lambda: world.now() + shift, monotonic=world.monotonic, token=world.token)
    stores = Stores(places.data, later, registry.info())
    writer = WriteThread(NoCaptures(), world.monotonic)
    sleep = Sleep(stores, writer, Rules, later.now)
    pools = sorted(stores.records.tally())
    records = _live(stores)
    commits: list[float] = []
    for _ in range(DAYS):
        shift += DAY
        commits += [_ms(lambda pool=pool: sleep.fall_asleep(pool)) for pool in pools]
    look_ms = sum(_ms(lambda pool=pool: sleep.weak(pool)) for pool in pools)
    slices: list[float] = []
    for pool in pools:
        ids = sleep.weak(pool).faded
        for start in range(0, len(ids), SLICE):
            part = ids[start : start + SLICE]
            slices.append(_ms(lambda part=part, pool=pool: sleep.archive(pool, part, "faded")))
    archived = records - _live(stores)
    stores.close()
    commits.sort()
    slices.sort()
    return {
        "records": records,
        "commit_ms": commits[len(commits) // 2],
        "commit_p99_ms": commits[len(commits) * 99 // 100],
        "look_ms": look_ms,
        "slices": len(slices),
        "slice_ms": slices[len(slices) // 2] if slices else 0.0,
        "slowest_slice_ms": slices[-1] if slices else 0.0,
        "archived": archived,
    }


def _live(stores: Stores) -> int:
    return sum(
        count for counts in stores.records.tally().values() for status, count in counts.items() if status in LIVE
    )


def _ms(work: Callable[[], object]) -> float:
    """Milliseconds of a core, the kernel's part of writing included: other programs' work does not count."""
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1000
