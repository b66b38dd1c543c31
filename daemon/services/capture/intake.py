"""The scan at the door: what may enter the archive, and in which words (W5, P-18); whether it may enter at all (P-2).

Comes in: an event as a client sent it. Goes out: the capture to archive, secrets out, injected memory out, `<private>`
spans out. Invariant: whatever can't be taken is refused with a reason that names the turn; nothing is silently cut.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence

import msgspec

from ....protocol.errors import InvalidRequest, MemdError, TooLarge
from ....protocol.event import AnyEvent, Captured, Noted, Origin, Reworded, SessionEnded, text, with_text
from ....protocol.instant import LONGEST_TIME, SHORTEST_TIME, parse
from ....protocol.private import SHUT, shut
from ....protocol.reply import AnyData, Refusal
from ....protocol.request import Capture, Remember
from ....protocol.running import Skip
from ....protocol.wire import TEXT_LIMIT, problem
from ....stages.secrets.scan import redact
from ...projections.sources import Sources
from ...storage.archive import Fate
from .pauses import Pauses

_INJECTED = re.compile(r"<memd-context\b[^>]{0,200}>.*?(?:</memd-context>|\Z)", re.DOTALL)
NAME_LIMIT = 512
PATH_LIMIT = 4096

Respond = Callable[[AnyData | MemdError], None]
Taking = Capture | Remember
log = logging.getLogger("memd.committer")


class Job(msgspec.Struct):
    """A request that takes something in, and what has become of it so far. `ends`: it ends its session."""

    request: Taking
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


def admit(origin: Origin, event: AnyEvent) -> Captured:
    """The capture of an event. Raises NaiveTime, TooLarge or InvalidRequest."""
    if not event.turn or len(event.turn) > NAME_LIMIT:
        raise InvalidRequest("a turn id must have 1 to 512 characters", hint="use the host's own id of the turn")
    if not origin.host or len(origin.document) > NAME_LIMIT:
        raise InvalidRequest("an origin needs a host and a session of at most 512 characters")
    if len(origin.cwd) > PATH_LIMIT:
        raise InvalidRequest(f"a folder of {len(origin.cwd):,} characters", hint=f"at most {PATH_LIMIT:,}")
    parse(event.at)
    event = shut(event)
    if not SHORTEST_TIME <= len(event.at) <= LONGEST_TIME:
        raise InvalidRequest(f"{event.at[:60]!r} is not RFC 3339", hint="write it like 2026-03-04T18:30:00+01:00")
    words = text(event)
    if len(words) > TEXT_LIMIT:
        raise TooLarge(f"a text of {len(words):,} characters", hint=f"split it: at most {TEXT_LIMIT:,} a turn")
    try:
        words.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"the text is not valid Unicode: {error.reason}", hint="drop lone surrogates") from error
    clean, found = redact(_INJECTED.sub("", words) if "<memd-context" in words else words)
    if isinstance(event, Noted | Reworded) and not clean.replace(SHUT, "").strip():
        raise InvalidRequest("there is nothing to remember", hint="it is empty, private, or memd's own context alone")
    return Captured(
        document=origin.document,
        event=event if clean == words else with_text(event, clean),
        live=origin.live,
        redacted=found,
    )


class Intake:
    """What of a request is taken: scanned, and not said during a pause."""

    def __init__(self, sources: Sources, pauses: Pauses) -> None:
        self._sources, self._pauses = sources, pauses

    def admitted(self, jobs: Sequence[Job]) -> list[Job]:
        """Those of these jobs that go on, with their captures; whoever waits for another hears why not."""
        going: list[Job] = []
        disabled = self._pauses.disabled()
        for job in jobs:
            try:
                self._admit(job, disabled)
                going.append(job)
            except Exception as error:  # of one job alone: the others are not to blame
                job.respond(bug(error))
        return going

    def _admit(self, job: Job, disabled: bool) -> None:
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
                log.warning("refused %s of %s: %s", event.turn[:80], job.document[:80], error.message)
                job.refused.append(Refusal(event.turn, problem(error)))

    def _skip(self, captured: Captured, origin: Origin) -> Skip:
        """Why it is not taken; "" if it is. A session that was open before a pause may end in it."""
        why = self._pauses.skip(origin, captured.event.at)
        if why in ("paused", "ignored") and isinstance(captured.event, SessionEnded):
            session = self._sources.session(captured.document)
            return "" if session and not session.closed_at else why
        return why


def bug(error: BaseException) -> MemdError:
    """What a client is told of an error that is none of the tree."""
    log.error("a bug while committing", exc_info=error)
    return MemdError(f"memd failed on this request: {type(error).__name__}", hint="the daemon's log has the details")
