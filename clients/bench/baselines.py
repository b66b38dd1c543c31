"""Processes to measure beside: a bare ROUTER, a bare LMDB group commit, and a process that uses CPU.

The servers call pyzmq and lmdb directly and nothing of memd, so that a measurement beside them shows what memd adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from ..python.zmtp import Connection, Deadline

Kind = Literal["echo", "answer", "lmdb"]
"""`echo` sends back each message; `answer` and `lmdb` take all waiting messages at once, which is the fastest simple
way, and send `ANSWER` to each; `lmdb` commits the messages first."""

GROUP = 512
ANSWER = b"x" * 100
DEADLINE_MS = 5_000
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
def echo_call(path: Path, size: int) -> Generator[Callable[[], bytes]]:
    """A function that sends `size` bytes to an echo on `path` and waits until they are back."""
    body = bytes(size)
    with baseline("echo", path), closing(Connection(path, Deadline(DEADLINE_MS))) as connection:
        yield lambda: exchange(connection, body)


def exchange(connection: Connection, body: bytes) -> bytes:
    """Send a message and wait for the answer."""
    deadline = Deadline(DEADLINE_MS)
    connection.send(body, deadline)
    return connection.receive(deadline)


@contextmanager
def cpu_load(core_share: float, niceness: int) -> Generator[None]:
    """A process of that niceness that uses a share of a core while the block lasts."""
    with _child("burn", str(core_share), str(niceness)):
        yield


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
        seq = 0
        while True:
            ready = dict(poller.poll())
            if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 1):
                return
            group = _waiting(router, 1 if kind == "echo" else GROUP)
            if kind == "lmdb" and group:
                with environment.begin(write=True) as transaction:
                    for _, body in group:
                        seq += 1
                        transaction.put(seq.to_bytes(8), body, append=True)
            for identity, body in group:
                router.send_multipart((identity, body if kind == "echo" else ANSWER))


def _waiting(router: Any, most: int) -> list[list[bytes]]:
    """The messages that are waiting, at most so many."""
    import zmq

    group: list[list[bytes]] = []
    while len(group) < most:
        try:
            group.append(router.recv_multipart(zmq.NOBLOCK))
        except zmq.Again:
            break
    return group


def burn(core_share: float, niceness: int) -> None:
    """Use CPU until the parent process ends."""
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
