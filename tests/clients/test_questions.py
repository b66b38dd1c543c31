"""Commands that ask first, answered in a real terminal: a no changes nothing, a yes does what was shown (G2, G5)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.clients.test_pi_block import AROUND
from tests.clients.test_pi_files import commit, edit, playbook, put, regenerated, repository
from tests.clients.test_pi_fold import adding
from tests.conftest import RunningDaemon

__all__ = ["repository"]

ROWS = "Plant in rows."


def answered(environment: dict[str, str], answers: str, *arguments: str) -> tuple[int, str]:
    """Run memd in a terminal whose user types these answers; its exit code and what it printed."""
    typing, terminal = pty.openpty()
    try:
        os.write(typing, answers.encode())
        done = subprocess.run(
            [sys.executable, "-P", "-m", "memd.clients.cli.main", *arguments],
            env={**environment, "COLUMNS": "80"},
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(typing)
        os.close(terminal)
    return done.returncode, done.stdout


def patches(top: Path) -> int:
    """How many patches a repository has."""
    return len(list((top / ".pi" / "patches").glob("*.json")))


def test_the_block_is_written_after_a_yes_and_over_a_hand_edit_after_two_G5(
    repository: Path, home: dict[str, str]
) -> None:
    file = repository / "AGENTS.md"
    file.write_text(AROUND, encoding="utf-8")
    put(repository, [adding("mem_20260210_001", statement=ROWS)])
    commit(repository, "patch")
    write = ("pi", "agents", "--write", "--cwd", str(repository))
    code, text = answered(home, "n\n", *write)
    assert code == 130 and f"+- {ROWS}" in text and "Write it?" in text and file.read_text() == AROUND
    assert answered(home, "y\n", *write)[0] == 0 and ROWS in file.read_text()
    edit(file, f"- {ROWS}", f"- {ROWS}\n- Pick in June.")
    code, text = answered(home, "y\nn\n", *write)
    assert code == 130 and "changed by hand?" in text and "Pick in June." in file.read_text()
    assert answered(home, "y\ny\n", *write)[0] == 0 and "Pick in June." not in file.read_text()


def test_a_pi_folder_is_trusted_after_a_yes_to_what_would_come_G2(daemon: RunningDaemon, repository: Path) -> None:
    put(repository, [adding("mem_20260210_001", statement=ROWS)])
    regenerated(repository)
    commit(repository, "patch")
    trust = ("pi", "trust", "--cwd", str(repository))
    code, text = answered(daemon.environment, "n\n", *trust)
    assert code == 130 and ROWS in text and "Trust it?" in text
    with daemon.client() as client:
        assert ROWS not in {record.content for record in client.list().records}
    code, text = answered(daemon.environment, "y\n", *trust)
    assert code == 0 and "trusted" in text
    with daemon.client() as client:
        assert ROWS in {record.content for record in client.list().records}


def test_a_hand_edit_becomes_a_patch_after_a_yes_G2(daemon: RunningDaemon, repository: Path) -> None:
    put(repository, [adding("mem_20260210_001", statement=ROWS)])
    regenerated(repository)
    commit(repository, "patch")
    assert answered(daemon.environment, "y\n", "pi", "trust", "--cwd", str(repository))[0] == 0
    edit(playbook(repository), ROWS, "Plant in circles.")
    before, adopt = patches(repository), ("pi", "adopt", "--cwd", str(repository))
    code, text = answered(daemon.environment, "n\n", *adopt)
    assert code == 130 and "Plant in circles." in text and patches(repository) == before
    assert answered(daemon.environment, "y\n", *adopt)[0] == 0 and patches(repository) == before + 1
