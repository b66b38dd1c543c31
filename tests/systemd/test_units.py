"""The service files say what the design promises, and systemd understands every line of them (P-1, P-2, P-26)."""

import configparser
import os
import plistlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SYSTEMD = Path(__file__).resolve().parents[2] / "systemd"
UNIT = SYSTEMD / "memd.service"
# These do nothing in a user unit without PrivateUsers=yes, which would blind the door's uid filter.
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


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not on this machine")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    program = tmp_path / "memd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = tmp_path / "memd.service"
    copy.write_text(UNIT.read_text(encoding="utf-8").replace("%h/.local/bin/memd", str(program)), encoding="utf-8")
    # --user looks for its folders through these; a checker in a container has neither.
    surroundings = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    told = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(copy)],
        capture_output=True,
        check=False,
        env=surroundings,
        text=True,
    )
    # It exits 0 on unknown keys; only an empty stderr is a pass.
    assert (told.returncode, told.stderr) == (0, "")


def test_the_unit_waits_until_the_daemon_is_ready(unit: configparser.ConfigParser) -> None:
    service = unit["Service"]
    assert service["Type"] == "notify"
    assert service["ExecStart"] == "%h/.local/bin/memd up --foreground"
    assert "WatchdogSec" not in service


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


def test_the_install_steps_name_what_the_files_hold(agent: dict[str, Any]) -> None:
    steps = (SYSTEMD / "README.md").read_text(encoding="utf-8")
    assert "%h/.local/bin/memd" in steps
    assert agent["ProgramArguments"][0] in steps
    assert f"LaunchAgents/{agent['Label']}.plist" in steps
