"""An import that is stopped: run again, it continues and says so; nothing is lost or there twice (P-12, W13)."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunningDaemon

FILES, TURNS = 100, 60


def sessions(folder: Path) -> Path:
    """Many sessions of Claude Code; each turn says something of its own."""
    folder.mkdir()
    for number in range(FILES):
        lines = [
            {
                "type": "user", "uuid": f"u{number}-{turn}", "sessionId": f"s{number}", "cwd": "/home/ada/orchard",
                "timestamp": f"2026-03-04T{10 + turn // 60:02}:{turn % 60:02}:00Z",
                "message": {"role": "user", "content": f"Note {turn} of day {number}: the lamp is green."},
            }
            for turn in range(TURNS)
        ]  # fmt: skip
        (folder / f"s{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def start(home: dict[str, str], folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "import", "claude-code", str(folder), "--no-wait"]
    return subprocess.Popen(command, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stop_in_the_middle(home: dict[str, str], folder: Path, sign: signal.Signals) -> tuple[int, str]:
    """Start an import, send a signal when some files are done, and return how many were done and what it told."""
    imports = Path(home["MEMD_HOME"]) / "state" / "imports"
    with start(home, folder) as process:
        while len(list(imports.glob("*.json"))) < 5 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(sign)
        _, errors = process.communicate()
    assert process.returncode in (-signal.SIGKILL, 130), errors
    return len(list(imports.glob("*.json"))), errors


def turns(daemon: RunningDaemon) -> int:
    time.sleep(0.5)
    with daemon.client() as client:
        return client.status().archive_seq


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_an_import_that_was_stopped_continues_and_says_so_P12(
    memd: Any, daemon: Any, home: dict[str, str], tmp_path: Path, sign: signal.Signals
) -> None:
    folder = sessions(tmp_path / "sessions")
    done, errors = stop_in_the_middle(home, folder, sign)
    assert 5 <= done < FILES
    if sign == signal.SIGINT:
        assert "run the same command again to continue" in errors
    sent = turns(daemon)
    while (later := turns(daemon)) != sent:  # what the killed process had sent is taken in until then
        sent = later
    assert 5 * TURNS <= sent < FILES * (TURNS + 2)
    again = memd("import", "claude-code", str(folder), "--no-wait", "--json")
    assert again.json["warnings"] == [f"continues an import that broke off: {done} of {FILES} files are done"]
    counted = [sent for file in again.data["files"] for sent in file["sessions"]]
    assert len(counted) == FILES
    assert sum(outcome["accepted"] for outcome in counted) == FILES * (TURNS + 2) - sent
    assert turns(daemon) == FILES * (TURNS + 2)
    third = memd("import", "claude-code", str(folder), "--no-wait", "--json")
    assert third.json["warnings"] == []
    assert sum(outcome["accepted"] + outcome["changed"] for file in third.data["files"] for outcome in
               file["sessions"]) == 0  # fmt: skip
    assert turns(daemon) == FILES * (TURNS + 2)


def test_files_are_named_while_they_are_imported(memd: Any, daemon: Any, home: dict[str, str], tmp_path: Path) -> None:
    """Lines without a terminal, a bar with the time left on one, nothing with --json."""
    folder = sessions(tmp_path / "sessions")
    first = memd("import", "claude-code", str(folder), "--no-wait")
    assert f"importing 1 of {FILES}: " in first.errors and f"importing {FILES} of {FILES}: " in first.errors
    assert memd("import", "claude-code", str(folder), "--no-wait", "--json").errors == ""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "import", "claude-code", str(folder), "--whole"]
    with subprocess.Popen([*command, "--no-wait"], env=home, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # Linux's end of a terminal
            pass
        assert process.wait() == 0
    os.close(ours)
    assert b"importing" in shown and f"of {FILES}: ".encode() in shown and b"100%" in shown
