"""What surrounds the daemon: dying clients, no network, other users, faults in status (P-1, P-12, P-19, P-27)."""

import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from memd.clients.python import Client
from memd.protocol.errors import Refused
from memd.protocol.event import Origin, Said
from memd.protocol.places import Places, places
from tests.conftest import RunningDaemon

AT = "2026-03-04T18:30:00+01:00"
OTHER = 65_534
is_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else, or leave the network")
has_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system has no /proc")


def held(pid: int) -> tuple[int, int]:
    """Descriptors and children of a process."""
    proc = Path(f"/proc/{pid}")
    children = sum(len((task / "children").read_text().split()) for task in (proc / "task").iterdir())
    return len(list((proc / "fd").iterdir())), children


CONNECT_AND_WAIT = """
import os, socket, time
from memd.clients.python import Client
from memd.protocol.places import places

at = places(os.environ, os.getuid())
held = []
for number in range(25):  # one in five is in the middle of its greeting
    if number % 5 == 4:
        half = socket.socket(socket.AF_UNIX)
        half.connect(str(at.socket))
        half.send(b"\\xff" + bytes(number % 9))
        held.append(half)
    else:
        client = Client(at, deadline_ms=30_000)
        client.status()
        held.append(client)
print(len(held), flush=True)
time.sleep(1000)
"""


@has_proc
def test_two_hundred_clients_that_are_killed_leave_nothing_behind_P1(daemon: Any) -> None:
    pid = daemon.process.pid
    with daemon.client() as client:
        client.status()
        time.sleep(0.3)  # what the daemon does after it opened has ended
        before = held(pid)
        command = [sys.executable, "-c", CONNECT_AND_WAIT]
        clients = [subprocess.Popen(command, env=daemon.environment, stdout=subprocess.PIPE) for _ in range(8)]
        for each in clients:
            assert each.stdout and each.stdout.readline() == b"25\n"
        assert held(pid)[0] >= before[0] + 160
        for each in clients:
            each.kill()
            each.communicate()
        end = time.monotonic() + 60
        while held(pid)[0] > before[0] and time.monotonic() < end:
            client.status()
            time.sleep(0.1)
        after = held(pid)
        assert after[0] <= before[0] and after[1] == before[1], (before, after)


@pytest.mark.slow
@is_root
@pytest.mark.skipif(not all(map(shutil.which, ("unshare", "strace", "ip"))), reason="unshare, strace or ip is missing")
def test_with_loopback_alone_all_works_and_nothing_looks_for_a_network_P27(
    home: dict[str, str], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    steps = f"""
set -e
ip link set lo up
memd() {{ "{sys.executable}" -P -m memd.clients.cli.main "$@"; }}
strace -f --seccomp-bpf -qq -e trace=socket,connect,sendto,sendmsg -o {trace} "{sys.executable}" -m memd.daemon &
for i in $(seq 300); do memd status >/dev/null 2>&1 && break; sleep .1; done
memd remember 'I use tabs for indentation in Go.'
printf '%s\\n' '{{"request":"capture","origin":{{"host":"h","session":"s"}},"events":[{{"event":"said","turn":"1",\
"at":"{AT}","role":"user","text":"We decided to keep SQLite because backups are simple."}}]}}' \
    > "$MEMD_HOME/state/spool/h-999999999-1.lines"
for i in $(seq 300); do memd session list | grep -q '^h:s' && break; sleep .1; done
"{sys.executable}" -c "
import time
from memd.clients.python import Client
with Client(deadline_ms=30000) as client:
    client.distil()
    while client.status().pending:
        time.sleep(.1)
"
memd recall 'why SQLite' | grep -F 'backups are simple'
memd profile | grep -F 'tabs'
memd backup
memd doctor
memd down
wait
"""
    done = subprocess.run(
        ["unshare", "-n", "bash", "-c", steps],
        env={**home, "MEMD_SPOOL_S": "0.2", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = trace.read_text()
    assert "AF_UNIX" in seen
    outside = [each for each in seen.splitlines() if any(f in each for f in ("AF_INET", "AF_INET6", "AF_PACKET"))]
    assert outside == []


def ask_as_another(at: Places, told: Any) -> None:
    os.setgroups([])
    os.setgid(OTHER)
    os.setuid(OTHER)
    try:
        Client(at, deadline_ms=1_500).status()
        told.put(("answered", "", ""))
    except Exception as error:
        told.put((type(error).__name__, str(error), getattr(error, "hint", "")))


@is_root
@pytest.mark.parametrize("is_open", [False, True])
def test_another_user_gets_no_answer_and_a_hint_P19(home: dict[str, str], is_open: bool) -> None:
    """By the folder's mode; and by the uid, where somebody opened folder and socket to all."""
    with TemporaryDirectory(prefix="memd-", dir="/tmp") as folder:
        running = RunningDaemon({**home, "MEMD_HOME": folder})
        running.start()
        try:
            if is_open:
                for each in (Path(folder), running.places.run, running.places.socket):
                    each.chmod(0o777)
            fork = multiprocessing.get_context("fork")
            told = fork.Queue()
            process = fork.Process(target=ask_as_another, args=(running.places, told))
            process.start()
            kind, message, hint = told.get(timeout=90)
            process.join()
            assert kind == "Refused" and hint, (kind, message)
            with running.client() as client:
                assert client.status().pid
        finally:
            running.terminate()


@is_root
def test_root_does_not_speak_to_a_users_daemon(home: dict[str, str]) -> None:
    """As `sudo memd status` would: what listens there is somebody else's."""
    at = places(home, os.getuid())
    at.run.mkdir(mode=0o700)

    def listen() -> None:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.bind(str(at.socket))
            os.setuid(OTHER)
            stranger.listen()
            ready.set()
            time.sleep(30)

    fork = multiprocessing.get_context("fork")
    ready = fork.Event()
    process = fork.Process(target=listen)
    process.start()
    try:
        assert ready.wait(20)
        with pytest.raises(Refused) as caught:
            Client(at).status()
        assert str(OTHER) in caught.value.message and caught.value.hint
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize("command", ["up", "service install", "doctor"])
def test_under_sudo_each_command_refuses_with_a_hint(home: dict[str, str], command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "memd.clients.cli.main", *command.split()],
        env={**home, "SUDO_UID": str(os.getuid() + 1)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0 and "run it as the user who owns the memory" in done.stdout + done.stderr


def test_a_fault_stands_in_status_with_its_time_and_reason_U6(daemon: Any, memd_text: Callable[[], str]) -> None:
    with daemon.client() as client:
        naive = Said(turn="1", at="2026-03-04T18:30:00", role="user", text="I use vim.")
        assert client.capture(Origin(host="h", session="s"), [naive]).refused
        refused = client.status().last["refused"]
        assert refused.at and refused.what == "h:s: 1 events: '2026-03-04T18:30:00' has no UTC offset"
        client.pause()
        client.capture(Origin(host="h", session="s"), [Said(turn="2", at=AT, role="user", text="I use vim.")])
        assert client.status().last["skipped"].what == "h:s: 1 events: paused"
    text = " ".join(memd_text().split())  # whatever the screen wraps
    assert "has no UTC offset" in text and "paused" in text and "just now" in text


@pytest.fixture
def memd_text(home: dict[str, str]) -> Callable[[], str]:
    """What `memd status` prints."""
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "status"]
    return lambda: subprocess.run(command, env=home, capture_output=True, text=True, check=True).stdout
