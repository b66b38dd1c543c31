"""Starts daemons and `memd` commands of tests from a process that has imported their modules once, so that each starts
fast.

A forked daemon runs the same `main` as `python -m memd.daemon`, with the environment, the folder and the standard error
that the test gives. Its workers are forked as well, with the models that the process loaded once, and run the same
`main` as `python -m memd.daemon.services.distillation.worker`. Tests of starting itself, and of what a daemon loads,
run the program. A forked command runs the same `main` as `memd`, with the arguments, the environment, the folder and
the pipes that the test gives; the process that forks it has imported what every command imports.
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
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NoReturn

ROOM = " " * 1000
"""An argument of the process that forks, whose place the words of a forked process take."""

SET_CHILD_SUBREAPER = 36
"""A number of Linux's prctl: orphans below a process become its children."""

WORKER = ("-m", "memd.daemon.services.distillation.worker", "1")


class ForkedProcess:
    """A daemon or a command, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, starter: Starter, pid: int) -> None:
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
                raise subprocess.TimeoutExpired("memd", timeout or 0)
            time.sleep(0.002)
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


class Starter:
    """The process that forks daemons, or the one that forks commands; one of each a process of tests. Several threads
    may use it."""

    def __init__(self, kind: Literal["daemon", "memd"]) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[int]) -> ForkedProcess:
        """Start one in this folder, with these three files as its standard input, output and error."""
        wish = {"arguments": list(arguments), "environment": dict(environment)}
        folder = os.open(".", os.O_RDONLY)
        try:
            return ForkedProcess(self, self.ask(wish, (*files, folder)))
        finally:
            os.close(folder)

    def ask(self, wish: dict[str, Any], files: Sequence[int] = ()) -> Any:
        """Send a wish, and return the answer."""
        with self._lock:
            if self._process is None:
                self._door, theirs = socket.socketpair()
                command = [sys.executable, "-P", __file__, self._kind, str(theirs.fileno()), ROOM]
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
                theirs.close()
                self._answers = self._door.makefile("rb")
            message = json.dumps(wish).encode() + b"\n"
            sent = socket.send_fds(self._door, [message], list(files)) if files else 0
            self._door.sendall(message[sent:])
            return json.loads(self._answers.readline())


def run(
    starter: Starter, arguments: Sequence[str], environment: Mapping[str, str], given: str | None, timeout: float
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` does with a command, text and captured output. Raises subprocess.TimeoutExpired."""
    pipes = [os.pipe() for _ in range(3)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
    with os.fdopen(pipes[0][1], "w") as inputs, os.fdopen(pipes[1][0]) as output, os.fdopen(pipes[2][0]) as errors:
        try:
            process = starter.start(arguments, environment, (nothing if given is None else theirs[0], *theirs[1:]))
        finally:
            for each in (*theirs, nothing):
                os.close(each)
        late = threading.Timer(timeout, process.kill)
        late.start()
        with ThreadPoolExecutor(2) as readers:
            texts = [readers.submit(file.read) for file in (output, errors)]
            with suppress(BrokenPipeError):
                inputs.write(given or "")
                inputs.close()
        code = process.wait(timeout)
        if late.finished.is_set():
            raise subprocess.TimeoutExpired(list(arguments), timeout)
        late.cancel()
        return subprocess.CompletedProcess(list(arguments), code, *(text.result() for text in texts))


class ForkedWorker:
    """A worker process, a child of this one, with the parts of `subprocess.Popen` that a daemon uses."""

    def __init__(self, pid: int, tasks: int, results: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()
        self.stdin, self.stdout = os.fdopen(tasks, "wb"), os.fdopen(results, "rb")

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


def _work(loaded: Any, pipes: Sequence[int]) -> NoReturn:
    """Be a worker until its daemon ends."""
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


def _fork_workers(door: socket.socket, loaded: Any) -> NoReturn:
    """Fork a worker for each pair of pipes until the daemon ends. The process between the two ends at once, so that the
    worker becomes the daemon's child."""
    while pipes := socket.recv_fds(door, 1, 2)[1]:
        if not (between := os.fork()):
            if not (child := os.fork()):
                door.close()
                _work(loaded, pipes)
            door.sendall(str(child).encode())
            os._exit(0)
        for pipe in pipes:
            os.close(pipe)
        os.waitpid(between, 0)
        door.sendall(b"\n")
    os._exit(0)


def _prepare_workers(loaded: Any) -> None:
    """Let this daemon's workers be forked from a child that has their models, where the system can make a grandchild a
    child; that child has no threads."""
    if sys.platform != "linux":
        return
    from memd.daemon.services.distillation import worker_process

    mine, theirs = socket.socketpair()
    if not os.fork():
        mine.close()
        _fork_workers(theirs, loaded)
    theirs.close()
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start, lock, pids = worker_process.start, threading.Lock(), mine.makefile("rb")

    def forked(command: Sequence[str]) -> Any:
        if tuple(command[1:]) != WORKER:
            return start(command)
        (tasks, mine_tasks), (mine_results, results) = os.pipe(), os.pipe()
        with lock:
            socket.send_fds(mine, [b"."], [tasks, results])
            pid = int(pids.readline())
        os.close(tasks)
        os.close(results)
        return ForkedWorker(pid, mine_tasks, mine_results)

    worker_process.start = forked


def _daemon(loaded: Any) -> int:
    """Be a daemon in a forked process; the exit code."""
    _prepare_workers(loaded)
    _name("-m", "memd.daemon")
    sys.argv = ["memd.daemon"]
    faulthandler.enable()
    from memd.daemon.__main__ import main

    return main()


def _command(arguments: Sequence[str]) -> NoReturn:
    """Be a command in a forked process, and exit."""
    from memd.clients.cli import main

    _name("-P", "-m", "memd.clients.cli.main", *arguments)
    sys.argv = [main.__file__, *arguments]
    main.main()


def _preload_commands() -> None:
    """Import what every command imports."""
    from memd.clients.cli import application, connection, main, output
    from memd.clients.python import client

    assert application and client and connection and main and output
    gc.freeze()


def _received(door: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next wish, with its files; None when the tests are over."""
    message, files = b"", list[int]()
    while not message.endswith(b"\n"):
        part, came, _, _ = socket.recv_fds(door, 1 << 16, 4)
        if not part:
            return None, []
        message, files = message + part, files + came
    return json.loads(message), files


def _forked(door: socket.socket) -> list[str] | None:
    """Fork a process for each wish with files, and tell of a poll whether that process ended. Return the arguments in
    the forked process, which has the environment, the folder and the files of the wish; None after the last wish."""
    while True:
        wish, files = _received(door)
        if wish is None:
            return None
        if "poll" in wish:
            pid, status = os.waitpid(wish["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif not (answer := os.fork()):
            break
        for file in files:
            os.close(file)
        door.sendall(json.dumps(answer).encode() + b"\n")
    door.close()
    *files, folder = files
    os.fchdir(folder)
    os.close(folder)
    os.environ.clear()
    os.environ.update(wish["environment"])
    time.tzset()
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    return wish["arguments"]


def main(kind: str, fd: str) -> int:
    """Fork until the tests are over; the exit code, also of a forked process."""
    if kind == "memd":
        _preload_commands()
    models = _preload() if kind == "daemon" else None
    arguments = _forked(socket.socket(fileno=int(fd)))
    if arguments is None:
        return 0
    return _daemon(models) if kind == "daemon" else _command(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
