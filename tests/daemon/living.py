"""Stores with a write thread under a clock that a test sets, and operations of time in short."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memd.daemon.projections.stores import Stores
from memd.daemon.services.core import Core
from memd.daemon.services.forgetting.forgetting_service import ForgettingService
from memd.daemon.services.maintenance.maintenance_service import MaintenanceService
from memd.daemon.services.write_thread import NoCaptures, WriteThread
from memd.daemon.world import World, real_world
from memd.models import registry
from memd.protocol.fading import Count, Counted, Slept
from memd.protocol.operation import Added, Decision
from memd.protocol.record import Provenance, Record, Signal, Span

AT = "2026-01-01T00:00:00Z"
WHY = Decision(action="add", reason="a test")
NOW = 1_800_000_000_000_000
DAILY = (0.95, 0.97, 0.98, 0.99, 0.995, 0.998)


def record(number: int, **more: Any) -> Record:
    spans = (Span("h:s", f"t{number}", 0, 1), *more.pop("also", ()))
    provenance = Provenance(author="user", source="h:s", trust="user", spans=spans, quote="q", said_at=AT)
    text = more.pop("content", f"The fact number {number} is a long one.")
    description = more.pop("description", text)
    kept = {"pool": "personal", "kind": "note", **more}
    return Record(id=f"id{number}", content=text, description=description, provenance=provenance, **kept)


def added(number: int, **more: Any) -> Added:
    return Added(record=record(number, **more), decision=WHY)


def slept(pool: str = "personal") -> Slept:
    return Slept(pool=pool, tasks_per_day=1.0, days=1.0, retention=DAILY)


def used(number: int, uses: int = 1, perspective: str = "", **more: Any) -> Counted:
    return Counted(pool="personal", counts={f"id{number}": Count(uses=uses, **more)}, perspective=perspective)


def forgetting_of(core: Core, writer: WriteThread) -> ForgettingService:
    """The service that forgets, in a home where no agent was given a text."""
    return ForgettingService(
        core,
        writer,
        rebuild=MaintenanceService(core, writer, save=lambda: None).rebuild.run,
        forget_injected=lambda texts: None,
        forget_given=lambda holds: None,
        forget_paused=lambda holds: None,
    )


class Running:
    """Stores with a write thread, under a clock that a test sets."""

    def __init__(self, folder: Path, now: int = NOW, token: Callable[[int], bytes] | None = None) -> None:
        self.now = now
        real = real_world()
        self.world = World(now=lambda: self.now, monotonic=lambda: self.now / 1e6, token=token or real.token)
        self.stores = Stores(folder, self.world, registry.info())
        self.writer = WriteThread(NoCaptures(), real.monotonic)
        self.writer.start()

    def close(self) -> None:
        self.writer.stop()
        self.stores.close()

    def signal(self, number: int = 0) -> Signal:
        """The signal of a record as it is now."""
        found = self.stores.records.get(f"id{number}")
        assert found is not None
        return self.stores.counters.signals([found])[found.id]

    def status(self, number: int = 0) -> str:
        """The status of a record."""
        found = self.stores.records.get(f"id{number}")
        return found.status if found else ""
