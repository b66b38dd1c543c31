"""Groups of captures on their way into the archive: admission, what is written, and the answer of each client.

memd refuses what it cannot take with a reason that names the turn; it cuts nothing silently.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from ....protocol.errors import Forgotten, MemdError, StoreError, Unavailable, by_code
from ....protocol.event import Captured, Noted, Origin, Returned, SessionEnded
from ....protocol.operation import (
    Added,
    AnyOperation,
    Decision,
    SessionClosed,
    SessionOpened,
    SessionResumed,
    Step,
    Updated,
)
from ....protocol.pauses import Skip
from ....protocol.record import LIVE, explicit_id
from ....protocol.reply import AnyData, Refusal, Remembered, Taken
from ....protocol.request import Capture, Remember
from ....protocol.secret_gate import SecretGate
from ....protocol.wire import problem
from ....stages.batch import PERSONAL
from ....stages.secrets.scan import SecretSpan
from ...projections.stores import Stores
from ...storage.archive import Fate
from ..admission import admit, bug, check_host
from ..events import CapturesCommitted, Topic
from ..service import CaptureRequest, Respond
from ..statements import is_edited, provisional
from ..withdrawal import withdrawals
from .pauses import PauseRegister
from .session_families import SessionFamilies
from .turn_joins import TurnJoins

CUT_MARK = 64
"""Characters of the note with which a client marks what it left out of a tool's output."""

log = logging.getLogger("memd.capture")


class CaptureJob(msgspec.Struct):
    """A capture request and its state. `ends`: it ends its session; `why`: the reason for skipped events."""

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


class SessionOpenings(Protocol):
    """Opens the pool of a session that is seen for the first time, and finds a pool by the name that a client gives."""

    def pool(self, origin: Origin, at: str) -> str:
        """Return the project pool of an origin, opened if it is new; "" for the user's own."""
        ...

    def named(self, pool: str, origin: Origin, at: str) -> str:
        """Return the full name of a pool that may be written, opened if it is the project of the origin and new.

        Raises NotFound for an unknown pool, InvalidRequest where the origin has no project.
        """
        ...


