"""Starts and stops the daemon's process: what `memd up`, `memd down`, the demo and the benchmark share.

Comes in: an environment. Goes out: a process that answers, or an error with the daemon's own words for why it does not.
Invariants: a daemon that answers is never started twice nor killed (P-26); the process imports nothing from the current
folder, holds no terminal and outlives its parent.
"""

from __future__ import annotations

import os
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
STOP_S = 10.0
_BY_EXIT_CODE: dict[int, type[MemdError]] = {2: BadConfig, 5: StoreError, 6: ModelMissing, 7: Refused}
_RIVAL = frozenset({3, 5})
RIVAL_S = 3.0


def command() -> list[str]:
    """How the daemon is run. `-P`: a file of the current folder must not stand in for a module."""
    return [sys.executable, "-P", "-m", "memd.daemon"]


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """The daemon's environment: its working folder is another, so a relative home is made absolute.

    onnxruntime's wheels write a device id and a queue of events to the user's cache when imported, unless told not to
    (P-27).
    """
    home = environment.get("MEMD_HOME")
    return {**environment, **({"MEMD_HOME": os.path.abspath(home)} if home else {}), "ORT_DISABLE_TELEMETRY": "1"}


def start(places: Places, environment: Mapping[str, str], wait_s: float = START_S) -> subprocess.Popen[bytes]:
    """Starts the daemon of these places and waits until it answers; see `spawn` and `wait` for what they raise."""
    process, begin = spawn(places, environment)
    wait(process, places, begin, wait_s)
    return process


def spawn(places: Places, environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """A process that is starting, and where its words begin in the log. Raises Refused."""
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
            env=surroundings(environment),
            start_new_session=True,
        )
    finally:
        os.close(log)
    return process, begin


def wait(process: subprocess.Popen[bytes], places: Places, begin: int, wait_s: float = START_S) -> None:
    """Waits until the daemon of these places answers.

    Raises DeadlineExceeded if it does not in time, or the error that fits the process's exit code, with its reason.
    """
    end, rival_end = time.monotonic() + wait_s, 0.0
    while True:
        if answering(places, 500):
            return
        code = process.poll()
        if code in _RIVAL:  # perhaps another start was faster: its daemon will answer
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
    """The error that a daemon ended with, from its last words."""
    said = tail(log, begin, lines=12)
    message = next((line[6:] for line in reversed(said.split("\n")) if line.startswith("memd: ")), "")
    hint = next((line[6:] for line in reversed(said.split("\n")) if line.startswith("hint: ")), "")
    if message:
        return _BY_EXIT_CODE.get(code, Unavailable)(message, hint=hint)
    return Unavailable(f"the daemon ended with exit code {code}", hint=f"its log is {log}:\n{said or '(empty)'}")


def tail(log: Path, begin: int = 0, lines: int = 8) -> str:
    """The last lines that were written to the log since `begin`."""
    try:
        content = log.read_bytes()[begin:]
    except OSError:
        return ""
    return "\n".join(content.decode(errors="replace").splitlines()[-lines:])


def answering(places: Places, deadline_ms: float = 2_000) -> StatusText | None:
    """The status of the daemon that answers now, None if nobody listens or it closes just now."""
    with Client(places, deadline_ms) as client:
        try:
            return client.status()
        except (DaemonDown, DeadlineExceeded):
            return None


def stop(places: Places, wait_s: float = STOP_S) -> StatusText | None:
    """Asks the daemon to end and waits until it has; None if none ran. Raises DeadlineExceeded if it does not end."""
    with Client(places) as client:
        try:
            seen = client.status()
        except DaemonDown:
            return None
        with suppress(DaemonDown):  # it may be gone before its answer is
            client.stop()
    wait_until_ended(seen.pid, places, wait_s)
    return seen


def wait_until_ended(pid: int, places: Places, wait_s: float = STOP_S) -> None:
    """Waits until a daemon that was told to end has. Raises DeadlineExceeded if it does not."""
    end = time.monotonic() + wait_s
    while _is_alive(pid):
        if time.monotonic() > end:
            raise DeadlineExceeded(
                f"the daemon (pid {pid}) has not ended within {wait_s:.0f} s", hint=f"its log is {places.log}"
            )
        time.sleep(0.02)


def end(process: subprocess.Popen[bytes], places: Places) -> None:
    """Ends a daemon of one's own, whatever state it is in: asks, then insists."""
    try:
        with Client(places, 2_000) as client:
            client.stop()
    except MemdError:
        process.terminate()
    for insist in (process.terminate, process.kill):
        try:
            process.wait(STOP_S)
            return
        except subprocess.TimeoutExpired:
            insist()
    process.wait()


def _is_alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits for its parent to look does not."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self/stat").exists()
