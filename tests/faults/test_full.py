"""A full disk, a real one: refused clearly, still readable, able to forget and to stop, and back by itself (P-12)."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memd.daemon.projections.turns import TurnIndex
from memd.daemon.storage.archive import Archive
from memd.daemon.world import real_world
from memd.protocol.block import plain
from memd.protocol.errors import MemdError, StorageFull
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon
from tests.daemon.remote_server import ModelServer, good, statement
from tests.daemon.test_remote import LEDGER, QUICK, Orchard, wait
from tests.faults.opener import opened
from tests.faults.recording import Promise, finish

SIZE_MB, BALLAST_MB = 40, 6
ORIGIN = Origin(host="full", session="s")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A home on a file system of a few megabytes."""
    home = tmp_path / "small"
    home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=0700", "memd-full", str(home)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"a small file system can't be mounted here: {mounted.stderr.strip()}")
    yield home
    subprocess.run(["umount", "-l", str(home)], check=True)


def fill(file: Path) -> None:
    """Take every free block."""
    with file.open("ab", buffering=0) as opened_file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    opened_file.write(bytes(size))
            except OSError:
                continue


def write(daemon: RunningDaemon, promises: list[Promise], first: int, count: int) -> StorageFull | None:
    """Captures and records in turn, each promised once it is acknowledged; the error if one is refused."""
    with daemon.client() as client:
        for number in range(first, first + count):
            words = f"The lamp{number} stands in room{number}. " + "Much was said about it. " * 100
            try:
                if number % 2:
                    event = Said(turn=f"t{number}", at="2026-01-01T00:00:00Z", role="user", text=words)
                    client.capture(ORIGIN, [event])
                    promises.append(Promise(0, "turn", f"{ORIGIN.document}\0t{number}", words))
                else:
                    wish = Remember(text=words, turn=f"r{number}", at="2026-01-01T00:00:00Z", origin=ORIGIN)
                    promises.append(Promise(0, "record", client.remember(wish).record.id, words))
            except StorageFull as refused:
                return refused
    return None


def check_reads(daemon: RunningDaemon, promises: list[Promise]) -> None:
    with daemon.client() as client:
        assert client.recall("where does lamp2 stand").hits
        for promise in promises:
            if promise.what == "record":
                assert client.get(promise.name).content == promise.words


def test_a_full_disk_is_refused_read_forgotten_on_stopped_on_and_outlived_P12(small: Path) -> None:
    settings = {"MEMD_HOME": str(small), "MEMD_BALLAST_MB": str(BALLAST_MB), "MEMD_KEYWORD_COMMIT_S": "0.1"}
    daemon = RunningDaemon({**os.environ, **settings})
    promises: list[Promise] = []
    daemon.start()
    with daemon.client() as client:
        doomed = Origin(host="full", session="doomed")
        event = Said(turn="d", at="2026-01-01T00:00:00Z", role="user", text="The zebra sleeps in the cellar.")
        client.capture(doomed, [event])
        assert client.status().size_bytes["ballast"] >= BALLAST_MB * 900_000
    assert write(daemon, promises, 0, 20) is None
    fill(small / "filler")
    refused = write(daemon, promises, 20, 2000)
    assert refused and "free some space" in refused.hint
    with daemon.client() as client:
        told = client.status()
        assert "the disk is full" in told.troubles[0] and told.size_bytes["ballast"] == 0
        assert "storage_full" in told.last["refused"].what and told.last["refused"].at
        finish(client, client.forget(session=doomed.document))
    check_reads(daemon, promises)
    fill(small / "filler")
    assert write(daemon, promises, 5000, 2000) is not None
    assert daemon.terminate() == 0
    daemon.start()
    check_reads(daemon, promises)
    (small / "filler").unlink()
    end = time.monotonic() + 90
    while write_refused(daemon):
        assert time.monotonic() < end, "it did not resume"
        time.sleep(0.1)
    with daemon.client() as client:
        told = client.status()
        assert told.troubles == () and told.size_bytes["ballast"] >= BALLAST_MB * 900_000
    assert daemon.terminate() == 0
    assert opened(small / "data", promises) == ""
    assert b"zebra" not in b"".join(plain(file.read_bytes()) for file in small.rglob("*") if file.is_file())


