"""Start and stop the daemon's process, for `memd up`, `memd down`, the demo and the benchmark.

Invariants: a daemon that answers is never started twice (P-26), and is killed only if it does not end; the process
outlives its parent.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...protocol.errors import (
    BadConfig,
    DaemonDown,
    DeadlineExceeded,
    MemdError,
    ModelMissing,
    Refused,
    StoreError,
    Unavailable,
)
from ...protocol.places import Places
from ...protocol.reply import StatusText
from .client import Client
from .folder import make_private

START_S = 30.0
REQUEST_MS = 500
STOP_S, KILLED_S = 3.5, 5.0
"""Time that a daemon has for ending by itself, and then after SIGKILL; it loses nothing that it acknowledged."""

END_S = 10.0
_BY_EXIT_CODE: dict[int, type[MemdError]] = {2: BadConfig, 5: StoreError, 6: ModelMissing, 7: Refused}
_RIVAL = frozenset({3, 5})
RIVAL_S = 3.0


def command() -> list[str]:
    """Return the daemon's command line. `-P`: a file of the current folder must not replace a module."""
    return [sys.executable, "-P", "-m", "memd.daemon"]


def daemon_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the daemon's environment, with an absolute home, because its working folder is another. onnxruntime's
    variable keeps its wheels from writing a device id and an event queue into the user's cache (P-27)."""
    home = environment.get("MEMD_HOME")
    return {**environment, **({"MEMD_HOME": os.path.abspath(home)} if home else {}), "ORT_DISABLE_TELEMETRY": "1"}


def start(places: Places, environment: Mapping[str, str], wait_s: float = START_S) -> subprocess.Popen[bytes]:
    """Start the daemon and wait until it answers. Raises what `spawn` and `wait` raise."""
    process, begin = spawn(places, environment)
    wait(process, places, begin, wait_s)
    return process


def spawn(places: Places, environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start the process; return it and the log's size before. Raises Refused."""
    try:
        make_private(places.state)
        log = os.open(places.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Refused(f"{places.log} can't be written: {error.strerror}", hint="set MEMD_HOME to your own") from error
    try:
        begin = os.fstat(log).st_size
        process = subprocess.Popen(
            command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=daemon_environment(environment),
            start_new_session=True,
        )
    finally:
        os.close(log)
    return process, begin


def wait(process: subprocess.Popen[bytes], places: Places, begin: int, wait_s: float = START_S) -> None:
    """Wait until the daemon answers. Raises DeadlineExceeded, or the error that the process's exit code means."""
    end, rival_end = time.monotonic() + wait_s, 0.0
    while True:
        if answering(places, 500):
            return
        code = process.poll()
        if code in _RIVAL:  # another start may have been faster: its daemon will answer
            rival_end = rival_end or time.monotonic() + RIVAL_S
        if code is not None and time.monotonic() >= rival_end:
            raise _reason(code, places.log, begin)
        if time.monotonic() >= end:
            raise DeadlineExceeded(
                f"the daemon did not answer within {wait_s:.0f} s; it may still be starting",
                hint=f"its log is {places.log}: {tail(places.log, begin) or '(empty)'}",
            )
        time.sleep(0.02)


def _reason(code: int, log: Path, begin: int) -> MemdError:
    ending = tail(log, begin, lines=12)
    message = next((line[6:] for line in reversed(ending.split("\n")) if line.startswith("memd: ")), "")
    hint = next((line[6:] for line in reversed(ending.split("\n")) if line.startswith("hint: ")), "")
    if message:
        return _BY_EXIT_CODE.get(code, Unavailable)(message, hint=hint)
    return Unavailable(f"the daemon ended with exit code {code}", hint=f"its log is {log}:\n{ending or '(empty)'}")


def tail(log: Path, begin: int = 0, lines: int = 8) -> str:
    """Return the last lines of the log behind byte `begin`."""
    try:
        content = log.read_bytes()[begin:]
    except OSError:
        return ""
    return "\n".join(content.decode(errors="replace").splitlines()[-lines:])


def answering(places: Places, deadline_ms: float = 2_000) -> StatusText | None:
    """Return the status of the running daemon, None if none answers."""
    with Client(places, deadline_ms) as client:
        try:
            return client.status()
        except (DaemonDown, DeadlineExceeded):
            return None


def process_id(places: Places) -> int:
    """Return the process id of the daemon that holds the lock of the data folder, 0 if none does."""
    try:
        with places.lock.open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                content = lock.read(20).strip()
                return int(content) if content.isdigit() else 0
    except OSError:
        pass
    return 0


def stop(places: Places) -> int:
    """Stop the daemon and wait until it has ended, for at most five seconds: by request, and with signals if it does
    not answer or end. Return its process id, 0 if none ran. Raises Refused for another user's, DeadlineExceeded."""
    pid = 0
    try:
        with Client(places, REQUEST_MS) as client:
            pid = client.status().pid
            client.stop()
    except Refused:
        raise
    except MemdError:  # it may end before its answer arrives, or be too busy to answer
        pid = pid or process_id(places)
        if not pid:
            return 0
        _signal(pid, signal.SIGTERM)
    wait_until_ended(pid, places)
    return pid


def wait_until_ended(pid: int, places: Places, wait_s: float = STOP_S) -> None:
    """Wait until a stopping daemon has ended; kill it after `wait_s`. Raises DeadlineExceeded if that does not help."""
    end = time.monotonic() + wait_s
    is_killed = False
    while _is_alive(pid):
        if time.monotonic() > end:
            if is_killed:
                raise DeadlineExceeded(f"the daemon (pid {pid}) does not end", hint=f"its log is {places.log}")
            _signal(pid, signal.SIGKILL)
            is_killed, end = True, end + KILLED_S
        time.sleep(0.02)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def end(process: subprocess.Popen[bytes], places: Places) -> None:
    """End a daemon that this process started: by request, then by SIGTERM and SIGKILL."""
    try:
        with Client(places, 2_000) as client:
            client.stop()
    except MemdError:
        process.terminate()
    for end_process in (process.terminate, process.kill):
        try:
            process.wait(END_S)
            return
        except subprocess.TimeoutExpired:
            end_process()
    process.wait()


def _is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self/stat").exists()
