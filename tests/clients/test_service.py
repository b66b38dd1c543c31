"""memd as a service, started twice at once, after an upgrade, taken away: as a user does it (U1, P-1, P-25, P-26)."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.python import Client
from memd.clients.python.launch import stop
from memd.protocol.places import places
from tests.conftest import FAULT_ROUNDS, RunningDaemon

MEMD = [sys.executable, "-P", "-m", "memd.clients.cli.main"]
OLD = "import memd, runpy; memd.__version__ = '0.0.9'; runpy.run_module('memd.daemon', run_name='__main__')"
NAMESPACES = ["unshare", "-m", "-p", "-f", "--mount-proc"]
MANAGER = """
set -e
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user/0 && chmod 700 /run/user/0
export XDG_RUNTIME_DIR=/run/user/0
"$(command -v /usr/lib/systemd/systemd /lib/systemd/systemd | head -1)" --user >/dev/null 2>&1 &
for i in $(seq 100); do systemctl --user is-system-running >/dev/null 2>&1 && break; sleep .1; done
systemctl --user is-system-running
"""


@pytest.mark.usefixtures("ended")
def test_two_ups_at_once_leave_one_daemon_and_both_go_well_P26(home: dict[str, str]) -> None:
    """The full figure takes `MEMD_FAULT_ROUNDS=25`: fifty pairs."""
    at = places(home, os.getuid())
    for _ in range(2 * FAULT_ROUNDS):
        both = [
            subprocess.Popen([*MEMD, "up", "--json"], env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(2)
        ]
        said = [each.communicate(timeout=90) for each in both]
        assert [each.returncode for each in both] == [0, 0], said
        with Client(at) as client:
            pid = client.status().pid
        assert all(f'"pid":{pid}'.encode() in out for out, _ in said)
        stop(at)


@pytest.mark.usefixtures("ended")
def test_an_older_daemon_is_replaced_after_an_upgrade_and_loses_nothing_P26(
    home: dict[str, str], memd: Callable[..., Any]
) -> None:
    old = subprocess.Popen([sys.executable, "-c", OLD], env=home, stdin=subprocess.DEVNULL)
    at = places(home, os.getuid())
    end = time.monotonic() + 90
    while time.monotonic() < end:
        told = memd("remember", "The lamp is on.")
        if told.code == 0 and "spooled" not in told.text:
            break
    assert "0.0.9" in memd("status").text
    assert "0.0.9 is still running" in memd("doctor").text
    assert memd("up", "--json").data["replaced"] == "0.0.9"
    assert old.wait(20) == 0
    with Client(at) as client:
        assert [each.content for each in client.list().records][:1] == ["The lamp is on."]
    assert memd("up", "--json").data["replaced"] == ""


def test_files_of_a_killed_daemon_are_told_and_removed_P26(daemon: Any, memd: Callable[..., Any]) -> None:
    daemon.kill()
    told = memd("doctor", "--json", PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert [each["name"] for each in told.json["data"]["findings"] if each["state"] != "ok"] == ["daemon", "socket"]
    assert told.code == 0  # nothing is broken
    daemon.places.data.chmod(0o755)
    told = memd("doctor")
    assert told.code == 1 and "chmod 700" in told.text
    told = memd("doctor", "--fix", "--json").data["findings"]
    assert {each["name"] for each in told if each["state"] == "fixed"} >= {"folders", "daemon"}
    assert memd("down").code == 0


def test_without_a_manager_the_files_are_written_and_taken_away_again(
    home: dict[str, str], memd: Callable[..., Any], tmp_path: Path
) -> None:
    apart = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": "",
        "XDG_RUNTIME_DIR": str(tmp_path),
        "DBUS_SESSION_BUS_ADDRESS": "",
    }
    folder = tmp_path / ".config" / "systemd" / "user"
    if sys.platform != "linux":
        pytest.skip("launchd writes elsewhere")
    assert "ExecStart=" in memd("service", "install", "--dry-run", **apart).text and not folder.exists()
    told = " ".join(memd("service", "install", **apart).text.split())
    assert "could not enable the service or check that it starts" in told and "run `memd service install` again" in told
    assert sorted(each.name for each in folder.iterdir()) == ["memd.service", "memd.socket"]
    assert "already installed" in memd("service", "install", **apart).text
    (folder / "memd.service").write_text(f"# data: {home['MEMD_HOME']}/data\n")
    assert "memd service install" in memd("service", "status", **apart).text
    assert memd("service", "uninstall", "--json", **apart).data["removed"] == [
        str(folder / "memd.service"),
        str(folder / "memd.socket"),
    ]
    assert list(folder.iterdir()) == []
    assert memd("service", "install", SUDO_UID=str(os.getuid() + 1), **apart).code == 7


def test_the_doctor_says_what_to_do_when_memd_is_not_in_PATH(daemon: Any, memd: Callable[..., Any]) -> None:
    findings = {each["name"]: each for each in memd("doctor", "--json", PATH="/usr/bin:/bin").data["findings"]}
    assert (
        findings["program"]["state"] == "warning"
        and f"add {Path(sys.executable).parent}" in findings["program"]["hint"]
    )


SLOW_MANAGER = """#!/bin/sh
case "$*" in
*show*) printf 'ActiveState=active\nSubState=running\n' ;;
*stop*) sleep 60 ;;
esac
"""


@pytest.mark.skipif(sys.platform != "linux", reason="launchd is another program")
@pytest.mark.parametrize("hangs", ["daemon", "manager"])
def test_down_ends_within_five_seconds_whatever_the_manager_does_P26(
    daemon: Any, memd: Callable[..., Any], tmp_path: Path, hangs: str
) -> None:
    at_home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert (
        memd("service", "install", **{**at_home, "PATH": os.environ["PATH"], "DBUS_SESSION_BUS_ADDRESS": ""}).code == 0
    )
    manager = tmp_path / "systemctl"
    manager.write_text(SLOW_MANAGER if hangs == "daemon" else "#!/bin/sh\nsleep 60\n")
    manager.chmod(0o755)
    if hangs == "daemon":
        daemon.halt()
    begin = time.monotonic()
    assert memd("down", **at_home).code == 0
    assert time.monotonic() - begin < 6  # with the start of the command itself
    assert daemon.process.wait(5) in (0, -9)


@pytest.mark.slow
@pytest.mark.skipif(
    os.getuid() != 0
    or not all(map(shutil.which, ("systemctl", "unshare")))
    or subprocess.run([*NAMESPACES, "bash", "-c", MANAGER], capture_output=True, check=False).returncode != 0,
    reason="no systemd user manager can be started here",
)
def test_a_real_manager_installs_restarts_stops_and_forgets_it_U1(home: dict[str, str], tmp_path: Path) -> None:
    steps = """
