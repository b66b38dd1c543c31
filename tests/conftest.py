"""Fixtures of all tests: a temporary home, and a real daemon process in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from memd.clients.python import Client
from memd.protocol.errors import MemdError
from memd.protocol.places import Places, places
from tests.preloaded import ForkedProcess, Starter

DAEMONS = Starter("daemon")
START_S, END_S = 90.0, 30.0


def size(name: str) -> int:
    """A size of this run, 1 without the variable `MEMD_<name>`, which a daemon would refuse as a setting."""
    return int(os.environ.setdefault(name, os.environ.pop(f"MEMD_{name}", "1")))


FAULT_ROUNDS = size("FAULT_ROUNDS")
"""How often each fault is tried: 20 is the size of the reliability figures, 1 what every run of the tests does."""

EXAMPLES = size("EXAMPLES")
"""How many times as many examples the properties of replay are tried on."""


MEMORY_FOLDER = Path("/dev/shm")
MEMORY_BYTES = 4_000_000_000
"""Free bytes of that folder from which the tests use it; a run needs less than one tenth."""


def pytest_configure(config: pytest.Config) -> None:
    """Create temporary folders in memory if there is enough: a sync to disk takes milliseconds, and daemons sync
    thousands of times in a run. `--basetemp` and pytest's own variable choose another place."""
    if MEMORY_FOLDER.is_dir() and shutil.disk_usage(MEMORY_FOLDER).free >= MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_FOLDER))


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """What the loader and the interpreter read only when a program starts, so that a forked one does not follow it."""
    return {name: value for name, value in environment.items() if name.startswith(("LD_", "PYTHON", "LANG", "LC_"))}


class RunningDaemon:
    """A daemon process in a home of its own; it can be killed and started again on the same home."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.places: Places = places(environment, os.getuid())
        self.process: subprocess.Popen[bytes] | subprocess.Popen[str] | ForkedProcess | None = None
        self.errors = Path(environment["MEMD_HOME"]) / "stderr.txt"
        self.through: tuple[str, ...] = ()
        """A command that starts the daemon's and becomes it, such as `strace -D`."""

    def start(self) -> None:
        """Start and wait until it answers."""
        if self.through or read_at_start(self.environment) != read_at_start(os.environ):
            command = [*self.through, sys.executable, "-X", "faulthandler", "-m", "memd.daemon"]
            with self.errors.open("ab") as errors:
                self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stderr=errors)
        else:
            with self.errors.open("ab") as errors, open(os.devnull, "r+b") as nothing:
                files = (nothing.fileno(), nothing.fileno(), errors.fileno())
                self.process = DAEMONS.start((), self.environment, files)
        self.answers()

    def answers(self) -> None:
        """Wait until it does."""
        assert self.process is not None
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            try:
                with Client(self.places) as client:
                    client.status()
                return
            except MemdError:
                assert self.process.poll() is None, self.errors.read_text()
                time.sleep(0.02)
        raise AssertionError("the daemon did not answer: " + self.errors.read_text())

    def kill(self) -> None:
        """SIGKILL, as the worst neighbour would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def halt(self) -> None:
        """SIGSTOP, in force when this returns: it holds its sockets and answers nobody. `go_on` ends it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.001)

    def go_on(self) -> None:
        """SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> int:
        """SIGTERM, and the exit code; if it does not end, the stacks of its threads."""
        assert self.process is not None
        self.process.terminate()
        try:
            return self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()
            raise AssertionError("the daemon did not end: " + self.errors.read_text()) from None

    def client(self) -> Client:
        """A new client of this daemon."""
        return Client(self.places, deadline_ms=20_000)

    def settle(self, seconds: float = 120.0) -> None:
        """Wait until nothing is pending."""
        end = time.monotonic() + seconds
        with self.client() as client:
            client.distil()
            while client.status().pending:
                assert time.monotonic() < end, self.places.log.read_text()[-3000:]
                time.sleep(0.05)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Programs that the test starts end by Ctrl-C, also where the test run itself ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose memd lives in a temporary folder."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return {**os.environ, "MEMD_HOME": str(folder)}


DaemonOfCopy = Callable[[Path], RunningDaemon]


def new_home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment like `home`, for a daemon that serves several tests or prepares their homes."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    return {**os.environ, "MEMD_HOME": str(folder)}


@pytest.fixture
def daemon(home: dict[str, str]) -> Iterator[RunningDaemon]:
    """A real daemon, up; ended after the test."""
    running = RunningDaemon(home)
    running.start()
    yield running
    if running.process is not None and running.process.poll() is None:
        running.terminate()


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A real daemon for all cases of a module that do not depend on what other cases stored."""
    running = RunningDaemon(new_home(tmp_path_factory))
    running.start()
    yield running
    running.terminate()


@pytest.fixture
def daemon_of_copy(home: dict[str, str]) -> Iterator[DaemonOfCopy]:
    """Gives a daemon, not started, on a copy of the home that another daemon left when it ended."""
    running = RunningDaemon(home)

    def copied(prepared: Path) -> RunningDaemon:
        shutil.copytree(prepared, home["MEMD_HOME"], dirs_exist_ok=True)
        return running

    yield copied
    if running.process is not None and running.process.poll() is None:
        running.terminate()
