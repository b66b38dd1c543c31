"""Long work: one job at a time, with progress that clients can ask for.

A second job is refused with the name of the first. A job that raises ends as `failed` with its error.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

import msgspec

from ...protocol.errors import MemdError, NotFound, Stopping, Unavailable
from ...protocol.reply import JobState, Problem
from ..world import World

JOBS = 20
"""States of finished jobs that memd keeps."""

Report = Mapping[str, str | int | float | list[str]]
Progress = Callable[[int, int, str], None]
Work = Callable[[Progress], Report]
log = logging.getLogger("memd.jobs")


class Jobs:
    """Runs jobs. `Work` gets a `progress(done, total, detail)` and returns its report."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._states: dict[str, JobState] = {}
        self._lock = threading.Lock()
        self._running = ""
        self._thread: threading.Thread | None = None
        self.stopping = threading.Event()

    def start(self, name: str, work: Work) -> JobState:
        """Start a job. Raises Unavailable while another one runs, Stopping after `stop`."""
        if self.stopping.is_set():
            raise Stopping("memd is stopping", hint="send the request again when memd runs")
        with self._lock:
            if self._running:
                other = self._states[self._running].name
                raise Unavailable(
                    f"another job is running: {other}",
                    hint="`memd status` shows its progress; try again when it has finished",
                )
            id = self._world.token(4).hex()
            self._running = id
            state = self._states[id] = JobState(id=id, name=name, state="running")
            for old in list(self._states)[:-JOBS]:
                del self._states[old]
        self._thread = threading.Thread(target=self._run, args=(id, work), name=name, daemon=True)
        self._thread.start()
        return state

    def _run(self, id: str, work: Work) -> None:
        def progress(done: int, total: int, detail: str) -> None:
            self._put(id, done=done, total=total, detail=detail)

        try:
            report = work(progress)
            self._put(id, state="done", report=dict(report))
        except MemdError as error:
            self._put(id, state="failed", problem=Problem(error.code, error.message, error.hint))
        except Exception as error:  # a bug in one job must not end the daemon
            log.exception("job %s failed", self._states[id].name)
            self._put(id, state="failed", problem=Problem("error", repr(error), "see `memd logs`"))
        finally:
            with self._lock:
                self._running = ""

    def _put(self, id: str, **changes: object) -> None:
        with self._lock:
            self._states[id] = msgspec.structs.replace(self._states[id], **changes)

    def get(self, id: str) -> JobState:
        """Return the state of a job. Raises NotFound."""
        with self._lock:
            if id not in self._states:
                raise NotFound(
                    f"there is no job {id!r}", hint="memd keeps only the most recent jobs and drops them at a restart"
                )
            return self._states[id]

    @property
    def current(self) -> JobState | None:
        """The job that runs now, if any."""
        with self._lock:
            return self._states.get(self._running)

    def stop(self) -> None:
        """Ask the running job to end, and wait at most a second; a job must be safe to kill."""
        self.stopping.set()
        if self._thread is not None:
            self._thread.join(1.0)
