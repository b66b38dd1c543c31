"""The daemon's side of the worker process, which starts on demand.

At most one worker runs. A worker that dies during a task raises `WorkerDied`, and the next task starts a new one.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from .worker_messages import AnyResult, AnyTask, Crashed, Ready, receive_result, send

LONGEST_TASK_S = 180.0
"""Time after which a task counts as hung and its worker is ended: a batch of 64 captures takes a second or two."""

R = TypeVar("R", bound=AnyResult)


class WorkerDied(Exception):
    """The worker process ended, or failed on a task."""


class TaskCrashed(WorkerDied):
    """The worker lives, but this task raised in it."""


class WorkerUnusable(Exception):
    """The worker process does not start; no capture is to blame, all wait."""


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a worker, with pipes to it."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


class WorkerProcess:
    """At most one worker process."""

    def __init__(self, threads: int) -> None:
        self._command = [sys.executable, "-m", "memd.daemon.services.distillation.worker", str(threads)]
        self._folder = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def follow(self, threads: int) -> None:
        """Set the number of threads of the next process."""
        self._command[-1] = str(threads)

    def load(self, folder: str) -> None:
        """Embed with the model of this folder ("": the package's own) from now on; ends a worker with another one."""
        if folder != self._folder:
            self.end()
            self._folder = folder

    @property
    def alive(self) -> bool:
        """Whether a worker process runs now."""
        return self._process is not None and self._process.poll() is None

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise WorkerUnusable("the daemon is stopping")
            if self._process is not None and self._process.poll() is None:
                return self._process
            command = [*self._command, *([self._folder] if self._folder else [])]
            process = self._process = start(command)
        assert process.stdout is not None
        if not isinstance(receive_result(process.stdout), Ready):
            raise WorkerUnusable(f"the worker ended with status {process.wait()} before it was ready")
        return process

    def ask(self, task: AnyTask, kind: type[R]) -> R:
        """Return the result of a task, of type `kind`. Raises TaskCrashed, WorkerDied, WorkerUnusable."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        deadline = threading.Timer(LONGEST_TASK_S, process.kill)
        deadline.daemon = True
        deadline.start()
        try:
            send(process.stdin, task)
            result = receive_result(process.stdout)
        except (BrokenPipeError, ValueError) as error:
            raise WorkerDied(f"the pipe to the worker broke: {error}") from error
        finally:
            deadline.cancel()
        if result is None:
            raise WorkerDied(f"the worker ended with status {process.wait()}")
        if isinstance(result, Crashed):
            raise TaskCrashed(result.error)
        if not isinstance(result, kind):
            raise WorkerDied(f"the worker answered {type(result).__name__} to {type(task).__name__}")
        return result

    def end(self, *, for_good: bool = False) -> None:
        """End the worker at once."""
        with self._lock:
            self._closed = self._closed or for_good
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # a task that did not reach it
                    assert pipe is not None
                    pipe.close()
