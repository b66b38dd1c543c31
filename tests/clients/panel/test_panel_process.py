"""How long a panel lives, and how a browser opens it (U4)."""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memd.clients.panel import server
from memd.protocol.errors import Unavailable
from memd.protocol.places import places
from tests.clients.panel.conftest import RunningPanel
from tests.clients.panel.test_guard import key_of
from tests.conftest import RunningDaemon

SERVE = """
import asyncio, sys
from memd.clients.panel.server import PanelServer
from memd.clients.python.client import places_here
asyncio.run(PanelServer(places_here(), "/", idle_s=float(sys.argv[1]), down_s=float(sys.argv[2])).serve())
"""


def serving(daemon: RunningDaemon, idle_s: float, down_s: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SERVE, str(idle_s), str(down_s)]
    process = subprocess.Popen(command, env=daemon.environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout and "#token=" in process.stdout.readline()
    return process


def test_a_panel_that_nobody_uses_ends_U4(daemon: RunningDaemon) -> None:
    with serving(daemon, 0.5, 60) as process:
        assert process.wait(60) == 0
    assert not server.socket_path(daemon.places).exists()


def test_a_panel_ends_when_the_daemon_is_gone_for_a_while_U4(daemon: RunningDaemon) -> None:
    with serving(daemon, 600, 0.5) as process:
        daemon.kill()
        assert process.wait(60) == 0


def test_the_browser_gets_a_private_file_that_goes_when_the_link_was_used_U4(panel: RunningPanel) -> None:
    home = places(panel.environment, os.getuid())
    opened: list[str] = []
    server.open_browser(home, panel.link, lambda address: bool(opened.append(address)))
    file = server.redirect_file(home)
    assert opened == [file.as_uri()] and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert panel.link in file.read_text()
    key_of(panel)
    assert not file.exists()


@pytest.mark.parametrize(
    ("line", "confined"), [("/snap/bin/firefox %u", True), ("flatpak run x %u", True), ("/usr/bin/firefox %u", False)]
)
def test_a_browser_in_a_snap_or_a_flatpak_gets_the_link_itself_U4(
    line: str, confined: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "applications"
    folder.mkdir()
    (folder / "browser.desktop").write_text(f"[Desktop Entry]\nExec={line}\n")
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path))
    assert server.is_confined("browser.desktop") is confined
    assert not server.is_confined("missing.desktop") and not server.is_confined("")


def test_a_port_that_is_taken_is_said_U4(panel: RunningPanel, tmp_path: Path) -> None:
    home = places({"MEMD_HOME": str(tmp_path / "other"), "TMPDIR": str(tmp_path)}, os.getuid())
    with pytest.raises(Unavailable, match="can't be used"):
        asyncio.run(server.PanelServer(home, "/", port=panel.port).serve())


def test_a_second_command_gives_a_link_to_the_panel_that_runs_U4(panel: RunningPanel) -> None:
    assert panel.new_link().startswith(f"{panel.origin}/#token=")
