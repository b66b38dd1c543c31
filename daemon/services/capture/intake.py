"""The scan at the door: what may enter the archive, and in which words (W5, P-18); whether it may enter at all (P-2).

Comes in: an event as a client sent it. Goes out: the capture to archive, secrets out, injected memory out, `<private>`
spans out. Invariant: whatever can't be taken is refused with a reason that names the turn; nothing is silently cut.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from ....protocol.errors import MemdError
from ....protocol.event import Captured, Noted, Origin, SessionEnded
from ....protocol.reply import Refusal
from ....protocol.request import Capture
from ....protocol.running import Skip
from ....protocol.wire import problem
from ...projections.sources import SourceTable
from ...storage.archive import Fate
from ..admission import admit, bug
from ..service import CaptureRequest, Respond
from .pauses import PauseRegister

log = logging.getLogger("memd.write")


class CaptureJob(msgspec.Struct):
    """A request that takes something in, and what has become of it so far. `ends`: it ends its session."""

    request: CaptureRequest
    respond: Respond
    document: str = ""
    captures: list[Captured] = []
    refused: list[Refusal] = []
    forgotten: int = 0
    skipped: int = 0
    why: Skip = ""
    fates: list[Fate] = []
    ends: bool = False

    def __post_init__(self) -> None:
        self.document = self.request.origin.document


class Intake:
    """What of a request is taken: scanned, and not said during a pause."""

    def __init__(self, sources: SourceTable, pauses: PauseRegister) -> None:
        self._sources, self._pauses = sources, pauses

    def admitted(self, jobs: Sequence[CaptureJob]) -> list[CaptureJob]:
        """Those of these jobs that go on, with their captures; whoever waits for another hears why not."""
        going: list[CaptureJob] = []
        disabled = self._pauses.disabled()
        for job in jobs:
            try:
                self._admit(job, disabled)
                going.append(job)
            except Exception as error:  # of one job alone: the others are not to blame
                job.respond(bug(error))
        return going

    def _admit(self, job: CaptureJob, disabled: bool) -> None:
        request = job.request
        events = (
            request.events
            if isinstance(request, Capture)
            else (Noted(turn=request.turn, at=request.at, text=request.text, role=request.role),)
        )
        for event in events:
            try:
                captured = admit(request.origin, event)
                if why := "disabled" if disabled else self._skip(captured, request.origin):
                    job.skipped, job.why = job.skipped + 1, why
                else:
                    job.captures.append(captured)
                    job.ends |= isinstance(event, SessionEnded)
            except MemdError as error:
                log.warning("rejected turn %s of %s: %s", event.turn[:80], job.document[:80], error.message)
                job.refused.append(Refusal(event.turn, problem(error)))

    def _skip(self, captured: Captured, origin: Origin) -> Skip:
        """Why it is not taken; "" if it is. A session that was open before a pause may end in it."""
        why = self._pauses.skip(origin, captured.event.at)
        if why in ("paused", "ignored") and isinstance(captured.event, SessionEnded):
            session = self._sources.session(captured.document)
            return "" if session and not session.closed_at else why
        return why
