"""Clients that open too much, send too much or read too little harm themselves alone (P-28); a vanished home (P-29)."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from memd.clients.python import Client, launch
from memd.clients.python.zmtp import READY, Connection, Deadline
from memd.protocol import wire
from memd.protocol.errors import StoreError, Unavailable
from memd.protocol.places import places
from memd.protocol.request import GetStatus
from memd.protocol.settings import ListSettings
from memd.protocol.zmtp_frames import COMMAND, GREETING, MORE, frame

FILES = 320
"""Open files of the daemon: 256 stay free, which leaves room for 64 connections."""


def _dial(path: Path) -> socket.socket:
    """A connection that has shaken hands."""
    channel = socket.socket(socket.AF_UNIX)
    channel.settimeout(20)
    channel.connect(str(path))
    channel.sendall(GREETING + frame(READY, COMMAND))
    received = 0
    while received < 64:
        received += len(channel.recv(4096))
    return channel


def _rss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _send_until_closed(channel: socket.socket, piece: bytes, most: int) -> int:
    """Send pieces until the peer closes or `most` bytes are sent; return the bytes sent."""
    sent = 0
    with closing(channel):
        while sent < most:
            try:
                channel.sendall(piece)
            except OSError:
                break
            sent += len(piece)
    return sent


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The places of a daemon with few files, and its process."""
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "MEMD_HOME": str(home)}
    here = places(environment, os.getuid())

    limited = f"ulimit -n {FILES}; exec {sys.executable} -m memd.daemon"
    process = subprocess.Popen(["/bin/sh", "-c", limited], env=environment)
    launch.wait(process, here, 0)
    yield here, process
    launch.end(process, here)


def test_connections_beyond_the_limit_are_refused_with_a_reason_P28(crowded: Any) -> None:
    here, process = crowded
    with Client(here) as early, ExitStack() as stack:
        assert early.status().pid == process.pid
        kept = [stack.enter_context(closing(_dial(here.socket))) for _ in range(40)]
        refused = 0
        for _ in range(60):
            try:
                stack.enter_context(closing(Connection(here.socket, Deadline(20_000))))
            except Unavailable as error:
                refused += 1
                assert "connections" in error.message and error.hint
        assert refused >= 20
        assert early.status().pid == process.pid
        kept[0].sendall(frame(wire.encode_request(GetStatus(rid=1))))
        assert kept[0].recv(10)
    with Client(here) as late:  # the places of closed connections are free again
        end = time.monotonic() + 90
        while time.monotonic() < end:
            try:
                assert late.status().pid == process.pid
                return
            except Unavailable:
                time.sleep(0.05)
    raise AssertionError("no place became free")


def test_a_client_that_reads_nothing_stops_no_other_and_no_memory_grows_P28(crowded: Any) -> None:
    here, process = crowded
    with Client(here, 20_000) as other:
        other.settings()
        before = _rss_mb(process.pid)
        for wish in (ListSettings(rid=7), GetStatus(rid=7)):
            channel = _dial(here.socket)
            channel.settimeout(0.5)
            wishes = frame(wire.encode_request(wish)) * 20_000
            with pytest.raises(TimeoutError):  # memd takes no more requests of it than it has room for
                channel.sendall(wishes * 4)
            assert other.settings().settings
            assert other.status().pid == process.pid
            channel.close()
        assert _rss_mb(process.pid) < before + 64


def test_a_slow_reader_gets_every_reply_in_the_end_P28(crowded: Any) -> None:
    here, _ = crowded
    with closing(Connection(here.socket, Deadline(60_000))) as connection:
        deadline = Deadline(60_000)
        for number in range(1, 801):
            connection.send(wire.encode_request(ListSettings(rid=number)), deadline)
        rids = [wire.head(connection.receive(deadline))[0] for _ in range(800)]
    assert rids == list(range(1, 801))


@pytest.mark.parametrize("piece", [frame(bytes(100), MORE) * 500, frame(bytes(900_000), MORE)])
def test_a_message_without_an_end_ends_its_connection_P28(crowded: Any, piece: bytes) -> None:
    here, process = crowded
    before = _rss_mb(process.pid)
    assert _send_until_closed(_dial(here.socket), piece, 200_000_000) < 100_000_000
    assert _rss_mb(process.pid) < before + 64
    with Client(here) as client:
        assert client.status().pid == process.pid


