"""The daemon, put together in order: home, lock, stores, committer, distiller, door; and taken apart in reverse.

Comes in: places, settings, a world. Goes out: a running memd. Invariants: the lock is held before anything is opened
and before the socket is bound (a second bind would steal it); the door opens last and closes first; what was
acknowledged is on the disk whatever happens here.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
import threading
from collections.abc import Mapping

from ...protocol.agent import OpenAgent
from ...protocol.disabled import why_disabled
from ...protocol.errors import InvalidRequest, MemdError
from ...protocol.event import SessionEnded
from ...protocol.instant import from_micros
from ...protocol.lifetime import AnyLifetime
from ...protocol.places import Places
from ...protocol.profile import ListInjected
from ...protocol.reply import AnyData, Done, JobState
from ...protocol.request import (
    AnyRequest,
    Backup,
    Backups,
    BindScope,
    Capture,
    Compact,
    DiskUsage,
    Distil,
    Edit,
    Expire,
    Forget,
    GetJob,
    GetStatus,
    ImportRecords,
    Journal,
    LeaveProject,
    ListModels,
    MoveRecords,
    Pools,
    PreviewForget,
    Rebuild,
    Redo,
    Remember,
    ScanSecrets,
    Stop,
    Undo,
    UseModel,
    Verify,
    WhyScope,
)
from ...protocol.session import GetSession, ListSessions
from ...protocol.settings import ListSettings, PutSetting, SettingList
from ...stages.secrets.scan import prepare
from ..config import Config
from ..projections.stores import Stores
from ..services.access.access import ReadScope
from ..services.access.granting import AnyGranting, PassGranting
from ..services.access.passes import Passes
from ..services.admission import bug
from ..services.capture.capture_status import CaptureStatus
from ..services.capture.committer import Committer
from ..services.capture.pauses import PauseRegister
from ..services.capture.spool_reader import SpoolReader
from ..services.corrections.inbox import AnyRunning, InboxService
from ..services.corrections.undo import SessionUndo
from ..services.distillation.distiller import DistillationLoop
from ..services.distillation.model_selection import find
from ..services.distillation.reembedding import EmbeddingModels
from ..services.distillation.worker_process import WorkerProcess
from ..services.forgetting.compaction import start_compaction
from ..services.forgetting.forgetting import Forgetting
from ..services.jobs import Jobs
from ..services.lifecycle.lifetime import Lifetime
from ..services.maintenance.disk_usage import disk_use
from ..services.maintenance.index_commits import IndexCommits
from ..services.maintenance.rebuild import ProjectionRebuild, names_of, start_verify
from ..services.maintenance.upkeep import Upkeep
from ..services.maintenance.vector_graphs import VectorGraphBuilder
from ..services.maintenance_process import MaintenanceProcess
from ..services.pools.identity import Identity
from ..services.pools.scoping import PoolBinding
from ..services.profile.echo_ledger import EchoLedger
from ..services.profile.injection_log import InjectionLog
from ..services.recall.feedback import AnyJudging, FeedbackLearner
from ..services.recall.warm import SearchIndexes, WarmRecall
from ..services.records.answers import Answers, AnyRead
from ..services.records.importing import import_records
from ..services.scheduler import UPKEEP_JOB, Triggers
from ..services.sessions.sessions import SessionReads
from ..services.settings.settings import Settings
from ..world import World
from .home import check_home
from .request_server import Arrived, RequestServer, Respond
from .supervision import Supervision

SWITCH_INTERVAL_S = 0.0002
"""How long a busy thread keeps the interpreter: short, so that the door answers beside it (p50 5.3 → 0.5 ms)."""

WAKE_S = 1.0
"""At most this long a signal waits that the system handed to another thread than the one that handles it."""

log = logging.getLogger("memd")


class Daemon:
    """A running memd."""

    def __init__(self, places: Places, config: Config, world: World) -> None:
        self._supervision = Supervision(os.environ, world.monotonic)
        self._settings = Settings(places.config, os.environ, config)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        check_home(places)
        self._places, self._world = places, world
        found = find(places.data)
        self.stores = Stores(places.data, world, found.searching.info, ballast_bytes=int(config.ballast_mb * 1e6))
        self._stop = threading.Event()
        self._jobs = Jobs(world)
        self._maintenance = MaintenanceProcess()
        identity = self._identity = Identity(self.stores.aliases, world.monotonic)
        home = os.environ.get("HOME", "/")
        self._pauses = PauseRegister(places.state, config.ignored_folders, home, world.now, self._disabled)
        self._committer = Committer(self.stores, identity, self._captured, world.monotonic, self._pauses)
        self._worker = WorkerProcess(config.worker_threads)
        self._models = EmbeddingModels(self.stores, self._committer, places.data, found)
        changed = self.stores.changed.set
        self._givings = EchoLedger(places.state, self.stores.records, self.stores.archive, world.now, changed)
        self._distiller = DistillationLoop(
            self.stores,
            self._givings,
            self._committer,
            self._worker,
            self._models,
            config,
            lambda: self._pauses.everywhere,
        )
        sought = SearchIndexes(self.stores.records, self.stores.keywords, self.stores.lines, self.stores.counters)
        warm = WarmRecall(sought, lambda: self._models.sense, config.relevance_floor, world)
        self._learning = FeedbackLearner(self.stores, self._maintenance, warm)
        self._graphing = VectorGraphBuilder(self.stores, self._committer, self._maintenance)
        passes = self._passes = Passes(places.state / "pass.key", places.config / "pass_keys", world.now)
        access = ReadScope(identity, self.stores, passes)
        self._scoping = PoolBinding(self.stores, identity, access, world)
        self._deliveries = InjectionLog(places.state / "injected", world.now)
        self._answers = Answers(self.stores, access, warm, world, self._models, self._deliveries, config, self._givings)
        self._answers.worker_state = lambda: self._distiller.worker_state
        self._answers.pauses = self._pauses
        self._answers.trouble = lambda: self._settings.problem
        self._outcomes = CaptureStatus(self._answers.note)
        self._spooled = SpoolReader(places.spool, self._take, self._answers.note, world, config.spool_s)
        self._schedule(config, access)
        self._sessions = SessionReads(self.stores)
        self._rebuilding = ProjectionRebuild(self.stores, self._committer, self._maintenance)
        self._forgetting = Forgetting(self.stores, places, self._committer, self._jobs, world, self._rebuilding.run)
        self._forgetting.told = self._deliveries.forget
        self._forgetting.finish_at_start()
        self._running = InboxService(
            self.stores, self._committer, self._distiller, self._jobs, self._pauses, self._forgetting
        )
        self._undoing = SessionUndo(self.stores, self._committer, self._jobs, self._distiller.wake)
        self._granting = PassGranting(self.stores, access, passes, self._undoing, world)
        self._loading = threading.Thread(target=self.stores.load, name="loading")
        self._indexing = IndexCommits(self.stores, self._givings, self._stop, config.keyword_commit_s)
        fd, self._socket = self._supervision.socket or (None, places.socket)
        if fd is None:
            self._socket.unlink(missing_ok=True)
        self._door = RequestServer(self._socket, self._answer, self._take, fd)
        self._committer.together = self._door.together

    def _schedule(self, config: Config, access: ReadScope) -> None:
        """What is done now and then, and the sessions that a restart goes on to watch."""
        self._triggers = Triggers(
            self._world,
            idle_s=config.idle_s,
            session_idle_min=config.session_idle_min,
            distil=self._distiller.wake,
            end_session=self._end_session,
        )
        self._upkeep = Upkeep(self.stores, self._committer, self._jobs, config, self._world, self._answers.put)
        rules = self._settings.forgetting
        self._lifetime = Lifetime(self.stores, self._committer, access, self._triggers, rules, self._world)
        self._lifetime.usage.encode = lambda: self._models.sense.encode
        self._answers.retrieved, self._answers.reactivated = self._lifetime.recalled, self._lifetime.reactivated
        self._distiller.judging = self._lifetime.judging
        self._learning.used = self._lifetime.counting.used
        self._triggers.every(config.upkeep_s, self._upkeep.tick, UPKEEP_JOB)
        self._triggers.every(config.upkeep_s, self._graphing.tick, "graphs")
        open_sessions = self.stores.unfinished.documents()
        heard = {each: at for each in open_sessions if (at := self.stores.archive.heard_at(each))}
        self._triggers.resume(heard)
        self._answers.heard(heard)

    def run(self) -> None:
        """Serve until told to stop, then close in order."""
        self._committer.start()
        self._distiller.start()
        self._triggers.start()
        self._indexing.start()
        self._spooled.start()
        self._door.start()
        self._answers.start()
        self._loading.start()
        threading.Thread(target=prepare, name="rules", daemon=True).start()
        try:
            self._places.socket_file.write_text(str(self._socket), encoding="utf-8")
        except OSError as error:  # a full disk: whoever has another environment must wait for room
            log.warning("%s can't be written: %s", self._places.socket_file, error.strerror)
        self._supervision.tell("READY=1")
        if self.stores.sources.pools():
            self._identity.prepare()
        self._passes.prepare()
        log.info("memd is up: %s", self._socket)
        while not self._stop.wait(WAKE_S) and not self._disabled():
            self._supervision.ping(lambda: self._door.is_well() and self._committer.is_alive)
            if config := self._settings.refresh():
                self._follow(config)
        self._supervision.tell("STOPPING=1")
        self._triggers.stop()
        self._spooled.stop()
        self._maintenance.end()
        for part in (self._learning, self._graphing, self._jobs, self._distiller):
            part.stop()
        try:
            self._lifetime.stop()
        except MemdError as error:  # a full disk must not keep memd from ending
            log.warning("what recall counted last is lost: %s", error.message)
        self._committer.stop()
        self._door.stop()
        self._places.socket_file.unlink(missing_ok=True)
        if not self._supervision.socket:
            self._socket.unlink(missing_ok=True)
        self._loading.join()
        self._givings.save()
        self.stores.close()
        log.info("memd is down")

    def _disabled(self) -> str:
        return why_disabled(os.environ, self._places)

    def stop(self) -> None:
        """Ask the daemon to end; returns at once."""
        self._stop.set()

    def _follow(self, config: Config) -> None:
        """Go on with other settings (U6); those of `AT_NEXT_START` wait."""
        log.info("memd.toml changed, and is followed")
        self._triggers.follow(config)
        self._distiller.follow(config)
        self._worker.follow(config.worker_threads)
        self._answers.follow(config)
        self._upkeep.follow(config)
        self._pauses.follow(config.ignored_folders)
        self._indexing.every_s = config.keyword_commit_s
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.handlers.RotatingFileHandler):
                handler.maxBytes = config.log_bytes

    def _captured(self, documents: Mapping[str, bool], urgent: bool) -> None:
        self._answers.note("captured", next(iter(documents)))
        self._answers.heard(dict.fromkeys((document.partition(":")[0] for document in documents), self._world.now()))
        ended = [document for document, goes_on in documents.items() if not goes_on]
        self._triggers.ended(ended)
        self._lifetime.heard()
        self._lifetime.ended([document for document in ended if self._committer.has_ended(document)])
        self._triggers.captured([document for document, goes_on in documents.items() if goes_on], urgent)

    def _end_session(self, document: str) -> None:
        session = self.stores.sources.session(document)
        if session is None or session.closed_at:
            return
        at = from_micros(self._world.now())
        event = SessionEnded(turn=f"idle:{at}", at=at, reason="idle")
        self._committer.take([(Capture(origin=session.opened.origin, events=(event,)), lambda _: None)])

    def _take(self, arrived: Arrived) -> None:
        arrived = self._answers.allowed(arrived)
        if takings := self._outcomes.watched(arrived):
            self._committer.take(takings)
        for request, respond in arrived:
            if not isinstance(request, Capture | Remember):
                self._run(request, respond)

    def _run(self, request: AnyRequest, respond: Respond) -> None:
        future = self._committer.run(lambda: self._write(request))

        def done() -> None:
            error = future.exception()
            respond(future.result() if error is None else error if isinstance(error, MemdError) else bug(error))

        future.add_done_callback(lambda _: done())

    def _check(self, request: Verify | Rebuild | ScanSecrets) -> JobState:
        match request:
            case Verify():
                return start_verify(self._jobs, self._maintenance, self.stores)
            case Rebuild():
                return self._rebuild(request.name)
            case ScanSecrets():
                return self._forgetting.clean(request.dry_run)

    def _set(self, request: ListSettings | PutSetting) -> SettingList:
        if isinstance(request, PutSetting):
            self._settings.put(request.name, request.value)
        if config := self._settings.refresh():
            self._follow(config)
        return self._settings.list()

    def _rebuild(self, name: str) -> JobState:
        names = names_of(name)
        return self._jobs.start("rebuild", lambda progress: self._rebuilding.run(names, progress))

    def _elsewhere(self, request: AnyRequest) -> AnyData | None:
        """What one of the rooms that both read and write answers; None where none of them is asked."""
        if isinstance(request, AnyRunning):
            return self._running.answer(request)
        if isinstance(request, AnyLifetime):
            return self._lifetime.answer(request)
        if isinstance(request, AnyGranting):
            return self._granting.answer(request)
        return self._learning.answer(request) if isinstance(request, AnyJudging) else None

    def _write(self, request: AnyRequest) -> AnyData:
        if (done := self._elsewhere(request)) is not None:
            return done
        match request:
            case Edit():
                return self._committer.edit(request)
            case BindScope() | MoveRecords() | LeaveProject() | OpenAgent():
                return self._scoping.answer(request)
            case ImportRecords():
                imported = import_records(self.stores, request)
                self._distiller.wake()  # it gives vectors to what has none
                return imported
            case _:
                raise InvalidRequest(f"{type(request).__name__} does not write")

    def _answer(self, request: AnyRequest) -> AnyData:
        answers = self._answers
        answers.check(request)
        if (done := self._elsewhere(request)) is not None:
            return done
        if isinstance(request, AnyRead):
            return answers.read(request)
        if isinstance(request, ListSessions | GetSession):
            return self._sessions.answer(request)
        if isinstance(request, ListSettings | PutSetting):
            return self._set(request)
        match request:
            case ListInjected():
                return answers.injected(request)
            case Journal():
                return answers.journal(request)
            case Pools():
                return answers.pools()
            case WhyScope():
                return self._scoping.why(request)
            case GetStatus():
                return answers.status()
            case GetJob():
                return self._jobs.get(request.id)
            case Verify() | Rebuild() | ScanSecrets():
                return self._check(request)
            case Backup():
                return self._upkeep.backup(request.to, request.keep)
            case Backups():
                return self._upkeep.list_backups(request.folder)
            case ListModels():
                return self._models.list()
            case UseModel():
                return self._models.use(request.folder, self._jobs, self._distiller.wake)
            case Expire():
                return self._upkeep.expire(request.dry_run)
            case DiskUsage():
                return disk_use(self.stores, self._places)
            case Distil() | Stop():
                self._distiller.wake() if isinstance(request, Distil) else self._stop.set()
                return Done(pending=answers.pending())
            case PreviewForget() | Forget():
                forgetting = self._forgetting
                return forgetting.start(request) if isinstance(request, Forget) else forgetting.preview(request)
            case Undo() | Redo():
                undoing = self._undoing
                return undoing.undo(request.names) if isinstance(request, Undo) else undoing.redo(request.names)
            case Compact():
                return start_compaction(self.stores, self._committer, self._jobs, self._rebuilding.run)
            case _:
                raise InvalidRequest("that request goes through the committer")
