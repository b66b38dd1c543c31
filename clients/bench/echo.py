"""The floor: a bare ROUTER that sends back what it gets, in a process of its own.

Comes in: a socket's path. Goes out: each message, unchanged. What answers is pyzmq itself and nothing of ours, so that
a measurement beside it shows what memd adds to the transport.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ...protocol.errors import DaemonDown
from ..python.zmtp import Connection, Deadline

START_MS = 10_000


@contextmanager
def echoing(path: Path) -> Generator[Path]:
    """An echo that listens on `path`, in a process that ends with the block."""
    module = __spec__.name if __spec__ else __name__
    process = subprocess.Popen([sys.executable, "-P", "-m", module, str(path)], stdin=subprocess.PIPE)
    try:
        _await(process, path)
        yield path
    finally:
        process.kill()
        process.wait()
        path.unlink(missing_ok=True)


def _await(process: subprocess.Popen[bytes], path: Path) -> None:
    """Waits until it takes a connection: the path is there a moment before anybody listens on it."""
    deadline = Deadline(START_MS)
    while process.poll() is None:
        try:
            Connection(path, deadline).close()
            return
        except DaemonDown:
            time.sleep(min(0.01, deadline.left()))
    raise RuntimeError(f"the echo ended with exit code {process.returncode}")


def serve(path: str) -> None:
    """Echoes until the parent's end of standard input closes."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        router.bind(f"ipc://{path}")
        poller = zmq.Poller()
        poller.register(router, zmq.POLLIN)
        poller.register(sys.stdin.fileno(), zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 1):
                return
            if router in ready:
                router.send_multipart(router.recv_multipart())


if __name__ == "__main__":
    serve(sys.argv[1])
