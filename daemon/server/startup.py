"""Start-up and shutdown of the daemon: the shared parts, the ordered list of services, the request server.

Invariants: memd holds the home's lock before it opens a store or binds the socket, because a second bind would take
the socket over; the request server starts last; whatever was acknowledged is on the disk.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from logging.handlers import RotatingFileHandler

from ...protocol.corrections import ListInbox
from ...protocol.errors import MemdError
from ...protocol.instant import from_micros
from ...protocol.places import Places, why_disabled
from ...stages.secrets.scan import prepare
from ..config import Config
from ..projections.stores import Stores
from ..services.access.access_service import AccessService
from ..services.access.authorisation import Authorisation
from ..services.access.passes import Passes
from ..services.access.roles import Roles
from ..services.agents.agents_service import AgentsService
from ..services.capture.capture_service import CaptureService
from ..services.core import core_of
from ..services.corrections.annotations import Annotations
from ..services.corrections.corrections_service import CorrectionsService
from ..services.corrections.inbox_service import InboxService
from ..services.courses.courses_service import CoursesService
from ..services.curation.curation_service import CurationService
from ..services.distillation.distillation_service import DistillationService
from ..services.distillation.job_worker import JobWorker
from ..services.distillation.model_selection import find
from ..services.distillation.reembedding import EmbeddingModels
from ..services.forgetting.forgetting_service import ForgettingService
from ..services.governance.governance_service import GovernanceService
from ..services.governance.pin_contradictions import contradicted
from ..services.ingestion.ingestion_service import IngestionService
from ..services.lifecycle.lifecycle_service import LifecycleService
from ..services.lifecycle.review import is_quiet
from ..services.links.document_links import at_head
from ..services.links.evidence_links import linked
from ..services.links.links_service import LinksService
from ..services.maintenance.maintenance_service import MaintenanceService
from ..services.map.map_service import MapService
from ..services.policy.policy_service import PolicyService
from ..services.pools.identity import WRITE_S, Identity
from ..services.pools.pools_service import FolderPools, PoolOpening, PoolsService
from ..services.profile.echo_ledger import EchoLedger
from ..services.profile.profile_service import ProfileService
from ..services.recall.recall_service import RecallService
from ..services.records.records_service import RecordsService
from ..services.reflection.reflection_service import ReflectionService
from ..services.remote.remote_service import RemoteService
from ..services.report.report_service import ReportService, ReportSources
from ..services.service import Service
from ..services.sessions.handover import missing_in
from ..services.sessions.last_time import LastTime
from ..services.sessions.sessions_service import SessionsService
from ..services.sessions.state_service import StateService
from ..services.sessions.week_reader import WeekReader
from ..services.settings.settings_service import Settings, SettingsService
from ..services.sharing.gate import ShareGate
from ..services.sharing.sharing_service import SharingService
from ..services.skills.skills_service import SkillsService
from ..services.status.status_service import StatusService, StatusSources
from ..world import World
from .dispatch import Dispatcher
from .home import check_home
from .request_server import ReplyQueue, RequestServer
from .supervision import Supervision

SWITCH_INTERVAL_S = 0.0002
"""Time that a busy thread keeps the interpreter: short, for reads beside it (p50 5.3 → 0.5 ms)."""

WAKE_S = 1.0
"""Longest delay of a signal that the system delivers to another thread than the main one."""

MOST_PROPOSALS = 1000
"""Open proposals that a report reads, at most."""

log = logging.getLogger("memd")


def _load_rules() -> None:
    """Compile the rules that captures and answers are checked with, so that the first one does not wait for it."""
    prepare()
    from ...stages import reports, scan, speakers

    scan.prepare()
    log.debug("loaded %s, %s", reports.__name__, speakers.__name__)


class Daemon:
    """A running memd: its stores, its services, and the thread that watches over them."""

    def __init__(self, places: Places, config: Config, world: World) -> None:
        self._places = places
        self._supervision = Supervision(os.environ, world.monotonic)
        self._settings = settings = Settings(places.config, os.environ, config)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        check_home(places)
        selection = find(places.data)
        self._stop = threading.Event()
        self._has_logged_removal = False
        self._replies = ReplyQueue()
        ballast_bytes = int(config.ballast_mb * 1e6)
        self.stores = stores = Stores(places.data, world, selection.searching.info, ballast_bytes=ballast_bytes)
        core = core_of(stores, places, lambda: settings.config, world)
        self._scheduler = core.scheduler

        # each service after those whose ports it takes
        identity = Identity(stores.aliases, world.monotonic, core.gate.identifier)
        folder_pools = FolderPools(identity, stores, core.directory)
        passes = Passes(places.state / "pass.key", places.config / "pass_keys", world.now)
        opening = PoolOpening(stores, identity, core.directory)
        policy = PolicyService(
            core,
            lambda: capture.writer,
            pool_of=lambda cwd: folder_pools.of(cwd, None)[-1],
            root_of=lambda cwd: identity.probe(cwd, WRITE_S).folder,
        )
        roles = Roles(stores, policy, core.directory.named, folder_pools.of)

        def check_leases() -> None:
            sharing.leases.check()

        self._authorisation = authorisation = Authorisation(
            stores, passes, core.directory, folder_pools.of, roles.check, check_leases
        )
        capture = CaptureService(core, opening, self._replies.together, self._disabled, roles.check)
        self._writer = writer = capture.writer
        models = EmbeddingModels(stores, writer, places.data, selection)
        lifecycle = LifecycleService(core, writer, encode=lambda: models.sense.encode, rules_of=policy.rules)
        echoes = EchoLedger(places.state, stores.records, stores.archive, world.now, stores.changed.set)
        recall = RecallService(
            core,
            models,
            listener=lifecycle,
            count_use=lifecycle.counter.commit_use,
            teach=Annotations(stores, world).teach,
            log_answer=echoes.note_answer,
        )
        last_time = LastTime(stores, world.now)
        core.captures.subscribe(lambda event: last_time.captured(event.documents))
        profile = ProfileService(
            core,
            pieces=models.pieces,
            permits=authorisation.permits,
            echoes=echoes,
            search=recall,
            listener=lifecycle,
            last_sessions=last_time,
            policy=policy,
        )
        policy.changed.subscribe(lambda _: profile.render_again())
        distillation = DistillationService(
            core,
            writer,
            models,
            given=echoes.to,
            judge=lifecycle.judge,
            paused=lambda: capture.pauses.everywhere,
            held=lambda: ingestion.is_reading,
            take=capture.take,
        )
        maintenance = MaintenanceService(core, writer, save=echoes.save)
        forgetting = ForgettingService(
            core,
            writer,
            rebuild=maintenance.rebuild.run,
            forget_injected=profile.injections.forget,
            forget_given=echoes.forget,
            forget_paused=capture.pauses.forget,
        )
        forgetting.finish_at_start()
        corrections = CorrectionsService(
            core, writer, reactivate=lifecycle.reactivate, distil=distillation.wake, link=linked
        )
        state = StateService(core, opening.pool)
        reflection = ReflectionService(
            core,
            writer,
            state.hand_over,
            missing=missing_in,
            is_left_out=lambda origin: bool(capture.pauses.skip(origin, from_micros(world.now()))),
        )
        remote = RemoteService(
            core, writer, take=reflection.take, distil=distillation.wake, paused=lambda: capture.pauses.everywhere
        )
        ingestion = IngestionService(
            core,
            writer,
            finder=lambda: JobWorker(settings.config.worker_threads),
            distil=distillation.wake,
        )
        governance = GovernanceService(
            core,
            writer,
            why_not_exported=ShareGate(stores).why_not_exported,
            contradictions=lambda records: contradicted(stores, records, models.sense.encode),
            thresholds=policy.thresholds,
        )
        sharing = SharingService(core, writer, forget=forgetting.forget_lines)
        skills = SkillsService(core, writer, is_quiet, encode=lambda: models.sense.encode)
        courses = CoursesService(core, writer, recall, sleep=lifecycle.rest_after_test, distil=distillation.wake)
        inbox = InboxService(
            stores, writer, forgetting.start_forgetting, sharing.retractions, governance.decisions, skills.line
        )
        links = LinksService(stores, core.directory, world)
        report_sources = ReportSources(
            inbox=lambda: inbox.list(ListInbox(limit=MOST_PROPOSALS)),
            work=WeekReader(stores, state.reader, stores.aliases.home).work,
            links=links.stale,
            fading=lifecycle.fading_within,
        )
        sources = StatusSources(
            models,
            capture.pauses,
            lambda: distillation.state,
            lambda: settings.problem,
            remote.summary,
            lambda: policy.problems,
        )

        self._services: Sequence[Service] = (
            distillation,
            capture,
            profile,
            recall,
            RecordsService(
                stores,
                core.directory,
                core.timeline,
                lifecycle.change_condition,
                ShareGate(stores).why_not_exported,
                distillation.wake,
            ),
            MapService(stores, core.directory, core.timeline, core.scheduler),
            SessionsService(stores),
            state,
            reflection,
            remote,
            links,
            sharing,
            governance,
            CurationService(
                core,
                writer,
                given=echoes.to,
                at_head=at_head,
                against=lifecycle.review.contradictions,
                is_quiet=is_quiet,
                reader=lambda: closing(JobWorker(settings.config.worker_threads)),
                thresholds=policy.thresholds,
            ),
            policy,
            ingestion,
            PoolsService(stores, identity, core.directory, folder_pools, world, distillation.wake),
            AccessService(stores, passes, core.directory, corrections.sessions, world),
            corrections,
            inbox,
            ReportService(core, report_sources),
            skills,
            courses,
            AgentsService(core, writer, encode=lambda: models.sense.encode),
            forgetting,
            lifecycle,
            maintenance,
            SettingsService(settings, self._follow_settings),
            StatusService(stores, core.activity, sources, world.now(), self.stop),
        )
        """Services start in this order and stop in reverse."""

        fd, self._socket = self._supervision.socket or (None, places.socket)
        if fd is None:
            self._socket.unlink(missing_ok=True)
        dispatcher = Dispatcher(self._services, authorisation, writer, core.gate)
        self._server = RequestServer(self._socket, dispatcher, self._replies, core.gate, world, fd)
        stores.on_commit = core.activity.on_event = self._server.long_polls.notify

    def run(self) -> None:
        """Serve until told to stop, then close in order."""
        loading = threading.Thread(target=self.stores.load, name="loading")
        self._writer.start()
        for service in self._services:
            service.start()
        self._scheduler.start()
        self._server.start()
        loading.start()
        threading.Thread(target=_load_rules, name="rules", daemon=True).start()
        try:
            self._places.socket_file.write_text(str(self._socket), encoding="utf-8")
        except OSError as error:  # a full disk: clients of another environment find the socket once there is space
            log.warning("%s can't be written: %s", self._places.socket_file, error.strerror)
        self._supervision.tell("READY=1")
        log.info("memd is up")  # without a value, so that it need not wait for the rules
        while not self._stop.wait(WAKE_S) and not self._disabled() and not self._is_out_of_reach():
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
            except Exception:  # nor may a bug in one service
                log.exception("%s did not end cleanly", service.name)
        self._writer.stop()
        self._server.stop()
        if self._supervision.socket:
            self._places.socket_file.unlink(missing_ok=True)
        elif self._server.is_bound:  # else another daemon, of a new home, may have bound it
            self._places.socket_file.unlink(missing_ok=True)
            self._socket.unlink(missing_ok=True)
        loading.join()
        for service in self._services:
            try:
                service.close()
            except OSError as error:  # its folder was removed
                log.warning("%s did not close cleanly: %s", service.name, error)
        self.stores.close()

    def stop(self) -> None:
        """Ask the daemon to end; return at once."""
        self._stop.set()

    def _is_out_of_reach(self) -> bool:
        """Whether the data folder and the socket were removed, so that memd can do nothing for anyone."""
        if self.stores.are_in_place:
            return False
        if not self._has_logged_removal:
            self._has_logged_removal = True
            log.error("someone removed or replaced files of %s: memd rejects writes", self._places.data)
        return not self._server.is_bound

    def _disabled(self) -> str:
        return why_disabled(os.environ, self._places)

    def _follow_settings(self) -> None:
        """Reload every service if memd.toml changed."""
        config = self._settings.refresh()
        if config is None:
            return
        log.info("reloaded memd.toml")
        for service in self._services:
            service.reload(config)
        for handler in logging.getLogger().handlers:
            if isinstance(handler, RotatingFileHandler):
                handler.maxBytes = config.log_bytes
