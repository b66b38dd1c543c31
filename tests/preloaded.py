"""Starts daemons of tests from a process that has imported the modules of the daemon once, so that each starts fast.

A forked daemon runs the same `main` as `python -m memd.daemon`, with the environment, the folder and the standard error
that the test gives. Tests of starting itself run the program.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


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
            command = [sys.executable, "-P", __file__]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def _preload() -> None:
    """Import what a daemon imports. No thread is there before a fork."""
    import memd.daemon.server.startup
    from memd.stages import reports, scan, speakers

    scan.prepare()
    assert memd.daemon.server.startup and reports and speakers


def _daemon(environment: dict[str, str], errors: str, cwd: str) -> int:
    """Be a daemon in a forked process; the exit code."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(0, 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), 2)
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
    _preload()
    sys.exit(_daemon(**wish) if (wish := _forked()) else 0)
