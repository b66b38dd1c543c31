"""The write thread: the only thread that appends to the archive and the journal.

Invariants: waiting captures are written as one group with one fsync; nothing is acknowledged before its fsync (P-12);
work that was accepted before `stop` is finished.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, Protocol, TypeVar

from ...protocol.errors import Stopping

GROUP = 64
"""Most jobs in one group."""

GATHER, LONGEST_S = 1.5, 0.02
"""How long a group is gathered: this many times the last commit, which counts as at most `LONGEST_S`."""

T = TypeVar("T")
J = TypeVar("J")


class GroupWriter(Protocol[J]):
    """Writes captures in groups. Called on the write thread alone."""

    def admitted(self, jobs: Sequence[J]) -> list[J]:
        """Return the jobs to write; the others have been answered."""
        ...

    def write_group(self, jobs: Sequence[J]) -> float:
        """Write the captures of these jobs durably, answer each, and return the seconds that the commit took."""
        ...


class Writer(Protocol):
    """Runs work on the write thread: the port that services take."""

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Queue work that reads the state and commits."""
        ...


class WriteThread(Generic[J]):
    """The thread with its queue of capture jobs and of other work."""

    def __init__(self, groups: GroupWriter[J], monotonic: Callable[[], float]) -> None:
        self._groups, self._monotonic = groups, monotonic
        self._expected, self._commit_s = 1, 0.0
        self._queue: queue.SimpleQueue[list[J] | Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="write")
        self._stopping = False

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the work that was accepted, then end."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join()

    def submit(self, jobs: Sequence[J]) -> None:
        """Queue capture jobs that arrived together. Raises Stopping once `stop` was called."""
        if self._stopping:
            raise Stopping(
                "memd is stopping",
                hint="send the request again when memd runs; clients with a spool do so automatically",
            )
        self._queue.put(list(jobs))

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Queue work that reads the state and commits; its result or error arrives in the future."""
        future: Future[T] = Future()

        def job() -> None:
            try:
                future.set_result(work())
            except Exception as error:  # the caller of `result` gets it
                future.set_exception(error)

        if self._stopping:
            future.set_exception(Stopping("memd is stopping"))
        else:
            self._queue.put(job)
        return future

    def _loop(self) -> None:
        while True:
            jobs, work = self._gathered()
            if jobs:
                self._commit_s = min(self._groups.write_group(jobs), LONGEST_S)
            if work is None:
                return
            work()

    def _gathered(self) -> tuple[list[J], Callable[[], None] | None]:
        """Return the admitted jobs that wait and the work that follows them; None for the work ends the loop.

        When the last group came from several clients, wait a moment longer: all of them send again at once, and one
        fsync takes as long for one job as for all. A single client never waits.
        """
        jobs: list[J] = []
        end = 0.0
        while len(jobs) < GROUP:
            if jobs and self._queue.empty() and (len(jobs) >= self._expected or self._monotonic() >= end):
                break
            try:
                item = self._queue.get(timeout=max(0.0, end - self._monotonic()) if jobs else None)
            except queue.Empty:
                break
            if item is None or callable(item):
                return jobs, item
            if not jobs:
                end = self._monotonic() + self._commit_s * GATHER
            jobs += self._groups.admitted(item)
        self._expected = len(jobs)
        return jobs, lambda: None


class NoCaptures:
    """The group writer of stores that take no captures, for measurements and tests."""

    def admitted(self, jobs: Sequence[object]) -> list[object]:
        return []

    def write_group(self, jobs: Sequence[object]) -> float:
        return 0.0