def write_refused(daemon: RunningDaemon) -> bool:
    """Whether the disk still counts as full."""
    with daemon.client() as client:
        try:
            client.remember(Remember(text="room again", turn="again", at="2026-01-01T00:00:00Z", origin=ORIGIN))
        except StorageFull:
            return True
    return False


@pytest.mark.slow
def test_turns_are_searched_though_a_full_disk_ended_their_writer_P12_Q4(small: Path, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive", real_world())
    turns = TurnIndex(small / "turns", archive)

    def say(turn: str, words: str) -> None:
        event = Said(turn=turn, at="2026-01-01T00:00:00Z", role="user", text=words)
        archive.take([Captured(document="full:talk", event=event)])

    say("1", "The zebra sleeps in the cellar.")
    assert turns.find("zebra", 5)[0]
    turns.commit()
    fill(small / "filler")
    for number in range(2, 30):  # long enough for the writer to write before it is asked to commit
        say(str(number), f"The walrus{number} sleeps. " + " ".join(f"{number}w{n}" for n in range(20_000)))
        assert turns.find("zebra", 5)[0]
    with pytest.raises(ValueError):
        turns.commit()
    (small / "filler").unlink()
    turns.reopen()
    turns.catch_up()
    turns.commit()
    assert all(turns.find(word, 5)[0] for word in ("zebra", "walrus2", "walrus29"))
    turns.close()


def test_without_room_for_the_reservation_nothing_is_sent_W4_P12(small: Path, tmp_path: Path) -> None:
    server = ModelServer(good(statement(LEDGER)))
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(small), **QUICK})
    daemon.start()
    orchard = Orchard(daemon, tmp_path / "orchard")
    orchard.session("one", LEDGER, *("stem leaf root bark " * 300 for _ in range(4)))
    orchard.use(server)
    with daemon.client() as client:
        client.pause(for_s=5)
    orchard.consent()
    ballast = small / "ballast"
    fill(ballast)

    def is_refused() -> bool:
        with daemon.client() as client:
            summary = client.status().remote
        return summary is not None and "No space left" in summary.state

    wait(is_refused)
    assert not server.requests and not orchard.calls()
    ballast.unlink()

    def is_accepted() -> bool:
        with suppress(MemdError):
            return bool(orchard.consent().consents)
        return False

    wait(is_accepted)
    orchard.use(server)  # ends the pause after the failures
    orchard.ended()
    assert len(server.requests) == 1
    assert daemon.terminate() == 0
    server.close()


def test_a_backup_to_a_full_disk_is_refused_and_the_daemon_lives_P12(daemon: RunningDaemon, small: Path) -> None:
    fill(small / "filler")
    with daemon.client() as client:
        client.remember(Remember(text="here", turn="here", at="2026-01-01T00:00:00Z", origin=ORIGIN))
        job = client.backup(str(small))
        while job.state == "running":
            time.sleep(0.02)
            job = client.job(job.id)
        assert job.problem is not None and "No space left" in job.problem.message and "free" in job.problem.hint
    assert not list(small.glob("**/data.mdb"))


def test_a_full_disk_is_not_taken_for_damage_while_memd_is_down_P12(small: Path) -> None:
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(small), "MEMD_BALLAST_MB": "1"})
    daemon.start()
    with daemon.client() as client:
        client.remember(Remember(text="here", turn="here", at="2026-01-01T00:00:00Z", origin=ORIGIN))
        finish(client, client.backup())
    daemon.terminate()
    fill(small / "filler")
    before = {path for path in (small / "data").rglob("*") if path.name != "building"}

    def offline(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memd.daemon", name]
        return subprocess.run(command, env=daemon.environment, capture_output=True, text=True, check=False, timeout=60)

    for command in ("restore-backup", "verify"):
        refused = offline(command)
        assert refused.returncode == 5 and "No space left" in refused.stderr and "hint:" in refused.stderr, refused
        assert "damaged" not in refused.stderr and "failed verification" not in refused.stderr
    assert {path for path in (small / "data").rglob("*") if path.name != "building"} == before
    (small / "filler").unlink()
    assert offline("verify").returncode == 0 and offline("restore-backup").returncode == 0
