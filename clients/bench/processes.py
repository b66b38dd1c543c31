"""Processes to measure beside, which import nothing of memd: a bare ROUTER, a bare LMDB group commit, a CPU load; the
CPU and memory of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

Kind = Literal["echo", "answer", "lmdb"]
"""`echo` sends back each message; `answer` and `lmdb` take all waiting messages at once, which is the fastest simple
way, and send `ANSWER` to each; `lmdb` commits the messages first."""

GROUP = 512
ANSWER = b"x" * 100
SLICE_S = 0.02


@contextmanager
def _child(*arguments: str) -> Generator[None]:
    """This module in a process of its own, from its first line of output until the block ends."""
    module = __spec__.name if __spec__ else __name__
    command = [sys.executable, "-P", "-m", module, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"{arguments[0]} did not start: exit code {process.wait()}")
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def baseline(kind: Kind, path: Path) -> Generator[Path]:
    """A server that listens on `path` while the block lasts."""
    with _child(kind, str(path)):
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def cpu_load(core_share: float, niceness: int) -> Generator[None]:
    """A process of that niceness that uses a share of a core while the block lasts."""
    with _child("burn", str(core_share), str(niceness)):
        yield


# --- CPU and memory of running processes -----------------------------------------------------------------------------
def _readings(pid: int, read: Callable[[Any], float]) -> list[float]:
    """`read` of a process and of each of its children, as far as they still run. Raises InvalidRequest."""
    try:
        import psutil
    except ImportError as error:
        from ...protocol.errors import InvalidRequest

        raise InvalidRequest("psutil is not installed", hint="pip install 'memd[bench]'") from error
    readings: list[float] = []
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                readings.append(read(member))
    return readings


def cpu_s(pid: int) -> float:
    """CPU seconds that a process and its children have used, ended children included."""

    def spent(process: Any) -> float:
        times = process.cpu_times()
        ended = times.children_user + times.children_system if process.pid == pid else 0.0
        return times.user + times.system + ended

    return sum(_readings(pid, spent))


def core_ms(pid: int) -> float:
    """Milliseconds of a core that one process has used, as exact as the system counts them."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e6
    except OSError:
        return cpu_s(pid) * 1000


def memory_bytes(pid: int) -> int:
    return int(sum(_readings(pid, lambda process: process.memory_info().rss)))


def anonymous_bytes(pid: int) -> int:
    """Resident bytes of a process that no file backs, 0 once it is gone; without /proc all of it and its children."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return memory_bytes(pid) if not Path("/proc/self/status").exists() else 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def highest_niceness(pid: int) -> int:
    """The highest niceness of a process and its children; 0 or more."""
    return int(max([0, *_readings(pid, lambda process: process.nice())]))


# --- in the child ----------------------------------------------------------------------------------------------------
def serve(kind: str, path: str) -> None:
    """Answer messages until standard input closes."""
    import lmdb
    import zmq

    with (
        tempfile.TemporaryDirectory(dir=Path(path).parent) as folder,
        zmq.Context() as context,
        context.socket(zmq.ROUTER) as router,
    ):
        environment = lmdb.open(folder, map_size=4 << 30)
        router.linger = 0
        router.bind(f"ipc://{path}")
        poller = zmq.Poller()
        poller.register(router, zmq.POLLIN)
        poller.register(sys.stdin.fileno(), zmq.POLLIN)
        print("ready", flush=True)
        seq, is_echo = 0, kind == "echo"
        while True:
            ready = dict(poller.poll())
            if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 1):
                return
            group = _waiting(router, 1 if is_echo else GROUP)
            if kind == "lmdb" and group:
                with environment.begin(write=True) as transaction:
                    for _, body in group:
                        seq += 1
                        transaction.put(seq.to_bytes(8), body, append=True)
            for identity, body in group:
                router.send_multipart((identity, body if is_echo else ANSWER))


def _waiting(router: Any, most: int) -> list[list[bytes]]:
    import zmq

    group: list[list[bytes]] = []
    while len(group) < most:
        try:
            group.append(router.recv_multipart(zmq.NOBLOCK))
        except zmq.Again:
            break
    return group


def burn(core_share: float, niceness: int) -> None:
    os.nice(max(0, niceness - os.nice(0)))
    print("ready", flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        end = time.perf_counter() + SLICE_S
        busy = time.process_time() + min(1.0, core_share) * SLICE_S
        while time.process_time() < busy:
            sum(range(500))
        time.sleep(max(0.0, end - time.perf_counter()))


if __name__ == "__main__":
    if sys.argv[1] == "burn":
        burn(float(sys.argv[2]), int(sys.argv[3]))
    else:
        serve(sys.argv[1], sys.argv[2])
