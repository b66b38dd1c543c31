"""Starting, stopping, killing: nothing acknowledged is lost, nothing is doubled (P-1, P-11, P-12, P-26)."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from memd.protocol.event import Origin
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon

ORIGIN = Origin(host="cli", session="here")


def remember(number: int) -> Remember:
    return Remember(
        text=f"The lamp{number} stands in room{number}.", turn=f"t{number}", at="2026-01-01T00:00:00Z", origin=ORIGIN
    )


def test_what_was_remembered_is_recalled_at_once_by_another_client_W1(daemon: Any) -> None:
    with daemon.client() as writer, daemon.client() as reader:
        for number in range(30):
            kept = writer.remember(remember(number))
            hits = reader.recall(f"where is lamp{number}").hits
            assert hits and hits[0].record.id == kept.record.id
            assert hits[0].record.provenance.quote == f"The lamp{number} stands in room{number}."
            assert writer.remember(remember(number)).duplicate
        assert "lamp29" in reader.profile().text


@pytest.mark.slow
def test_sigkill_loses_nothing_acknowledged_and_doubles_nothing_P12(daemon: Any) -> None:
    ids: list[str] = []
    for round_ in range(3):
        with daemon.client() as client:
            for number in range(round_ * 10, round_ * 10 + 10):
                ids.append(client.remember(remember(number)).record.id)
        daemon.kill()
        daemon.start()
    daemon.settle()
    with daemon.client() as client:
        page = client.list(limit=100)
        assert sorted(record.id for record in page.records) == sorted(ids)
        assert client.status().failures == ()


def test_sigterm_drains_and_ends_within_two_seconds_U1(daemon: Any) -> None:
    with daemon.client() as client:
        kept = client.remember(remember(1))
    began = time.monotonic()
    assert daemon.terminate() == 0
    took = time.monotonic() - began
    daemon.start()
    with daemon.client() as client:
        assert client.get(kept.record.id[:8]).content == "The lamp1 stands in room1."
    assert took < 10, "SIGTERM did not end the daemon"


def test_a_second_daemon_names_the_first_and_leaves_it_alone_P26(daemon: Any) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "memd.daemon"],
        check=False,
        env=daemon.environment,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert second.returncode == 5
    assert str(daemon.process.pid) in second.stderr and "hint:" in second.stderr
    with daemon.client() as client:
        assert client.status().pid == daemon.process.pid


def test_of_two_daemons_that_start_at_once_one_serves_and_the_other_names_it_P26(home: dict[str, str]) -> None:
    command, pipe = [sys.executable, "-m", "memd.daemon"], subprocess.PIPE
    both = [subprocess.Popen(command, env=home, stderr=pipe, text=True) for _ in range(2)]
    while all(each.poll() is None for each in both):
        time.sleep(0.01)
    loser, winner = sorted(both, key=lambda each: each.poll() is None)
    said = loser.communicate(timeout=90)[1]
    assert loser.returncode == 5 and f"process {winner.pid}" in said and "hint:" in said
    serving = RunningDaemon(home)
    serving.process = winner
    serving.answers()
    assert serving.terminate() == 0


def test_a_stale_socket_of_a_killed_daemon_is_no_obstacle_P26(daemon: Any) -> None:
    daemon.kill()
    assert daemon.places.socket.exists()
    daemon.start()
    with daemon.client() as client:
        assert client.status().pid == daemon.process.pid


def test_the_daemon_loads_no_model_runtime_and_opens_no_network(daemon: Any) -> None:
    daemon.terminate()
    daemon.through = ("env",)
    daemon.start()
    with daemon.client() as client:
        client.remember(remember(1))
    daemon.settle()
    proc = Path(f"/proc/{daemon.process.pid}")
    if not proc.exists():
        pytest.skip("this system has no /proc to look at")
    assert "onnxruntime" not in (proc / "maps").read_text()
    held = {os.readlink(link) for link in (proc / "fd").iterdir() if link.is_symlink()}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in (proc / "net" / table).read_text().splitlines()[1:]:
            assert f"socket:[{line.split()[9]}]" not in held, "the daemon holds an internet socket"


def test_a_home_that_others_may_enter_is_refused(home: dict[str, str]) -> None:
    os.mkdir(home["MEMD_HOME"] + "/data", 0o755)
    os.chmod(home["MEMD_HOME"] + "/data", 0o755)
    refused = subprocess.run(
        [sys.executable, "-m", "memd.daemon"], check=False, env=home, capture_output=True, text=True, timeout=30
    )
    assert refused.returncode == 7 and "chmod 700" in refused.stderr


def test_a_setting_that_does_not_exist_names_the_nearest(home: dict[str, str]) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "memd.daemon"],
        check=False,
        env={**home, "MEMD_IDLE": "3"},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert refused.returncode == 2 and "idle_s" in refused.stderr
