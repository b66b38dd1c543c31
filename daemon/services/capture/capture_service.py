"""The capture service: takes captures and `remember`, empties the spool, and keeps the pauses."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from ....protocol.errors import Forgotten, MemdError, Stopping, Withheld
from ....protocol.pauses import Pause, Pauses, Resume
from ....protocol.reply import AnyData, Taken
from ....protocol.request import Capture, Remember
from ....stages.secrets.scan import SecretSpan
from ...config import Config
from ..admission import check_host
from ..core import Core
from ..service import CaptureHandler, CaptureRequest, Handlers, Respond, Service, owner
from ..write_thread import WriteThread
from .capture_writer import CaptureJob, CaptureWriter, SessionOpenings
from .pauses import PauseRegister
from .spool_reader import SpoolReader


class CaptureService(Service):
    """Hands captures to the write thread and records rejected and skipped ones."""

    name = "capture"

    def __init__(
        self,
        core: Core,
        openings: SessionOpenings,
        together: Callable[[], AbstractContextManager[object]],
        disabled: Callable[[], str],
        check_role: Callable[[CaptureRequest], None],
    ) -> None:
        """`together`: the context in which the answers of a group are given; `disabled`: why memd is switched off;
        `check_role`: raises Denied for a request, perhaps of a spool, that its surface may not send."""
        config, world = core.config(), core.world
        home = os.environ.get("HOME", "/")
        self.pauses = PauseRegister(core.places.state, config.ignored_folders, home, world.now, disabled)

        def find(session: str, words: str) -> Sequence[SecretSpan]:
            return core.known.of(session).find(words)

        groups = CaptureWriter(
            core.stores,
            openings,
            self.pauses,
            core.captures,
            together,
            world.monotonic,
            core.gate,
            find,
            lambda: core.config().archive_keep_tool_output,
        )
        self.writer = WriteThread(groups, world.monotonic)
        self._activity, self._resumed, self._gate = core.activity, core.resumed, core.gate
        self._check_role = check_role
        self._spool = SpoolReader(core.places.spool, self.take, core.activity.note, world, config.spool_s, core.gate)

    @property
    def handlers(self) -> Handlers:
        """Captures in groups; pauses on the slow lane."""
        captures = CaptureHandler(self.take)
        return {
            Capture: captures,
            Remember: captures,
            Pause: owner("slow", lambda request: self.pauses.pause(request.folder, request.for_s)),
            Resume: owner("slow", self.resume),
        }

    def start(self) -> None:
        """Begin to read the spool."""
        self._spool.start()

    def reload(self, config: Config) -> None:
        """Ignore the folders of these settings."""
        self.pauses.follow(config.ignored_folders)

    def stop(self) -> None:
        """Stop reading the spool."""
        self._spool.stop()

    def take(self, arrived: Sequence[tuple[CaptureRequest, Respond]]) -> None:
        """Queue requests that arrived together, from clients and spools; the write thread answers each once."""
        jobs: list[CaptureJob] = []
        for request, respond in arrived:
            try:
                self._check_role(request)
                check_host(request.origin)
                clean = self._gate.envelope(request)
            except MemdError as error:
                respond(error)
                continue
            jobs.append(CaptureJob(clean, self._noted(clean, respond)))
        try:
            self.writer.submit(jobs)
        except Stopping as error:
            for job in jobs:
                job.respond(error)

    def resume(self, request: Resume) -> Pauses:
        """End a pause. Raises InvalidRequest, NotFound, StorageFull."""
        resumed = self.pauses.resume(request.folder)
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
