"""An import that is cut off anywhere: run again, it completes; nothing is lost or there twice (P-7, P-12, W13)."""

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers.claude_code import read
from memd.protocol.errors import MemdError
from tests.conftest import RunningDaemon

SAMPLE = Path(__file__).parents[2] / "clients" / "cli" / "sample" / "session.jsonl"


def send(daemon: Any, path: Path) -> tuple[int, int]:
    """Accepted and known, of one file sent in batches of 20."""
    accepted = known = 0
    with daemon.client() as client:
        for session in read(path).sessions:
            for start in range(0, len(session.events), 20):
                taken = client.capture(session.origin, session.events[start : start + 20])
                accepted, known = accepted + taken.accepted, known + taken.duplicate
    return accepted, known


def beliefs(daemon: Any) -> list[tuple[object, ...]]:
    """What each record says, without the time at which this run learnt it."""
    with daemon.client() as client:
        return sorted(
            (each.id, each.pool, each.status, each.content, each.key, each.provenance.quote, each.superseded_by)
            for each in client.list(limit=10_000).records
        )


def killed_in_the_middle(daemon: Any, path: Path, after_s: float) -> None:
    """Import, SIGKILL the daemon meanwhile, start it again, import again."""
    killer = threading.Timer(after_s, daemon.kill)
    killer.start()
    with contextlib.suppress(MemdError):
        send(daemon, path)
        with daemon.client() as client:
            while client.status().pending:
                time.sleep(0.01)
    killer.join()
    daemon.start()
    send(daemon, path)
    daemon.settle()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[tuple[object, ...]]]:
    """The captures and the records of an import that nothing interrupts."""
    home = tmp_path_factory.mktemp("whole")
    home.chmod(0o700)
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(home)})
    daemon.start()
    accepted, _ = send(daemon, SAMPLE)
    daemon.settle()
    records = beliefs(daemon)
    daemon.terminate()
    return accepted, records


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.02, 0.1, 0.6, 1.2])
def test_sigkill_at_any_time_of_an_import_changes_nothing_in_the_end_P12(
    daemon: Any, whole: tuple[int, list[tuple[object, ...]]], after_s: float
) -> None:
    killed_in_the_middle(daemon, SAMPLE, after_s)
    accepted, records = whole
    assert beliefs(daemon) == records
    with daemon.client() as client:
        assert client.status().archive_seq == accepted


def test_the_same_session_again_writes_no_operation_W13(daemon: Any) -> None:
    first, _ = send(daemon, SAMPLE)
    daemon.settle()
    with daemon.client() as client:
        before = client.status()
    assert send(daemon, SAMPLE) == (0, first)
    daemon.settle()
    with daemon.client() as client:
        after = client.status()
    assert (after.journal_seq, after.archive_seq) == (before.journal_seq, before.archive_seq)
