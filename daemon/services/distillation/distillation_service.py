"""The distillation service: turns captures into records in the background, retries failed captures, changes models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet

from ....protocol.dead_letters import DeadLetter, DeadLetters, ListLetters, Retry
from ....protocol.errors import InvalidRequest, NotFound, Stopping
from ....protocol.event import Captured, SessionEnded
from ....protocol.instant import from_micros
from ....protocol.record import Record
from ....protocol.reply import Done, JobState
from ....protocol.request import Capture, Distil, ListModels, UseModel
from ....stages.batch import Given
from ...config import Config
from ...world import World
from ..core import Core
from ..events import CapturesCommitted
from ..jobs import Progress, Report
from ..scheduler import Scheduler
from ..service import CaptureRequest, Handlers, Respond, Service, owner
from ..write_thread import Writer
from .distiller import DistillationLoop
from .reembedding import EmbeddingModels
from .worker_process import WorkerProcess

POLL_S = 0.1


class DistillationTriggers:
    """Two jobs: one a while after the last capture, one at least every minute over the open sessions."""

    def __init__(
        self,
        scheduler: Scheduler,
        world: World,
        config: Callable[[], Config],
        distil: Callable[[], None],
        end_session: Callable[[str], None],
    ) -> None:
        self._scheduler, self._world, self._config = scheduler, world, config
        self._distil, self._end_session = distil, end_session
        self._heard: dict[str, float] = {}
        self._lock = threading.Lock()
        self._quiet_at, self._waiting = 0.0, False

    @property
    def _session_idle_s(self) -> float:
        return self._config().session_idle_min * 60

    def watch_sessions(self) -> None:
        """Check for idle sessions at the interval of the settings."""
        self._scheduler.every(max(0.1, min(60.0, self._session_idle_s / 2)), self._end_idle, "sessions")

    def resume(self, heard_at: Mapping[str, int]) -> None:
        """Watch live sessions that were open at the last stop; `heard_at` in microseconds."""
        now, monotonic = self._world.now(), self._world.monotonic()
        with self._lock:
            self._heard.update({name: monotonic - max(0.0, (now - at) / 1e6) for name, at in heard_at.items()})

    def captured(self, event: CapturesCommitted) -> None:
        """Distil now if the captures are urgent, otherwise once it is quiet."""
        now = self._world.monotonic()
        with self._lock:
            for document in event.ended:
                self._heard.pop(document, None)
            self._heard.update(dict.fromkeys(event.live, now))
        if event.urgent:
            self._distil()
            return
        with self._lock:
            self._quiet_at = now + self._config().idle_s
            waiting, self._waiting = self._waiting, True
        if not waiting:  # a job for each capture would cost more than the capture
            self._scheduler.soon(self._check_quiet, "idle", self._config().idle_s)

    def _check_quiet(self) -> None:
        """Distil if it has been quiet long enough; else check again later."""
        with self._lock:
            left_s = self._quiet_at - self._world.monotonic()
            self._waiting = left_s > 0
        if left_s > 0:
            self._scheduler.soon(self._check_quiet, "idle", left_s)
        else:
            self._distil()

    def _end_idle(self) -> None:
        now = self._world.monotonic()
        with self._lock:
            idle = [document for document, at in self._heard.items() if now - at > self._session_idle_s]
            for document in idle:
                del self._heard[document]
        for document in idle:
            self._end_session(document)


class DistillationService(Service):
    """The distiller's thread with its worker process, and its triggers."""

    name = "distillation"

    def __init__(
        self,
        core: Core,
        writer: Writer,
        models: EmbeddingModels,
        *,
        given: Callable[[Iterable[Captured]], dict[str, Given]],
        judge: Callable[[], Callable[[Record], Record]],
        paused: Callable[[], bool],
        held: Callable[[], bool],
        take: Callable[[Sequence[tuple[CaptureRequest, Respond]]], None],
    ) -> None:
        """`given`: texts that each session received from memd; `judge`: marks new records as on probation; `paused`:
        whether distillation is paused; `held`: whether it waits for models that a user waits for; `take`: takes the
        capture that ends an idle session."""
        self._stores, self._jobs, self._world = core.stores, core.jobs, core.world
        self._models, self._take = models, take
        self._worker = WorkerProcess(core.config().worker_threads)
        self._loop = DistillationLoop(
            core.stores,
            writer,
            self._worker,
            models,
            core.config,
            given=given,
            judge=judge,
            paused=paused,
            held=held,
            tell=core.activity.tell,
        )
        self._triggers = DistillationTriggers(core.scheduler, core.world, core.config, self.wake, self._end_session)
        core.activity.note_active(self.heard_at)
        core.captures.subscribe(self._triggers.captured)
        core.resumed.subscribe(lambda _: self.wake())

    @property
    def handlers(self) -> Handlers:
        """Distil now; failed captures; models."""
        return {
            Distil: owner("fast", self.distil),
            ListLetters: owner("slow", self.list_failed),
            Retry: owner("slow", self.retry),
            ListModels: owner("slow", lambda request: self._models.list()),
            UseModel: owner("slow", lambda request: self._models.use(request.folder, self._jobs, self.wake)),
        }

    @property
    def state(self) -> str:
        """`running`, `idle`, `paused`, or the problem."""
        return self._loop.worker_state

    def start(self) -> None:
        """Distil pending captures of the last run, and watch open sessions."""
        self._loop.start()
        self._triggers.resume(self.heard_at)
        self._triggers.watch_sessions()

    @property
    def heard_at(self) -> dict[str, int]:
        """The time of the last turn of each live open session, in microseconds."""
        archive, documents = self._stores.archive, self._stores.open_sessions.documents()
        return {document: at for document in documents if (at := archive.newest_at(document))}

    def reload(self, config: Config) -> None:
        """Follow the number of worker threads and the idle time of sessions."""
        self._worker.follow(config.worker_threads)
        self._triggers.watch_sessions()

    def stop(self) -> None:
        """End the distiller at once; the next start distils uncommitted captures."""
        self._loop.stop()

    def wake(self) -> None:
        """Distil pending captures soon."""
        self._loop.wake()

    def distil(self, request: Distil) -> Done:
        """Wake the distiller."""
        self.wake()
        return Done(pending=self._stores.pending)

    # --- failed captures (P-12) --------------------------------------------------------------------------------------
    def list_failed(self, request: ListLetters) -> DeadLetters:
        """List the captures that could not be distilled, newest first."""
        letters = self._stores.dead_letters.newest(max(1, request.limit))
        return DeadLetters(letters=tuple(letters), total=self._stores.dead_letters.count())

    def retry(self, request: Retry) -> JobState:
        """Start to distil failed captures again. Raises InvalidRequest, NotFound, Unavailable beside a job."""
        if bool(request.ids) == request.all:
            raise InvalidRequest("no failed capture was named", hint="name some, or use `memd retry --all`")
        named = {id: self._stores.dead_letters.get(id) for id in request.ids}
        if missing := [str(id) for id, letter in named.items() if letter is None]:
            raise NotFound(f"there is no failed capture {', '.join(missing)}", hint="`memd retry` lists them")
        letters = self._stores.dead_letters.newest() if request.all else [letter for letter in named.values() if letter]
        return self._jobs.start("retry", lambda progress: self._retry(letters, progress))

    def _retry(self, letters: Sequence[DeadLetter], progress: Progress) -> Report:
        done: list[str] = []
        failed: list[str] = []
        undone: list[str] = []
        for number, letter in enumerate(letters):
            progress(number, len(letters), f"capture {letter.id}")
            if self._stores.forgotten.hiding(letter.document):  # a retry must not bring back a session that was undone
                undone.append(str(letter.id))
                continue
            reason = self._wait(self._loop.retry(letter))
            (failed if reason else done).append(f"{letter.id}: {reason}" if reason else str(letter.id))
        return {"done": done, "failed": failed, "taken_back": undone}

    def _wait(self, future: Future[str]) -> str:
        while True:
            try:
                return future.result(POLL_S)
            except NotYet:
                if self._jobs.stopping.is_set():
                    raise Stopping("memd is stopping", hint="captures that were not retried stay listed") from None

    # --- sessions that nobody ended (W2) -----------------------------------------------------------------------------
    def _end_session(self, document: str) -> None:
        session = self._stores.sources.session(document)
        if session is None or session.closed_at:
            return
        at = from_micros(self._world.now())
        event = SessionEnded(turn=f"idle:{at}", at=at, reason="idle")
        self._take([(Capture(origin=session.opened.origin, events=(event,)), lambda answer: None)])
