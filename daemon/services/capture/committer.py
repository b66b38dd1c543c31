"""The committer: the only writer. Captures into the archive, operations into the journal, then into the projections.

Comes in: jobs of the door and of the distiller. Goes out: acknowledgements, after the bytes are on the disk.
Invariants: one thread; nothing is acknowledged before fsync (P-12); captures that wait are taken as one group, one
archive transaction and one journal transaction; a batch of proposals and the cursor behind it are one transaction.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import msgspec

from ....protocol.errors import Forgotten, InvalidRequest, MemdError, Stopping, StoreError, by_code
from ....protocol.event import Noted, Origin, Reworded, SessionEnded, text
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
from ....protocol.private import without_private
from ....protocol.record import LIVE, explicit_id
from ....protocol.reply import AnyData, Remembered, Taken
from ....protocol.request import Capture, Edit, Remember
from ....stages.batch import PERSONAL
from ....stages.secrets.scan import redact
from ...projections.stores import Stores
from ..admission import admit, bug
from ..pools.identity import Identity
from ..pools.pool_opening import PoolOpening
from ..statements import is_edited, provisional, reworded
from ..withdrawal import withdrawals
from .intake import Intake, Job, Respond, Taking
from .pauses import PauseRegister

GROUP = 64
"""Jobs taken at most before the thread yields."""

GATHER, LONGEST_S = 1.5, 0.02
"""How long a group is waited for: so many times the last commit, which counts as no longer than that."""

T = TypeVar("T")
log = logging.getLogger("memd.committer")


def _nothing() -> None:
    pass


class Committer:
    """The writing thread with its queue. `captured` is called after captures became durable, with their documents, each
    with whether its session is live and goes on, and whether one of them is urgent."""

    def __init__(
        self,
        stores: Stores,
        identity: Identity,
        captured: Callable[[Mapping[str, bool], bool], None],
        monotonic: Callable[[], float],
        pauses: PauseRegister,
    ) -> None:
        self._pauses, self._intake = pauses, Intake(stores.sources, pauses)
        self._stores = stores
        self._opening = PoolOpening(stores, identity)
        self._captured = captured
        self._monotonic = monotonic
        self._expected, self._commit_s = 1, 0.0
        self._queue: queue.SimpleQueue[list[Job] | Callable[[], None] | None] = queue.SimpleQueue()
        self._projects: dict[str, str] = {}
        self._ended: set[str] = set()
        self._projects_at = 0
        self._thread = threading.Thread(target=self._loop, name="committer")
        self._stopping = False
        self.together: Callable[[], AbstractContextManager[object]] = nullcontext
        """What a group's answers are given within."""

    @property
    def is_alive(self) -> bool:
        """Whether the writing thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to take jobs."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what was accepted, then end."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join()

    def take(self, takings: Sequence[tuple[Taking, Respond]]) -> None:
        """Queue what arrived together; each `respond` is called from the committer's thread, once."""
        if not self._stopping:
            self._queue.put([Job(request, respond) for request, respond in takings])
            return
        for _, respond in takings:
            respond(Stopping("memd is stopping", hint="send it again when it is up; a client's spool does that"))

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Queue work that reads the state and commits; its result or error arrives in the future."""
        future: Future[T] = Future()

        def job() -> None:
            try:
                future.set_result(work())
            except Exception as error:  # handed over to whoever waits for the future
                future.set_exception(error)

        if self._stopping:
            future.set_exception(Stopping("memd is stopping"))
        else:
            self._queue.put(job)
        return future

    def _loop(self) -> None:
        going = True
        while going:
            takings, then = self._gathered()
            self._take_group(takings)
            if then is None:
                going = False
            elif then is not _nothing:
                then()

    def _gathered(self) -> tuple[list[Job], Callable[[], None] | None]:
        """The captures that wait, admitted, and what is to be done after them. Where the last group was of several
        clients, for a moment more: they will all be back at once, and the disk takes as long for one of them as for
        all. One client alone never waits."""
        jobs: list[Job] = []
        end = 0.0
        while len(jobs) < GROUP:
            if jobs and self._queue.empty() and (len(jobs) >= self._expected or self._monotonic() >= end):
                break
            try:
                found = self._queue.get(timeout=max(0.0, end - self._monotonic()) if jobs else None)
            except queue.Empty:
                break
            if found is None or callable(found):
                return jobs, found
            if not jobs:
                end = self._monotonic() + self._commit_s * GATHER
            jobs += self._intake.admitted(found)
        self._expected = len(jobs)
        return jobs, _nothing

    def _take_group(self, jobs: Sequence[Job]) -> None:
        """Make the captures of these jobs durable in one go, then answer each."""
        if not jobs:
            return
        try:
            self._drop_forgotten(jobs)
            if openings := self._openings(jobs):  # first: a capture without its session would lose its project
                self._stores.commit(openings)
            begin = self._monotonic()
            fates = iter(self._stores.take([captured for job in jobs for captured in job.captures]))
            self._commit_s = min(self._monotonic() - begin, LONGEST_S)
            for job in jobs:
                job.fates = [next(fates) for _ in job.captures]
            operations = [*self._resumed(jobs), *self._closings(jobs), *self._provisional(jobs)]
            for job in jobs:
                if job.fates.count("accepted") < len(job.fates):
                    operations += withdrawals(self._stores, zip(job.captures, job.fates, strict=True))
            if operations:
                self._stores.commit(operations)
            projects = self._projects_of(jobs)
            pending = self.pending()
            answers = [self._answer(job, projects, pending) for job in jobs]
        except Exception as error:  # whatever it is, everybody who waits hears of it, and the thread goes on
            if len(jobs) > 1 and not isinstance(error, StoreError):  # of one job alone: the others are not to blame
                for job in jobs:
                    self._take_group(self._intake.admitted([Job(job.request, job.respond)]))
                return
            refusal = error if isinstance(error, MemdError) else bug(error)
            log.error("captures refused: %s", refusal.message)
            for job in jobs:
                job.respond(refusal)
            return
        with self.together():
            for job, answer in zip(jobs, answers, strict=True):
                job.respond(answer)
        self._tell([job for job in jobs if "accepted" in job.fates or "changed" in job.fates])

    def _tell(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        urgent = any(job.ends or isinstance(captured.event, Noted) for job in jobs for captured in job.captures)
        try:
            self._captured({job.document: _goes_on(job) for job in jobs}, urgent)
        except Exception:  # the captures are durable and acknowledged: whoever is told must not end this thread
            log.exception("nobody could be told of captures")

    def _drop_forgotten(self, jobs: Sequence[Job]) -> None:
        """A forgotten turn is never taken again (T10)."""
        gone = self._stores.forgotten.among((each.document, each.event.turn) for job in jobs for each in job.captures)
        if gone:
            for job in jobs:
                kept = [each for each in job.captures if (each.document, each.event.turn) not in gone]
                job.forgotten, job.captures = len(job.captures) - len(kept), kept

    def _projects_of(self, jobs: Sequence[Job]) -> Mapping[str, str]:
        """The project of each of these documents that is open; kept for as long as the journal stands still."""
        if self._projects_at != self._stores.journal.last:
            self._projects_at, self._projects, self._ended = self._stores.journal.last, {}, set()
        if wanted := {job.document for job in jobs if job.document not in self._projects}:
            found = self._stores.sources.sessions_of(wanted)
            self._projects.update((document, session.opened.project) for document, session in found.items())
            self._ended.update(document for document, session in found.items() if session.closed_at)
        return self._projects

    def _openings(self, jobs: Sequence[Job]) -> list[AnyOperation]:
        """Sessions that are seen for the first time; a pool that is new is opened before."""
        operations: list[AnyOperation] = []
        opened: set[str] = set()
        known = self._projects_of(jobs)
        for job in jobs:
            if job.captures and job.document not in known and job.document not in opened:
                opened.add(job.document)
                origin, at = job.request.origin, job.captures[0].event.at
                project = self._opening.pool(origin, at)
                if self._stores.forgotten.names(job.document):
                    origin = msgspec.structs.replace(origin, title="")
                elif origin.title:
                    origin = msgspec.structs.replace(origin, title=redact(without_private(origin.title))[0])
                operations.append(SessionOpened(document=job.document, origin=origin, project=project, at=at))
        return operations

    def _resumed(self, jobs: Sequence[Job]) -> list[AnyOperation]:
        """Live sessions that had ended and go on: they will end once more (W2)."""
        operations: dict[str, AnyOperation] = {}
        self._projects_of(jobs)
        if not self._ended:
            return []
        for job in jobs:
            for captured, fate in zip(job.captures, job.fates, strict=True):
                new = fate != "duplicate" and not isinstance(captured.event, SessionEnded)
                if new and captured.live and job.document in self._ended and job.document not in operations:
                    operations[job.document] = SessionResumed(document=job.document, at=captured.event.at)
        return list(operations.values())

    def _closings(self, jobs: Sequence[Job]) -> list[AnyOperation]:
        """Sessions that ended; also where only the capture of it was written the last time."""
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

    def _provisional(self, jobs: Sequence[Job]) -> list[AnyOperation]:
        """The records of each `remember`, before any model has seen them (W1); what is there already is left out."""
        operations: dict[str, AnyOperation] = {}
        for job in jobs:
            if not (isinstance(job.request, Remember) and job.captures and isinstance(job.captures[0].event, Noted)):
                continue
            captured, event = job.captures[0], job.captures[0].event
            id = explicit_id(captured.document, event.turn)
            before = self._stores.records.get(id)
            if before is None:
                steps = (Step("door", "explicit: remembered word for word, to be refined in the background"),)
                decision = Decision(action="add", reason="asked to remember this", steps=steps)
                operations[id] = Added(record=provisional(captured.document, event), decision=decision)
            elif job.fates[0] == "changed" and before.status in LIVE and not is_edited(before):
                record = provisional(captured.document, event, before.rev + 1)
                decision = Decision(action="update", reason="the same turn, with other words")
                operations[id] = Updated(record=record, decision=decision)
        return list(operations.values())

    def _answer(self, job: Job, projects: Mapping[str, str], pending: int) -> AnyData | MemdError:
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
            return Forgotten(f"turn {job.request.turn[:80]} was forgotten", hint="say it again in a new turn")
        if job.why:
            return self._pauses.refusal(job.request.origin, job.why)
        captured = job.captures[0]
        record = self._stores.records.get(explicit_id(captured.document, captured.event.turn))
        assert record is not None
        return Remembered(record=record, duplicate=job.fates[0] == "duplicate")

    def has_ended(self, document: str) -> bool:
        """Whether the session of a document that was just captured has ended. On this thread."""
        return document in self._ended

    def pending(self) -> int:
        """Captures that the distiller has not seen yet."""
        return self._stores.pending

    def edit(self, request: Edit) -> Remembered:
        """Put a record into the user's words, on the committer's thread. Raises NotFound, InvalidRequest, TooLarge."""
        before = self._stores.records.named(request.id)
        if before.status not in LIVE:
            by = self._stores.records.successor(before)
            hint = f"edit {by[:8]}, which replaced it" if by else "remember it anew"
            raise InvalidRequest(f"{before.id[:8]} is {before.status}", hint=hint)
        origin = Origin(host="memd", session=f"edits/{before.id}")
        event = Reworded(turn=f"{before.id}:{before.rev + 1}", at=request.at, record=before.id, text=request.text)
        captured = admit(origin, event)
        if text(captured.event) == before.content:  # the same edit again, because its answer was lost
            return Remembered(record=before, duplicate=True)
        self._stores.take([captured])
        operations: list[AnyOperation] = []
        if self._stores.sources.session(origin.document) is None:
            project = "" if before.pool == PERSONAL else before.pool  # it is said of that record, so said there
            operations.append(SessionOpened(document=origin.document, origin=origin, project=project, at=request.at))
        record = reworded(before, captured)
        operations.append(Updated(record=record, decision=Decision(action="update", reason="edited by the user")))
        self._stores.commit(operations)
        self._captured({origin.document: False}, True)
        found = self._stores.records.get(before.id)
        assert found is not None
        return Remembered(record=found)


def _goes_on(job: Job) -> bool:
    """Whether a job's session is live and has not ended with it."""
    return job.request.origin.live and not isinstance(job.captures[-1].event, SessionEnded)
