"""The capture service: takes captures and `remember`, empties the spool, and keeps the pauses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ....protocol.errors import Forgotten, MemdError, Stopping, Withheld
from ....protocol.reply import AnyData, Taken
from ....protocol.request import Capture, Remember
from ....protocol.running import Pause, Pauses, Resume
from ...config import Config
from ...world import World
from ..activity import Activity
from ..events import Topic
from ..service import CaptureHandler, CaptureRequest, Handlers, Respond, Service, owner
from ..write_thread import WriteThread
from .intake import CaptureJob
from .pauses import PauseRegister
from .spool_reader import SpoolReader


class CaptureService(Service):
    """Hands captures to the write thread and records what became of them."""

    name = "capture"

    def __init__(
        self,
        writer: WriteThread[CaptureJob],
        pauses: PauseRegister,
        spool: Path,
        activity: Activity,
        world: World,
        spool_s: float,
        resumed: Topic[None],
    ) -> None:
        """`resumed` hears of the end of a pause; `spool_s` is the interval at which the spool folder is read."""
        self._writer, self._pauses, self._activity, self._resumed = writer, pauses, activity, resumed
        self._spool = SpoolReader(spool, self.take, activity.note, world, spool_s)

    @property
    def handlers(self) -> Handlers:
        """Captures in groups; pauses beside them."""
        captures = CaptureHandler(self.take)
        return {
            Capture: captures,
            Remember: captures,
            Pause: owner("slow", self.pause),
            Resume: owner("slow", self.resume),
        }

    def start(self) -> None:
        """Begin to read the spool."""
        self._spool.start()

    def reload(self, config: Config) -> None:
        """Ignore the folders of these settings."""
        self._pauses.follow(config.ignored_folders)

    def stop(self) -> None:
        """Stop reading the spool."""
        self._spool.stop()

    def take(self, arrived: Sequence[tuple[CaptureRequest, Respond]]) -> None:
        """Queue what arrived together; each request is answered once, from the write thread."""
        jobs = [CaptureJob(request, self._noted(request, respond)) for request, respond in arrived]
        try:
            self._writer.submit(jobs)
        except Stopping as error:
            for job in jobs:
                job.respond(error)

    def pause(self, request: Pause) -> Pauses:
        """Begin a pause. Raises InvalidRequest, StorageFull."""
        return self._pauses.pause(request.folder, request.for_s)

    def resume(self, request: Resume) -> Pauses:
        """End a pause. Raises InvalidRequest, NotFound, StorageFull."""
        resumed = self._pauses.resume(request.folder)
        self._resumed.publish(None)
        return resumed

    def _noted(self, request: CaptureRequest, respond: Respond) -> Respond:
        def noted(answer: AnyData | MemdError) -> None:
            if outcome := _not_taken(answer):  # before the answer: its receiver may ask for the status at once
                name, reason = outcome
                self._activity.note(name, f"{request.origin.document[:80]}: {reason}")
            respond(answer)

        return noted


def _not_taken(answer: AnyData | MemdError) -> tuple[str, str] | None:
    """Return under which name an answer is recorded, and the reason; None where everything was taken."""
    match answer:
        case Taken(refused=(), skipped=0) | Forgotten():
            return None
        case Withheld():
            return "skipped", answer.message
        case MemdError():
            return "refused", f"{answer.code}: {answer.message}"
        case Taken(refused=(first, *_)):
            return "refused", f"{len(answer.refused)} events: {first.problem.message}"
        case Taken(skipped=skipped) if skipped:
            return "skipped", f"{skipped} events: {answer.why}"
        case _:
            return None
