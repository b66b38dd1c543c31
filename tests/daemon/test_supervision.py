"""The daemon under a service manager: a real notify socket, the watchdog, a socket handed over (U1, P-26)."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.clients.python import Client
from memd.daemon.server.supervision import Supervision
from memd.protocol.errors import MemdError
from memd.protocol.places import places
from tests.conftest import RunningDaemon


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """A notify socket, and its address."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path)
        listening.settimeout(20)
        yield listening, path


def test_it_says_ready_lives_on_and_stops_U1(home: dict[str, str], manager: tuple[socket.socket, str]) -> None:
    listening, path = manager
    running = RunningDaemon({**home, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
    running.start()
    assert listening.recv(99) == b"READY=1"
    assert [listening.recv(99) for _ in range(2)] == [b"WATCHDOG=1"] * 2
    assert running.terminate() == 0
    told = {listening.recv(99)}
    while b"STOPPING=1" not in told:
        told.add(listening.recv(99))
    assert told <= {b"WATCHDOG=1", b"STOPPING=1"}


def test_a_watchdog_of_another_process_or_an_abstract_address_is_no_trouble(
    home: dict[str, str], tmp_path: Path
) -> None:
    address = f"memd-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        if sys.platform != "linux":
            pytest.skip("abstract addresses are Linux's")
        listening.bind("\0" + address)
        listening.settimeout(5)
        environment = {"NOTIFY_SOCKET": "@" + address, "WATCHDOG_USEC": "20", "WATCHDOG_PID": "1"}
        supervision = Supervision(environment, time.monotonic)
        assert environment == {}
        supervision.tell("READY=1")
        supervision.ping(lambda: True)
        supervision.tell("STOPPING=1")
        assert [listening.recv(99), listening.recv(99)] == [b"READY=1", b"STOPPING=1"]


def test_who_is_not_well_does_not_ping(manager: tuple[socket.socket, str]) -> None:
    listening, path = manager
    clock = iter(range(0, 1000, 10))
    supervision = Supervision({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000000"}, lambda: float(next(clock)))
    supervision.ping(lambda: False)
    supervision.ping(lambda: True)
    supervision.tell("STOPPING=1")
    assert [listening.recv(99), listening.recv(99)] == [b"WATCHDOG=1", b"STOPPING=1"]


def test_a_manager_that_went_away_is_no_trouble(tmp_path: Path) -> None:
    Supervision({"NOTIFY_SOCKET": str(tmp_path / "gone")}, time.monotonic).tell("READY=1")


def listening(path: Path) -> bool:
    """Whether the socket takes connections: between its name and that there is a moment. Asks the kernel alone."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    return any(row[-1] == str(path) and int(row[3], 16) & 0x10000 for row in rows[1:])


@pytest.mark.skipif(not shutil.which("systemd-socket-activate"), reason="systemd-socket-activate is not here")
def test_the_first_client_starts_it_and_the_socket_stays_the_managers_U1(home: dict[str, str], tmp_path: Path) -> None:
    at = places(home, os.getuid())
    at.run.mkdir(mode=0o700)
    with (tmp_path / "said.txt").open("wb") as said:
        activator = subprocess.Popen(
            [
                *("systemd-socket-activate", "-l", str(at.socket)),
                *(f"-E{name}" for name in home if name != "_"),
                *(sys.executable, "-m", "memd.daemon"),
            ],
            env=home,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        end = time.monotonic() + 90
        while not at.socket.exists() and time.monotonic() < end:
            time.sleep(0.01)
        while not listening(at.socket) and time.monotonic() < end:
            time.sleep(0.01)
        with Client(at, deadline_ms=30_000) as client:
            status = client.status()
            assert status.pid == activator.pid  # it becomes what it starts
            assert client.remember("The lamp is on.").record.content == "The lamp is on."
        os.kill(status.pid, signal.SIGTERM)
        assert activator.wait(20) == 0, (tmp_path / "said.txt").read_text()
        assert at.socket.exists() and not at.socket_file.exists()
    finally:
        activator.kill()
        activator.wait()
    with pytest.raises(MemdError):
        Client(at, deadline_ms=500).status()
