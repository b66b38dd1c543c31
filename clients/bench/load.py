"""Requests of one client while others open 2,000 connections, read no replies, or send messages without an end.

The others are processes of their own. The figures are for the machine's load: a client that sends without a pause uses
its share of the processor.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from ...protocol import request, wire
from ...protocol.settings import ListSettings
from ...protocol.zmtp_frames import COMMAND, GREETING, MORE, frame
from ..python import launch
from ..python.client import socket_path
from ..python.zmtp import READY, Connection, Deadline
from .latency import exchange
from .measurement import BenchOptions, Figure, PartResult, at_most, elapsed_ms, percentile_figure
from .processes import memory_bytes
from .temporary_daemon import temporary_daemon

CONNECTIONS, UNREAD, ROUNDS = 2_000, 20_000, 400
MB = 1_000_000


def load(options: BenchOptions) -> PartResult:
    """Profiles of one client, idle and while others open 2,000 connections, leave 20,000 replies unread, or send
    messages without an end; the daemon's memory; how long it takes to end under all of that."""
    rounds = ROUNDS // 4 if options.quick else ROUNDS
    with temporary_daemon({"MEMD_IDLE_S": "1000000"}) as client:
        client.remember("We keep the orchard plan in the kitchen.")
        home, pid = client.places, client.status().pid
        wish = wire.encode_request(request.Profile(rid=1))
        with closing(Connection(socket_path(home), Deadline(60_000))) as connection:

            def ask(number: int) -> object:
                return exchange(connection, wish)

            def measured() -> list[float]:
                return [elapsed_ms(ask, number) for number in range(rounds)]

            measured()
            idle, before = measured(), memory_bytes(pid)
            figures: list[Figure] = []
            with ExitStack() as others:
                for kind in ATTACKS:
                    options.progress(f"load: {kind}")
                    with _attack((kind,), socket_path(home)):
                        times = measured()
                    figures.append(percentile_figure(f"{kind} p99", times, 99, idle, at_most(5, times=True)))
                others.enter_context(_attack(tuple(ATTACKS), socket_path(home)))
                times = measured()
                figures.append(percentile_figure("all together p99", times, 99, idle, at_most(5, times=True)))
                memory = memory_bytes(pid)
                begin = time.perf_counter()
                launch.stop(home)
                ended_s = time.perf_counter() - begin
    bound = 2 * before / MB + 64
    figures.append(Figure("memory under load", memory / MB, "MB", before / MB, target=at_most(round(bound, 1))))
    figures.append(Figure("`memd down` under load", ended_s, "s", target=at_most(5)))
    return PartResult(tuple(figures), shows_not="a machine whose processors are all busy with other work")


# --- the other clients, each in a process of its own ------------------------------------------------------------------
@contextmanager
def _attack(kinds: Sequence[str], path: Path) -> Generator[None]:
    module = __spec__.name if __spec__ else __name__
    with ExitStack() as stack:
        for kind in kinds:
            command = [sys.executable, "-P", "-m", module, kind, str(path)]
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        yield


def _dial(path: str) -> socket.socket:
    while True:
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(None)
        try:
            channel.connect(path)
            channel.sendall(GREETING + frame(READY, COMMAND))
            channel.recv(4096)
        except BlockingIOError:
            channel.close()
            time.sleep(0.001)
            continue
        return channel


def _ready() -> None:
    print("ready", flush=True)


def _connect(path: str) -> None:
    channels = [_dial(path) for _ in range(CONNECTIONS)]
    _ready()
    os.read(0, 1)
    del channels


def _read_nothing(path: str) -> None:
    channel = _dial(path)
    _ready()
    channel.sendall(frame(wire.encode_request(ListSettings(rid=1))) * UNREAD)
    os.read(0, 1)


def _send_without_end(path: str) -> None:
    _ready()
    while True:
        with suppress(BrokenPipeError, ConnectionResetError), closing(_dial(path)) as channel:
            while True:
                channel.sendall(frame(bytes(900_000), MORE))


ATTACKS: dict[str, Callable[[str], None]] = {
    "2,000 connections": _connect,
    "20,000 unread replies": _read_nothing,
    "endless messages": _send_without_end,
}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with suppress(ConnectionError, FileNotFoundError):  # the daemon ended
        ATTACKS[sys.argv[1]](sys.argv[2])
