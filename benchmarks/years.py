"""Fills an empty home with ten years of records, sleeps and counts, to measure replay (U3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..daemon.forgetting_rules import Rules
from ..daemon.projections.stores import Stores
from ..daemon.world import World
from ..models import registry
from ..protocol.errors import InvalidRequest
from ..protocol.fading import Count, Counted, Slept
from ..protocol.operation import AnyOperation
from ..protocol.places import Places
from .inside import fill_command

COUNTS_A_FLUSH = 25
"""Records that one flush counts: some recalls of a session, merged."""

USES_OF = 10
"""One count in so many is a use."""


def years_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`fill-years RECORDS SLEEPS COUNTS`: so many records, then sleeps and counts over them, into an empty home."""
    if len(arguments) != 3 or not all(argument.isdigit() for argument in arguments):
        raise InvalidRequest("how much?", hint="python -m memd.daemon fill-years 100000 3650 1000000")
    _, sleeps, counts = map(int, arguments)
    fill_command(places, world, arguments[:1])
    stores = Stores(places.data, world, registry.info())
    pools: dict[str, list[str]] = {}
    for record in stores.records.everything():
        pools.setdefault(record.pool, []).append(record.id)
    for group in _groups(_operations(pools, sleeps, counts), 100):
        stores.commit(group)
    report = {"operations": stores.journal.last, "sleeps": sleeps, "counts": counts}
    stores.close()
    return report


def _operations(pools: Mapping[str, Sequence[str]], sleeps: int, counts: int) -> Iterator[AnyOperation]:
    names = sorted(pools)
    a_sleep, number = max(1, counts // max(1, sleeps)), 0
    retention = Rules().retention(1.0)
    for sleep in range(sleeps):
        pool = names[sleep % len(names)]
        ids = pools[pool]
        for start in range(0, a_sleep, COUNTS_A_FLUSH):
            chosen = [ids[(number := number + 7919) % len(ids)] for _ in range(min(COUNTS_A_FLUSH, a_sleep - start))]
            rows = {id: Count(2, int(place % USES_OF == 0)) for place, id in enumerate(chosen)}
            yield Counted(pool=pool, counts=rows, perspective="cost" if number % 3 else "")
        yield Slept(pool=pool, tasks_per_day=1.0, days=1.0, retention=retention)


def _groups(operations: Iterator[AnyOperation], size: int) -> Iterator[list[AnyOperation]]:
    group: list[AnyOperation] = []
    for operation in operations:
        group.append(operation)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