class CaptureWriter:
    """Writes groups of captures. Called on the write thread alone."""

    def __init__(
        self,
        stores: Stores,
        openings: SessionOpenings,
        pauses: PauseRegister,
        committed: Topic[CapturesCommitted],
        together: Callable[[], AbstractContextManager[object]],
        monotonic: Callable[[], float],
        gate: SecretGate,
        find: Callable[[str, str], Sequence[SecretSpan]],
        output_limit: Callable[[], int] = lambda: 0,
    ) -> None:
        """`together`: the context in which the answers of a group are given; `find`: finds and learns the secrets of
        a session in a text; `output_limit`: characters of a tool's output that are kept."""
        self._output_limit = output_limit
        self._gate = gate
        self._stores, self._openings, self._pauses = stores, openings, pauses
        self._committed, self._together, self._monotonic = committed, together, monotonic
        self._projects: dict[str, str] = {}
        self._closed: set[str] = set()
        self._projects_at = 0
        self._joins = TurnJoins(find)
        self._families = SessionFamilies(stores)

    def admitted(self, jobs: Sequence[CaptureJob]) -> list[CaptureJob]:
        """Return the jobs that can be written, with their captures; answer the others with an error."""
        admitted: list[CaptureJob] = []
        disabled = self._pauses.disabled()
        for job in jobs:
            try:
                self._admit(job, disabled)
                admitted.append(job)
            except Exception as error:  # of one job alone: the others are not to blame
                job.respond(error if isinstance(error, Unavailable) else bug(error))
        return admitted

    def _admit(self, job: CaptureJob, disabled: bool) -> None:
        request = job.request
        events = request.events if isinstance(request, Capture) else (_noted(request),)
        for event in events:
            try:
                check_host(request.origin)
                captured = self._joins.redacted(admit(self._gate, request.origin, event))
                if why := "disabled" if disabled else self._skip(captured, request.origin):
                    job.skipped, job.why = job.skipped + 1, why
                else:
                    job.captures.append(self._placed(captured, request.origin))
                    job.ends |= isinstance(event, SessionEnded)
            except Unavailable:  # of its pool, for now: the client sends the whole request again
                raise
            except MemdError as error:
                log.warning("rejected an event: kind=%s reason=%s", type(event).__name__, error.code)
                job.refused.append(Refusal(self._gate.identifier(event.turn), problem(self._gate.error(error))))

    def _placed(self, captured: Captured, origin: Origin) -> Captured:
        """Return a capture with the full name of the pool that it names. Raises NotFound, InvalidRequest."""
        event = captured.event
        if not isinstance(event, Noted) or not event.pool:
            return captured
        pool = self._openings.named(event.pool, origin, event.at)
        return msgspec.structs.replace(captured, event=msgspec.structs.replace(event, pool=pool))

    def _skip(self, captured: Captured, origin: Origin) -> Skip:
        """Return why memd does not take an event, "" if it does. A session from before a pause may end in it."""
        if isinstance(captured.event, Returned):
            limit = self._output_limit()
            if not limit or len(captured.event.text) > limit + CUT_MARK:
                return "tool output"
        why = self._pauses.skip(origin, captured.event.at)
        if why in ("paused", "ignored") and isinstance(captured.event, SessionEnded):
            session = self._stores.sources.session(captured.document)
            return "" if session and not session.closed_at else why
        return why

    def write_group(self, jobs: Sequence[CaptureJob]) -> float:
        """Write the captures of these jobs durably, answer each, and return the seconds that the commit took."""
        try:
            answers, commit_s = self._write(jobs)
        except Exception as error:  # every client gets an answer, and the thread continues
            if len(jobs) > 1 and not isinstance(error, StoreError):  # one job is to blame: write each alone
                for job in jobs:
                    if again := self.admitted([CaptureJob(job.request, job.respond)]):
                        self.write_group(again)
                return 0.0
            refusal = error if isinstance(error, MemdError) else bug(error)
            log.error("rejected captures: requests=%d reason=%s", len(jobs), refusal.code)
            for job in jobs:
                job.respond(refusal)
            return 0.0
        with self._together():
            for job, answer in zip(jobs, answers, strict=True):
                job.respond(answer)
        self._publish([job for job in jobs if "accepted" in job.fates or "changed" in job.fates])
        return commit_s

    def _write(self, jobs: Sequence[CaptureJob]) -> tuple[list[AnyData | MemdError], float]:
        self._drop_forgotten(jobs)
        if openings := self._session_openings(jobs):  # first: a capture without its session would lose its project
            self._stores.commit(openings)
        begin = self._monotonic()
        fates = iter(self._stores.take([captured for job in jobs for captured in job.captures]))
        commit_s = self._monotonic() - begin
        for job in jobs:
            job.fates = [next(fates) for _ in job.captures]
        operations = [*self._resumed(jobs), *self._closings(jobs), *self._provisional(jobs)]
        for job in jobs:
            if job.fates.count("accepted") < len(job.fates):
                operations += withdrawals(self._stores, zip(job.captures, job.fates, strict=True))
        if operations:
            self._stores.commit(operations)
        projects, pending = self._projects_of(jobs), self._stores.pending
        return [self._answer(job, projects, pending) for job in jobs], commit_s

    def _publish(self, jobs: Sequence[CaptureJob]) -> None:
        if not jobs:
            return
        urgent = any(job.ends or isinstance(captured.event, Noted) for job in jobs for captured in job.captures)
        documents = {job.document: _goes_on(job) for job in jobs}
        try:
            self._committed.publish(CapturesCommitted(documents, urgent, frozenset(self._closed & documents.keys())))
        except Exception:  # the captures are durable and acknowledged: a failing listener must not end the thread
            log.exception("post-commit notification failed")

    def _drop_forgotten(self, jobs: Sequence[CaptureJob]) -> None:
        """Drop captures of forgotten turns."""
        gone = self._stores.forgotten.among(
            (captured.document, captured.event.turn) for job in jobs for captured in job.captures
        )
        if gone:
            for job in jobs:
                remaining = [
                    captured for captured in job.captures if (captured.document, captured.event.turn) not in gone
                ]
                job.forgotten, job.captures = len(job.captures) - len(remaining), remaining

    def _projects_of(self, jobs: Sequence[CaptureJob]) -> Mapping[str, str]:
        """Return the project of each of these documents that is open; cached until the journal grows."""
        if self._projects_at != self._stores.journal.last:
            self._projects_at, self._projects, self._closed = self._stores.journal.last, {}, set()
        if wanted := {job.document for job in jobs if job.document not in self._projects}:
            sessions = self._stores.sources.sessions_of(wanted)
            self._projects.update((document, session.opened.project) for document, session in sessions.items())
            self._closed.update(document for document, session in sessions.items() if session.closed_at)
        return self._projects

    def _session_openings(self, jobs: Sequence[CaptureJob]) -> list[AnyOperation]:
        """Open new sessions, after their pools."""
        operations: list[AnyOperation] = []
        opened: set[str] = set()
        known = self._projects_of(jobs)
        for job in jobs:
            if job.captures and job.document not in known and job.document not in opened:
                opened.add(job.document)
                origin, at = job.request.origin, job.captures[0].event.at
                project = self._openings.pool(origin, at)
                if self._stores.forgotten.names(job.document):
                    origin = msgspec.structs.replace(origin, title="")
                family = self._families.of(job.document, origin.host, job.captures)
                operations.append(
                    SessionOpened(document=job.document, origin=origin, project=project, at=at, family=family)
                )
        return operations

    def _resumed(self, jobs: Sequence[CaptureJob]) -> list[AnyOperation]:
        """Resume live sessions that had ended and go on; they will end once more."""
        operations: dict[str, AnyOperation] = {}
        self._projects_of(jobs)
        if not self._closed:
            return []
        for job in jobs:
            for captured, fate in zip(job.captures, job.fates, strict=True):
                new = fate != "duplicate" and not isinstance(captured.event, SessionEnded)
                if new and captured.live and job.document in self._closed and job.document not in operations:
                    operations[job.document] = SessionResumed(document=job.document, at=captured.event.at)
        return list(operations.values())

    def _closings(self, jobs: Sequence[CaptureJob]) -> list[AnyOperation]:
        """Close sessions that ended, also where the last write stopped after the capture."""
        operations: list[AnyOperation] = []
        for job in jobs:
            for captured, fate in zip(job.captures, job.fates, strict=True) if job.ends else ():
                event = captured.event
                if not isinstance(event, SessionEnded):
                    continue
                session = self._stores.sources.session(captured.document)
                if fate != "duplicate" or (session and not session.closed_at):
                    operations.append(SessionClosed(document=captured.document, at=event.at, reason=event.reason))
        return operations

    def _provisional(self, jobs: Sequence[CaptureJob]) -> list[AnyOperation]:
        """Add the record of each `remember`; existing records are left out."""
        operations: dict[str, AnyOperation] = {}
        for job in jobs:
            if not (isinstance(job.request, Remember) and job.captures and isinstance(job.captures[0].event, Noted)):
                continue
            captured, event = job.captures[0], job.captures[0].event
            id = explicit_id(captured.document, event.turn)
            before = self._stores.records.get(id)
            pool, _ = self._pool_of(captured.document, event)
            if before is None:
                steps = (Step("door", "stored word for word; the worker refines it later"),)
                decision = Decision(action="add", reason="the user asked memd to remember this", steps=steps)
                record = provisional(captured.document, event, pool)
                operations[id] = Added(record=record, decision=decision)
            elif job.fates[0] == "changed" and before.status in LIVE and not is_edited(before):
                record = provisional(captured.document, event, pool, before.rev + 1)
                decision = Decision(action="update", reason="the turn was sent again with different text")
                operations[id] = Updated(record=record, decision=decision)
        return list(operations.values())

    def _pool_of(self, document: str, event: Noted) -> tuple[str, bool]:
        """Return the pool of a remembered text, and whether its subject may still lead to another one.

        In a project that is so for the user's own words, and for an agent, which may have a pool of its own.
        """
        session = self._stores.sources.session(document)
        project = self._stores.aliases.home(session.opened.project) if session and session.opened.project else ""
        if event.pool or project in ("", PERSONAL):
            return event.pool or PERSONAL, False
        is_open = event.role == "user" or bool(session and session.opened.origin.agent)
        return PERSONAL if is_open else project, is_open

    def _answer(self, job: CaptureJob, projects: Mapping[str, str], pending: int) -> AnyData | MemdError:
        if isinstance(job.request, Capture):
            return Taken(
                accepted=job.fates.count("accepted"),
                duplicate=job.fates.count("duplicate"),
                changed=job.fates.count("changed"),
                refused=tuple(job.refused),
                pool=projects.get(job.document) or PERSONAL,
                pending=pending,
                forgotten=job.forgotten,
                skipped=job.skipped,
                why=job.why,
            )
        if job.refused:
            refusal = job.refused[0].problem
            return by_code(refusal.code, refusal.message, refusal.hint)
        if job.forgotten:
            return Forgotten("the user forgot this turn", hint="say it again in a new turn")
        if job.why:
            return self._pauses.refusal(job.request.origin, job.why)
        captured = job.captures[0]
        record = self._stores.records.get(explicit_id(captured.document, captured.event.turn))
        assert record is not None and isinstance(captured.event, Noted)
        is_open = not record.provenance.distiller and self._pool_of(captured.document, captured.event)[1]
        return Remembered(record=record, duplicate=job.fates[0] == "duplicate", pool_open=is_open)


def _noted(request: Remember) -> Noted:
    return Noted(turn=request.turn, at=request.at, text=request.text, role=request.role, pool=request.pool)


def _goes_on(job: CaptureJob) -> bool:
    """Return whether a job's session is live and has not ended with it."""
    return job.request.origin.live and not isinstance(job.captures[-1].event, SessionEnded)