memd() { python -P -m memd.clients.cli.main "$@"; }
pid() { systemctl --user show memd.service -p MainPID --value; }
memd service install
systemctl --user is-active memd.service memd.socket
memd remember 'The lamp is on.'
first=$(pid)
systemctl --user kill -s KILL memd.service
# systemd keeps the socket and starts the next daemon in 1.5 s; a busy machine may take longer than a client waits.
for _ in 1 2 3; do memd recall lamp >"$HOME/answer" && break; done
grep -F 'The lamp is on.' "$HOME/answer"
[[ $(pid) != "$first" ]]
memd down
! systemctl --user is-active memd.service memd.socket
! memd status                                     # a client does not start it again
memd up && [[ $(pid) != 0 ]]
memd service status | grep -F 'starts at login'
memd uninstall
! ls "$HOME"/.config/systemd/user/memd.*
! memd status
"""
    done = subprocess.run(
        [*NAMESPACES, "bash", "-c", f"{MANAGER}\nset -x\n{steps}\nsystemctl --user exit"],
        env={**home, "HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_uninstall_keeps_the_memory_and_purge_takes_only_what_is_ours_P25(
    daemon: Any, memd: Callable[..., Any]
) -> None:
    base = Path(daemon.environment["MEMD_HOME"])
    told = memd("uninstall", "--json").data
    assert str(daemon.places.data) in told["kept"] and daemon.process.wait(20) == 0
    assert memd("uninstall", "--purge", "--json").code == 7  # nobody was asked
    assert memd("uninstall", "--purge", input="n\n").code == 130 and daemon.places.data.exists()
    strange = base / "config"
    (strange / "memd.toml").unlink(missing_ok=True)
    (strange / "photo.jpg").touch()
    assert memd("uninstall", "--purge", "--yes").code == 7 and daemon.places.data.exists()
    (strange / "photo.jpg").unlink()
    assert memd("uninstall", "--purge", "--yes").code == 0
    assert [each.name for each in base.iterdir()] == ["stderr.txt"]


def test_the_log_is_shown_and_followed_over_a_rotation(daemon: Any, memd: Callable[..., Any]) -> None:
    assert "memd is up" in memd("logs").text
    assert memd("logs", "-n", "1", "--json").data["lines"]
    log = daemon.places.log
    follower = subprocess.Popen(
        [*MEMD, "logs", "-f", "-n", "0"], env=daemon.environment, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert follower.stdout
    try:
        time.sleep(1)
        with log.open("a") as file:
            file.write("one\n")
        assert follower.stdout.readline() == "one\n"
        with log.open("a") as file:
            file.write("two\n")
        log.rename(log.with_name("memd.log.1"))
        log.write_text("three\n")
        assert [follower.stdout.readline() for _ in range(2)] == ["two\n", "three\n"]
    finally:
        follower.kill()
        follower.wait()


def test_configuration_by_command_with_and_without_a_daemon_U6(home: dict[str, str], memd: Callable[..., Any]) -> None:
    assert memd("config", "set", "idle_s", "7").text == "idle_s = 7.0\n"
    told = memd("config", "set", "idl_s", "7")
    assert told.code == 2 and "did you mean 'idle_s'" in told.errors
    file = places(home, os.getuid()).config / "memd.toml"
    running = RunningDaemon(home)
    running.start()
    try:
        assert memd("config", "get", "idle_s", "--json").data["source"] == "file"
        assert "next start" in memd("config", "set", "ballast_mb", "3").text
        assert memd("config", "unset", "idle_s").text == "idle_s = 20.0\n"
        assert "idle_s" not in file.read_text() and "relevance_floor" in memd("config", "list").text
    finally:
        running.terminate()
    file.write_text("idle = 3\n")
    told = memd("up")
    assert told.code == 2 and "'idle_s'" in told.errors
    assert memd("config", "unset", "idle").code == 2
    assert "did you mean 'idle_s'" in memd("doctor").text


def test_completion_and_the_manual_page_know_every_command(memd: Callable[..., Any], tmp_path: Path) -> None:
    from memd.clients.cli.commands import COMMANDS

    for shell in ("bash", "zsh", "fish"):
        assert "_MEMD_COMPLETE" in memd("completion", shell).text
    told = memd(_MEMD_COMPLETE="complete_bash", COMP_WORDS="memd se", COMP_CWORD="1")
    assert set(told.text.split()) == {"session", "service", "setup"}
    page = tmp_path / "memd.1"
    page.write_text(memd("man").text)
    for name in COMMANDS:
        assert f'.SS "{name}' in page.read_text()
    if shutil.which("man"):
        shown = subprocess.run(
            ["man", "-l", "--warnings", str(page)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        assert (shown.returncode, shown.stderr) == (0, "") and "memd service install" in shown.stdout
