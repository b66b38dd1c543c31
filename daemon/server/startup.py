"""Start-up and shutdown of the daemon: the shared parts, the ordered list of services, the request server.

Invariants: the home's lock is held before anything is opened and before the socket is bound, because a second bind
would take the socket over; the request server starts last and stops first; what was acknowledged is on the disk.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from logging.handlers import RotatingFileHandler

from ...protocol.errors import MemdError
from ...protocol.places import Places, why_disabled
from ...stages.secrets.scan import prepare
from ..config import Config
from ..projections.pool_directory import PoolDirectory
from ..projections.stores import Stores
from ..projections.timeline import Timeline
from ..services.access.access_service import AccessService
from ..services.access.authorisation import Authorisation
from ..services.access.passes import Passes
from ..services.activity import Activity
from ..services.capture.capture_service import CaptureService
from ..services.capture.capture_writer import CaptureWriter
from ..services.capture.pauses import PauseRegister
from ..services.corrections.corrections_service import CorrectionsService
from ..services.corrections.inbox_service import InboxService
from ..services.corrections.undo import SessionUndo
from ..services.distillation.distillation_service import DistillationService
from ..services.distillation.model_selection import ModelSelection, find
from ..services.distillation.reembedding import EmbeddingModels
from ..services.events import CapturesCommitted, Topic
from ..services.forgetting.forgetting_service import ForgettingService
from ..services.jobs import Jobs
from ..services.lifecycle.conditions import change_condition
from ..services.lifecycle.lifecycle_service import LifecycleService
from ..services.maintenance.maintenance_service import MaintenanceService
from ..services.maintenance_process import MaintenanceProcess
from ..services.pools.folder_pools import FolderPools
from ..services.pools.identity import Identity
from ..services.pools.pool_opening import PoolOpening
from ..services.pools.pools_service import PoolsService
from ..services.profile.profile_service import ProfileService
from ..services.recall.recall_service import RecallService
from ..services.records.records_service import RecordsService
from ..services.scheduler import Scheduler
from ..services.service import Service
from ..services.sessions.sessions_service import SessionsService
from ..services.settings.settings import Settings
from ..services.settings.settings_service import SettingsService
from ..services.status.status_service import StatusService, StatusSources
from ..services.write_thread import WriteThread
from ..world import World
from .dispatch import Dispatcher
from .home import check_home
from .request_server import ReplyQueue, RequestServer
from .supervision import Supervision

SWITCH_INTERVAL_S = 0.0002
"""How long a busy thread keeps the interpreter: short, so that reads are answered beside it (p50 5.3 → 0.5 ms)."""

WAKE_S = 1.0
"""Longest time that a signal waits which the system delivered to another thread than the main one."""

log = logging.getLogger("memd")


class Daemon:
    """A running memd: its stores, its services, and the thread that watches over them."""

    def __init__(self, places: Places, config: Config, world: World) -> None:
        self._places = places
        self._supervision = Supervision(os.environ, world.monotonic)
        self._settings = Settings(places.config, os.environ, config)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        check_home(places)
        models = find(places.data)
        self.stores = Stores(places.data, world, models.searching.info, ballast_bytes=int(config.ballast_mb * 1e6))
        self._stop = threading.Event()
        self._replies = ReplyQueue()
        self._scheduler = Scheduler(world)
        self._services: list[Service] = []
        self._build(places, world, models)
        fd, self._socket = self._supervision.socket or (None, places.socket)
        if fd is None:
            self._socket.unlink(missing_ok=True)
        dispatcher = Dispatcher(self._services, self._authorisation, self._writer)
        self._server = RequestServer(self._socket, dispatcher, self._replies, fd)

    def _build(self, places: Places, world: World, found: ModelSelection) -> None:
        """Build the services, each after those whose ports it takes; they start in this order and stop in reverse."""
        stores, scheduler, settings = self.stores, self._scheduler, self._settings

        def config() -> Config:
            return settings.config

        captures, resumed = Topic[CapturesCommitted](), Topic[None]()
        jobs, process, activity = Jobs(world), MaintenanceProcess(), Activity(world)
        captures.subscribe(activity.captured)
        directory, timeline = PoolDirectory(stores), Timeline(stores.records, stores.sources, stores.journal)
        identity = Identity(stores.aliases, world.monotonic)
        folder_pools = FolderPools(identity, stores, directory)
        passes = Passes(places.state / "pass.key", places.config / "pass_keys", world.now)
        self._authorisation = authorisation = Authorisation(stores, passes, directory, folder_pools.of)
        home = os.environ.get("HOME", "/")
        pauses = PauseRegister(places.state, config().ignored_folders, home, world.now, self._disabled)
        opening = PoolOpening(stores, identity)
        capture_writer = CaptureWriter(stores, opening, pauses, captures, self._replies.together, world.monotonic)
        self._writer = writer = WriteThread(capture_writer, world.monotonic)
        models = EmbeddingModels(stores, writer, places.data, found)

        lifecycle = LifecycleService(
            stores, writer, scheduler, directory, settings.forgetting, lambda: models.sense.encode, captures, world
        )
        profile = ProfileService(
            stores,
            directory,
            activity,
            config,
            world,
            places.state,
            pieces=models.pieces,
            permits=authorisation.permits,
        )
        capture = CaptureService(writer, pauses, places.spool, activity, world, config().spool_s, resumed)
        distillation = DistillationService(
            stores,
            writer,
            models,
            scheduler,
            jobs,
            world,
            config,
            captures,
            resumed,
            given=profile.echoes.to,
            judge=lifecycle.judge,
            paused=lambda: pauses.everywhere,
            take=capture.take,
        )
        activity.heard(distillation.heard_at)
        maintenance = MaintenanceService(
            stores, places, writer, jobs, process, scheduler, activity, config, world, profile.echoes.save
        )
        forgetting = ForgettingService(
            stores, places, writer, jobs, world, maintenance.rebuild.run, profile.injections.forget
        )
        forgetting.finish_at_start()
        undo = SessionUndo(stores, writer, jobs, distillation.wake)
        recall = RecallService(
            stores,
            directory,
            timeline,
            models,
            process,
            activity,
            config,
            world,
            listener=lifecycle,
            count_use=lifecycle.counter.used,
            told=profile.echoes.told,
        )
        sources = StatusSources(models, pauses, lambda: distillation.state, lambda: settings.problem)
        self._services = [
            distillation,
            capture,
            profile,
            recall,
            RecordsService(
                stores,
                directory,
                timeline,
                lambda record: change_condition(record, settings.forgetting()),
                distillation.wake,
            ),
            SessionsService(stores),
            PoolsService(stores, identity, directory, folder_pools, world),
            AccessService(stores, passes, directory, undo, world),
            CorrectionsService(stores, undo, captures, lifecycle.reactivate, distillation.wake),
            InboxService(stores, writer, forgetting.start_forgetting),
            forgetting,
            lifecycle,
            maintenance,
            SettingsService(settings, self._follow_settings),
            StatusService(stores, activity, sources, world.now(), self.stop),
        ]

    def run(self) -> None:
        """Serve until told to stop, then close in order."""
        loading = threading.Thread(target=self.stores.load, name="loading")
        self._writer.start()
        for service in self._services:
            service.start()
        self._scheduler.start()
        self._server.start()
        loading.start()
        threading.Thread(target=prepare, name="rules", daemon=True).start()
        try:
            self._places.socket_file.write_text(str(self._socket), encoding="utf-8")
        except OSError as error:  # a full disk: clients of another environment find the socket once there is room
            log.warning("%s can't be written: %s", self._places.socket_file, error.strerror)
        self._supervision.tell("READY=1")
        log.info("memd is up: %s", self._socket)
        while not self._stop.wait(WAKE_S) and not self._disabled():
            self._supervision.ping(lambda: self._server.is_well() and self._writer.is_alive)
            self._follow_settings()
        self._supervision.tell("STOPPING=1")
        self._close(loading)
        log.info("memd is down")

    def _close(self, loading: threading.Thread) -> None:
        self._scheduler.stop()
        for service in reversed(self._services):
            try:
                service.stop()
            except MemdError as error:  # a full disk must not keep memd from ending
                log.warning("%s did not end cleanly: %s", service.name, error.message)
        self._writer.stop()
        self._server.stop()
        self._places.socket_file.unlink(missing_ok=True)
        if not self._supervision.socket:
            self._socket.unlink(missing_ok=True)
        loading.join()
        for service in self._services:
            service.close()
        self.stores.close()

    def stop(self) -> None:
        """Ask the daemon to end; returns at once."""
        self._stop.set()

    def _disabled(self) -> str:
        return why_disabled(os.environ, self._places)

    def _follow_settings(self) -> None:
        """Have every service follow memd.toml if it changed (U6)."""
        config = self._settings.refresh()
        if config is None:
            return
        log.info("reloaded memd.toml")
        for service in self._services:
            service.reload(config)
        for handler in logging.getLogger().handlers:
            if isinstance(handler, RotatingFileHandler):
                handler.maxBytes = config.log_bytes
