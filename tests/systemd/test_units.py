"""The service files say what the design promises, and systemd understands every line of them (P-1, P-2, P-26)."""

import configparser
import os
import plistlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memd.clients.service import Launchd, Systemd
from memd.protocol.places import places

SYSTEMD = Path(__file__).resolve().parents[2] / "systemd"
UNIT = SYSTEMD / "memd.service"
# These do nothing in a user unit without PrivateUsers=yes, which would blind the request server's uid filter.
WITHOUT_EFFECT = ("Protect", "Private", "ReadWritePaths", "ReadOnlyPaths", "InaccessiblePaths", "BindPaths")


@pytest.fixture(scope="module")
def unit() -> configparser.ConfigParser:
    """The unit, its keys as written."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return parser


@pytest.fixture(scope="module")
def agent() -> dict[str, Any]:
    """The launch agent."""
    return plistlib.loads((SYSTEMD / "dev.memd.daemon.plist").read_bytes())


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `memd` in a folder whose name holds all that systemd would make something of."""
    folder = tmp_path / "a %h $HOME 'b\" c"
    folder.mkdir()
    found = folder / "memd"
    found.write_text("#!/bin/sh\n")
    found.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(found)])
    return found


def rendered(tmp_path: Path) -> Systemd:
    """The units as an installation writes them, for a home with an odd name."""
    environment = {"HOME": str(tmp_path), "MEMD_HOME": str(tmp_path / "a home, 100%")}
    return Systemd(places(environment, os.getuid()), environment)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not on this machine")
def test_systemd_understands_every_line(tmp_path: Path, program: Path) -> None:
    for file in rendered(tmp_path).files():
        copy = tmp_path / file.path.name
        copy.write_text(file.text, encoding="utf-8")
    # --user looks for its folders through these; a checker in a container has neither.
    surroundings = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    told = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(tmp_path / "memd.service"), str(tmp_path / "memd.socket")],
        capture_output=True,
        check=False,
        env=surroundings,
        text=True,
    )
    # It exits 0 on unknown keys; only an empty stderr is a pass.
    assert (told.returncode, told.stderr) == (0, "")


def test_an_installation_names_this_memd_and_this_home(tmp_path: Path, program: Path) -> None:
    service, socket = rendered(tmp_path).files()
    assert service.path == tmp_path / ".config" / "systemd" / "user" / "memd.service"
    assert f"# data: {tmp_path}/a home, 100%/data" in service.text
    assert f'Environment="MEMD_HOME={tmp_path}/a home, 100%%"' in service.text
    assert 'a %%h $$HOME \'b\\" c/memd" up --foreground' in service.text
    assert f"ListenStream={tmp_path}/a home, 100%%/run/memd.sock" in socket.text
    assert not service.is_there()


def test_an_agent_names_this_memd_and_this_home(tmp_path: Path, program: Path) -> None:
    environment = {"HOME": str(tmp_path), "MEMD_HOME": str(tmp_path / "a home")}
    (file,) = Launchd(places(environment, os.getuid()), environment).files()
    found = plistlib.loads(file.text.encode())
    assert found["ProgramArguments"] == [str(program), "up", "--foreground"]
    assert found["EnvironmentVariables"]["MEMD_HOME"] == str(tmp_path / "a home")
    assert found["StandardErrorPath"].startswith(str(tmp_path / "a home")) and found["RunAtLoad"]
    assert str(tmp_path / "a home" / "data") in file.text


def test_the_socket_is_its_users_alone() -> None:
    lines = (SYSTEMD / "memd.socket").read_text(encoding="utf-8").splitlines()
    assert {"ListenStream=%t/memd/memd.sock", "SocketMode=0600", "DirectoryMode=0700"} <= set(lines)


def test_the_unit_waits_until_the_daemon_is_ready(unit: configparser.ConfigParser) -> None:
    service = unit["Service"]
    assert service["Type"] == "notify"
    assert service["ExecStart"] == "%h/.local/bin/memd up --foreground"
    assert service["NotifyAccess"] == "main"
    assert int(service["WatchdogSec"]) >= 30


def test_a_stop_ends_within_five_seconds_P26(unit: configparser.ConfigParser, agent: dict[str, Any]) -> None:
    assert int(unit["Service"]["TimeoutStopSec"]) < 5 and agent["ExitTimeOut"] < 5


def test_a_crash_is_started_again_and_a_refusal_is_not(unit: configparser.ConfigParser) -> None:
    service = unit["Service"]
    assert service["Restart"] == "on-failure"
    assert "1" not in service["RestartPreventExitStatus"].split()
    assert {"2", "3", "5", "6", "7"} == set(service["RestartPreventExitStatus"].split())
    assert int(unit["Unit"]["StartLimitBurst"]) <= 5


def test_the_unit_bounds_memory_and_tasks_P1(unit: configparser.ConfigParser) -> None:
    assert {"MemoryMax", "TasksMax"} <= set(unit["Service"])


def test_the_unit_is_hardened_by_what_works_for_users(unit: configparser.ConfigParser) -> None:
    service = unit["Service"]
    assert service["UMask"] == "0077"
    assert service["RestrictAddressFamilies"] == "AF_UNIX"
    for key in ("NoNewPrivileges", "LockPersonality", "RestrictRealtime", "RestrictSUIDSGID"):
        assert service[key] == "yes"
    assert {"SystemCallFilter", "SystemCallArchitectures"} <= set(service)
    assert [key for key in service if key.startswith(WITHOUT_EFFECT)] == []


def test_the_agent_starts_at_login_and_after_a_crash_only(agent: dict[str, Any]) -> None:
    assert agent["Label"] == "dev.memd.daemon"
    assert agent["ProgramArguments"][1:] == ["up", "--foreground"]
    assert agent["RunAtLoad"] is True
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["ProcessType"] == "Background"
    assert agent["Umask"] == 0o077