def test_many_unfinished_messages_together_stay_below_a_limit_P28(crowded: Any) -> None:
    here, process = crowded
    before = _rss_mb(process.pid)
    beginning = b"\x02" + (7_000_000).to_bytes(8) + bytes(6_900_000)
    with ExitStack() as stack:
        for _ in range(20):
            channel = stack.enter_context(closing(_dial(here.socket)))
            try:
                channel.sendall(beginning)
            except OSError:
                continue
        assert _rss_mb(process.pid) < before + 100
        with Client(here) as client:
            assert client.status().pid == process.pid


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        GREETING[:12] + b"PLAIN".ljust(20, b"\0") + bytes(32),
        GREETING[:10] + b"\x01" + GREETING[11:],
        GREETING + b"\x04\xff" + bytes(255),
        GREETING + frame(READY.replace(b"DEALER", b"SUBSCR"), COMMAND),
        GREETING + frame(READY, COMMAND) + b"\xf8\x00",
        GREETING + frame(READY, COMMAND) + b"\x02" + b"\xff" * 8,
    ],
)
def test_bytes_that_are_not_ZMTP_end_their_connection_P28(crowded: Any, bytes_sent: bytes) -> None:
    here, process = crowded
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(20)
        channel.connect(str(here.socket))
        channel.sendall(bytes_sent)
        while channel.recv(4096):
            pass
    with Client(here) as client:
        assert client.status().pid == process.pid


def test_a_message_may_arrive_byte_by_byte_and_a_ping_is_answered_P28(crowded: Any) -> None:
    here, _ = crowded
    with closing(Connection(here.socket, Deadline(20_000))) as connection:
        channel = connection._socket  # pyright: ignore[reportPrivateUsage]
        wish = frame(b"", MORE) + frame(b"\x04PING\x00\x00context", COMMAND) + frame(b'{"request":"status","rid":5}')
        for number in range(len(wish)):
            channel.sendall(wish[number : number + 1])
        content = b""
        while b'"rid":5' not in content:
            content += channel.recv(65536)
    assert frame(b"\x04PONGcontext", COMMAND) in content


def test_down_ends_a_daemon_that_does_not_answer_P26(daemon: Any) -> None:
    daemon.halt()
    assert launch.stop(daemon.places) == daemon.process.pid
    assert daemon.process.wait(20) == -signal.SIGKILL
    assert launch.stop(daemon.places) == 0


def test_down_works_without_the_socket_P26(daemon: Any) -> None:
    daemon.places.socket.unlink()
    assert launch.stop(daemon.places) == daemon.process.pid
    assert daemon.process.wait(20) == 0


def test_a_removed_data_folder_refuses_writes_and_up_starts_again_P29(daemon: Any) -> None:
    with daemon.client() as client:
        client.remember("The lamp is in the attic.")
        shutil.rmtree(daemon.places.data)
        with pytest.raises(StoreError, match="removed") as caught:
            client.remember("The lamp is in the cellar.")
        assert "memd up" in caught.value.hint
        status = client.status()
        assert status.is_removed and any("removed" in trouble for trouble in status.troubles)

    def run(command: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-P", "-m", "memd.clients.cli.main", command]
        return subprocess.run(line, env=daemon.environment, capture_output=True, text=True, check=False)

    for command, code in (("status", 0), ("up", 0), ("status", 0), ("down", 0)):
        done = run(command)
        assert done.returncode == code and "Traceback" not in done.stderr, (command, done)
        if command == "up":
            assert "removed" in done.stderr
    assert daemon.process.wait(20) == 0


def test_a_daemon_whose_whole_home_was_removed_ends_and_leaves_a_new_home_alone_P29(daemon: Any) -> None:
    home = daemon.places.data.parent
    shutil.rmtree(home)
    with pytest.raises(Unavailable), Client(daemon.places) as client:
        client.status()
    started = launch.start(daemon.places, daemon.environment)
    try:
        assert daemon.process.wait(30) == 0
        with Client(daemon.places) as client:
            assert client.status().pid == started.pid
            client.remember("The lamp is in the attic.")
    finally:
        launch.end(started, daemon.places)
