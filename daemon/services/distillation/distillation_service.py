"""The distillation service: turns captures into records in the background, retries failed captures, changes models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet

from ....protocol.errors import InvalidRequest, NotFound, Stopping
from ....protocol.event import Captured, SessionEnded
from ....protocol.instant import from_micros
from ....protocol.record import Record
from ....protocol.reply import Done, JobState, ModelList
from ....protocol.request import Capture, Distil, ListModels, UseModel
from ....protocol.running import DeadLetter, DeadLetters, ListLetters, Retry
from ....stages.batch import Given
from ...config import Config
from ...projections.stores import Stores
from ...world import World
from ..events import CapturesCommitted, Topic
from ..jobs import Jobs, Progress, Report
from ..scheduler import Scheduler
from ..service import CaptureRequest, Handlers, Respond, Service, owner
from ..write_thread import Writer
from .distiller import DistillationLoop
from .reembedding import EmbeddingModels
from .triggers import DistillationTriggers
from .worker_process import WorkerProcess

POLL_S = 0.1


class DistillationService(Service):
    """The distiller's thread with its worker process, and what starts it."""

    name = "distillation"

    def __init__(
        self,
        stores: Stores,
        writer: Writer,
        models: EmbeddingModels,
        scheduler: Scheduler,
        jobs: Jobs,
        world: World,
        config: Callable[[], Config],
        captures: Topic[CapturesCommitted],
        resumed: Topic[None],
        *,
        given: Callable[[Iterable[Captured]], dict[str, Given]],
        judge: Callable[[], Callable[[Record], Record]],
        paused: Callable[[], bool],
        take: Callable[[Sequence[tuple[CaptureRequest, Respond]]], None],
    ) -> None:
        """`given`: what memd told each session before; `judge`: what marks a new record as on probation; `paused`:
        whether nothing is to be distilled now; `take`: takes the capture that ends an idle session."""
        self._stores, self._jobs, self._models, self._world, self._take = stores, jobs, models, world, take
        self._worker = WorkerProcess(config().worker_threads)
        self.loop = DistillationLoop(
            stores, writer, self._worker, models, config, given=given, judge=judge, paused=paused
        )
        self._triggers = DistillationTriggers(scheduler, world, config, self.wake, self._end_session)
        captures.subscribe(self._triggers.captured)
        resumed.subscribe(lambda _: self.wake())

    @property
    def handlers(self) -> Handlers:
        """Distil now; failed captures; models."""
        return {
            Distil: owner("fast", self.distil),
            ListLetters: owner("slow", self.list_failed),
            Retry: owner("slow", self.retry),
            ListModels: owner("slow", self.list_models),
            UseModel: owner("slow", self.use_model),
        }

    @property
    def state(self) -> str:
        """`running`, `idle`, `paused`, or what is wrong."""
        return self.loop.worker_state

    def start(self) -> None:
        """Distil what the last run left pending, and watch the sessions that are still open."""
        self.loop.start()
        self._triggers.resume(self.heard_at)
        self._triggers.watch_sessions()

    @property
    def heard_at(self) -> dict[str, int]:
        """Each live session that has not ended, with the time of its last turn in microseconds."""
        archive, documents = self._stores.archive, self._stores.open_sessions.documents()
        return {document: at for document in documents if (at := archive.newest_at(document))}

    def reload(self, config: Config) -> None:
        """Follow the number of worker threads and the idle time of sessions."""
        self._worker.follow(config.worker_threads)
        self._triggers.watch_sessions()

    def stop(self) -> None:
        """End the distiller at once; the next start does what was not committed."""
        self.loop.stop()

    def wake(self) -> None:
        """Distil what is pending, soon."""
        self.loop.wake()

    def distil(self, request: Distil) -> Done:
        """Wake the distiller."""
        self.wake()
        return Done(pending=self._stores.pending)

    def list_models(self, request: ListModels) -> ModelList:
        """List the models on this machine."""
        return self._models.list()

    def use_model(self, request: UseModel) -> JobState:
        """Start to check and choose a model. Raises InvalidRequest, Unavailable."""
        return self._models.use(request.folder, self._jobs, self.wake)

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
            reason = self._wait(self.loop.retry(letter))
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
