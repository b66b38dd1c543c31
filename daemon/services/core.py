"""The shared parts of one daemon, from which each service builds its own objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...protocol.places import Places
from ..config import Config
from ..projections.pool_directory import PoolDirectory
from ..projections.stores import Stores
from ..projections.timeline import Timeline
from ..world import World
from .activity import Activity
from .events import CapturesCommitted, Topic
from .jobs import Jobs
from .maintenance_process import MaintenanceProcess
from .scheduler import Scheduler


class Core(NamedTuple):
    """Stores, settings and background work. `config`: the settings in force now; `captures`: captures became durable;
    `resumed`: a pause ended."""

    stores: Stores
    places: Places
    config: Callable[[], Config]
    world: World
    scheduler: Scheduler
    activity: Activity
    jobs: Jobs
    process: MaintenanceProcess
    directory: PoolDirectory
    timeline: Timeline
    captures: Topic[CapturesCommitted]
    resumed: Topic[None]


def core_of(stores: Stores, places: Places, config: Callable[[], Config], world: World) -> Core:
    """Build the shared parts over open stores; nothing runs yet."""
    core = Core(
        stores,
        places,
        config,
        world,
        Scheduler(world),
        Activity(world),
        Jobs(world),
        MaintenanceProcess(),
        PoolDirectory(stores),
        Timeline(stores.records, stores.sources, stores.journal),
        Topic[CapturesCommitted](),
        Topic[None](),
    )
    core.captures.subscribe(core.activity.captured)
    return core
