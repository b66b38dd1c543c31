"""The daemon's side of the process that calls a remote model: one process a call, at most one at a time (W4)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable

from .call_messages import READY, CallAnswer, RemoteTask, read_message, write_message

GRACE_S = 5.0
"""Seconds after a call's deadline at which its process is killed."""

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHOME", "TMPDIR", "VIRTUAL_ENV")
"""Variables that the process needs: no proxy and no key is among them."""

_COMMAND = (sys.executable, "-m", "memd.daemon.services.remote.child")


class CallProcess:
    """Runs one call after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def call(self, task: RemoteTask, withheld: Callable[[], str]) -> CallAnswer:
        """Return the outcome of a call. `withheld` returns why memd may not send it, "" if it may; memd asks it when
        the process is ready to send, so that a caller who forbids the call and then calls `end` stops it. If the
        process ends without an answer, nobody knows whether it sent the call."""
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        with self._lock:
            process = self._process = subprocess.Popen(
                _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
        assert process.stdin is not None and process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(task.connect_s + task.deadline_s + GRACE_S, give_up)
        timer.daemon = True
        timer.start()
        try:
            is_ready = process.stdout.read(len(READY)) == READY
            with self._lock:
                why = self._why_not(is_ready, withheld)
                if not why:
                    write_message(process.stdin, task)
            answer = CallAnswer(outcome="unsent", problem=why) if why else read_message(process.stdout, CallAnswer)
        except (OSError, ValueError):
            answer = None
        finally:
            timer.cancel()
            process.kill()
            process.stdin.close()
            process.stdout.close()
            status = process.wait()
            self._process = None
        if answer is None and late.is_set():
            return CallAnswer(outcome="timed out", problem="no answer in time")
        return answer or CallAnswer(outcome="unknown", problem=f"the call's process ended with status {status}")

    def _why_not(self, is_ready: bool, withheld: Callable[[], str]) -> str:
        """Return why the task is not given to the process, "" if it is."""
        if self._is_closed:
            return "memd is stopping"
        return withheld() if is_ready else "the process of the call did not start: the log tells why"

    def end(self, *, for_good: bool = False) -> None:
        """End the call that runs, if there is one."""
        with self._lock:
            self._is_closed = self._is_closed or for_good
            process = self._process
        if process is not None:
            process.kill()
