"""Floors of a durable capture: a ROUTER that echoes, and one that commits to LMDB in groups, each a process of its own.

Comes in: a kind and a socket's path. Goes out: a short answer to each message. pyzmq and lmdb are called directly and
nothing of ours, so that a measurement beside them shows what memd adds. Both drain what waits before they answer, which
is the fastest simple way to do it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

Kind = Literal["echo", "lmdb"]
GROUP = 512
ANSWER = b"x" * 100


@contextmanager
def floor(kind: Kind, path: Path) -> Generator[Path]:
    """A floor that listens on `path`, in a process that ends with the block."""
    module = __spec__.name if __spec__ else __name__
    command = [sys.executable, "-P", "-m", module, kind, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"the floor did not start: exit code {process.wait()}")
        yield path
    finally:
        process.kill()
        process.wait()
        path.unlink(missing_ok=True)


def serve(kind: str, path: str) -> None:
    """Answers until the parent's end of standard input closes."""
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
            group = _drained(router)
            if kind == "lmdb" and group:
                with environment.begin(write=True) as transaction:
                    for _, body in group:
                        seq += 1
                        transaction.put(seq.to_bytes(8), body, append=True)
            for identity, _ in group:
                router.send_multipart((identity, ANSWER))


def _drained(router: Any) -> list[list[bytes]]:
    import zmq

    group: list[list[bytes]] = []
    while len(group) < GROUP:
        try:
            group.append(router.recv_multipart(zmq.NOBLOCK))
        except zmq.Again:
            break
    return group


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
