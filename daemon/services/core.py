"""The shared parts of one daemon, from which each service builds its own objects."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ...protocol.places import Places
from ...protocol.secret_gate import KEY_BYTES, KEY_FILE, SecretGate
from ...stages.secrets.known import KnownSecrets
from ...stages.secrets.scan import redact
from ..config import Config
from ..projections.pool_directory import PoolDirectory
from ..projections.stores import Stores
from ..projections.timeline import Timeline
from ..storage.durable_files import replace
from ..world import World
from .activity import Activity
from .events import CapturesCommitted, Topic
from .jobs import Jobs
from .maintenance_process import MaintenanceProcess
from .scheduler import Scheduler


class Core(NamedTuple):
    """Stores, settings and background work. `config`: the settings in force now; `captures`: captures became durable;
    `resumed`: a pause ended; `known`: the secrets found since the daemon started; `gate`: removes secrets from
    everything that a client sends."""

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
    known: KnownSecrets
    gate: SecretGate


def core_of(stores: Stores, places: Places, config: Callable[[], Config], world: World) -> Core:
    """Build the shared parts over open stores; nothing runs yet."""
    known = KnownSecrets(world.token(KEY_BYTES))
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
        known,
        home_gate(places, world, known),
    )
    core.captures.subscribe(core.activity.captured)
    return core


def home_gate(places: Places, world: World, known: KnownSecrets | None = None) -> SecretGate:
    """Return the gate of a home, with all secret rules. memd creates the key of the gate if the home has none. If the
    disk is full, memd cannot store the key and uses it only until the daemon ends."""
    file, key = places.state / KEY_FILE, b""
    with suppress(OSError):
        key = file.read_bytes()
    if len(key) != KEY_BYTES:
        key = world.token(KEY_BYTES)
        with suppress(OSError):
            places.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(file, key)
    return SecretGate(redact, key, known)
