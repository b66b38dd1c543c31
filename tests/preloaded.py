"""Starts daemons of tests from a process that has imported the modules of the daemon once, so that each starts fast.

A forked daemon runs the same `main` as `python -m memd.daemon`, with the environment, the folder and the standard error
that the test gives. Its first worker is a child that it forked before it ran, with the models that the process loaded
once: the same `main` as `python -m memd.daemon.services.distillation.worker`. Tests of starting itself, and of what a
daemon loads, run the program.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOM = " " * 200
"""An argument of the process that forks, whose place the words of a forked process take."""

WORKER = ("-m", "memd.daemon.services.distillation.worker", "1")


class ForkedDaemon:
    """A daemon process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, starter: DaemonStarter, pid: int) -> None:
        self._starter, self.pid = starter, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self._starter.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code once it ended. Raises subprocess.TimeoutExpired."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired("memd.daemon", timeout or 0)
            time.sleep(0.005)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class DaemonStarter:
    """The process that forks daemons; one a process of tests."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def start(self, environment: dict[str, str], errors: Path) -> ForkedDaemon:
        """Start a daemon that appends its standard error to a file."""
        asked = {"environment": environment, "errors": str(errors), "cwd": os.getcwd()}
        return ForkedDaemon(self, self.ask(asked))

    def ask(self, what: dict[str, Any]) -> Any:
        """Send a wish, and return the answer."""
        if self._process is None:
            command = [sys.executable, "-P", __file__, ROOM]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


class ForkedWorker:
    """A worker process, a child of this one, with the parts of `subprocess.Popen` that a daemon uses."""

    def __init__(self, pid: int, door: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()
        theirs, mine = os.pipe()
        read, write = os.pipe()
        self.stdin, self.stdout = os.fdopen(mine, "wb"), os.fdopen(read, "rb")
        socket.send_fds(door, [b"."], [theirs, write])
        for each in (theirs, write):
            os.close(each)
        door.close()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
            return self.returncode

    def wait(self) -> int:
        """The exit code once it ended."""
        while (code := self.poll()) is None:
            time.sleep(0.001)
        return code

    def kill(self) -> None:
        """SIGKILL, unless it ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _preload() -> Any:
    """Import what a daemon and its worker import, and return the worker's models. No thread is there before a fork."""
    import memd.daemon.__main__  # first: it says how many threads numpy may start
    import memd.daemon.server.startup
    from memd.daemon.services.distillation import worker
    from memd.stages import reports, scan, speakers
    from memd.stages.secrets.scan import prepare

    prepare()
    scan.prepare()
    assert memd.daemon.server.startup and reports and speakers
    loaded = worker.load(1, "")
    assert threading.active_count() == 1
    gc.freeze()
    return loaded


def _name(*arguments: str) -> None:
    """Let the system list this process as a Python with these arguments, as if it were not forked."""
    fields = Path("/proc/self/stat")
    if not fields.exists():
        return
    start, end = (int(field) for field in fields.read_text().rpartition(")")[2].split()[45:47])
    words = b"\0".join(map(os.fsencode, (sys.executable, *arguments)))
    ctypes.memmove(start, words[: end - start - 1].ljust(end - start, b"\0"), end - start)


def _stand_by(door: socket.socket, loaded: Any) -> NoReturn:
    """Be the worker of the daemon as soon as it wants one, until that daemon ends."""
    _, pipes, _, _ = socket.recv_fds(door, 1, 2)
    door.close()
    if not pipes:
        os._exit(0)
    for place, pipe in enumerate(pipes):
        os.dup2(pipe, place)
        os.close(pipe)
    _name(*WORKER)
    sys.stdin, sys.argv = os.fdopen(0), list(WORKER[1:])
    from memd.daemon.services.distillation import worker
    from memd.stages import scan

    scan._searches.clear()  # which only the daemon prepares
    worker.main(lambda threads, folder: loaded)
    os._exit(0)


def _fork_worker(loaded: Any) -> None:
    """Fork the first worker of this daemon."""
    from memd.daemon.services.distillation import worker_process

    mine, theirs = socket.socketpair()
    if not (pid := os.fork()):
        mine.close()
        _stand_by(theirs, loaded)
    theirs.close()
    start, waiting = worker_process.start, [(pid, mine)]

    def first(command: Sequence[str]) -> Any:
        if tuple(command[1:]) != WORKER or not waiting:
            return start(command)
        return ForkedWorker(*waiting.pop())

    worker_process.start = first


def _daemon(loaded: Any, environment: dict[str, str], errors: str, cwd: str) -> int:
    """Be a daemon in a forked process; the exit code."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(0, 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), 2)
    _fork_worker(loaded)
    _name("-m", "memd.daemon")
    sys.argv = ["memd.daemon"]
    faulthandler.enable()
    from memd.daemon.__main__ import main

    return main()


def _forked() -> dict[str, Any] | None:
    """Fork a daemon for each wish with an environment, and tell of a poll whether that daemon ended. Return the wish in
    the daemon, None in the starter when its tests are over."""
    for line in sys.stdin:
        wish = json.loads(line)
        if "poll" in wish:
            pid, status = os.waitpid(wish["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif not (answer := os.fork()):
            return wish
        print(json.dumps(answer), flush=True)
    return None


if __name__ == "__main__":
    models = _preload()
    sys.exit(_daemon(models, **wish) if (wish := _forked()) else 0)
