"""Backups: consistent while writes go on, refused when damaged, restored beside what was there (U3, P-20)."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest

from memd.daemon.storage.archive import Archive
from memd.daemon.storage.backup import MANIFEST, backups, check, is_newer, listed, newest, rotate, write_backup
from memd.daemon.storage.journal import JournalLog
from memd.daemon.world import World, real_world
from memd.protocol import block
from memd.protocol.block import plain
from memd.protocol.errors import JournalCorrupt, MemdError, NotFound
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.operation import Distilled
from memd.protocol.request import Remember
from tests.conftest import FAULT_ROUNDS

ORIGIN = Origin(host="cli", session="here")


def remember(number: int) -> Remember:
    text = f"The lamp{number} stands in room{number}."
    return Remember(text=text, turn=f"t{number}", at="2026-01-01T00:00:00Z", origin=ORIGIN)


def offline(daemon: Any, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memd.daemon", *arguments]
    environment = {**daemon.environment, **more}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def job_done(client: Any, state: Any) -> Any:
    end = time.monotonic() + 60
    while state.state == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
        state = client.job(state.id)
    assert state.problem is None, state.problem
    return state.report


def everything(client: Any) -> dict[str, Any]:
    return {record.id: record for record in client.list(limit=500).records}


class Load:
    """A client that remembers without a pause; `acknowledged` counts what the daemon has said yes to."""

    def __init__(self, daemon: Any) -> None:
        self.acknowledged = 0
        self._daemon, self._stop = daemon, threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> "Load":
        self._thread.start()
        self.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        with self._daemon.client() as client:
            while not self._stop.is_set() and self.acknowledged < 400:
                client.remember(remember(self.acknowledged))
                self.acknowledged += 1

    def wait(self, count: int) -> None:
        end = time.monotonic() + 90
        while self.acknowledged < count:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_backup_under_load_restores_to_an_equal_set_U3(daemon: Any, tmp_path: Path) -> None:
    with Load(daemon) as load, daemon.client() as client:
        before = load.acknowledged
        report = job_done(client, client.backup())
        load.wait(before + 5)
    with daemon.client() as client:
        live = client.journal(limit=500).entries
    daemon.terminate()
    restored = offline(daemon, "restore-backup")
    assert restored.returncode == 0, restored.stderr
    told = json.loads(restored.stdout)
    assert told["newer"]["journal"] > 0 and Path(told["replaced"], "journal", "data.mdb").exists()
    daemon.start()
    with daemon.client() as client:
        status, entries = client.status(), client.journal(limit=500).entries
        kept = [e for e in entries if e.seq <= report["operations"]]
        assert kept == list(live)[: len(kept)] and len(kept) == report["operations"]
        assert status.archive_seq >= report["captures"] >= before
        said = {e.operation.record.provenance.quote for e in kept if e.operation.__struct_config__.tag == "added"}
        assert {remember(n).text for n in range(before)} <= said
        for record in everything(client).values():
            assert client.why(record.id).quote_holds, "an operation whose capture is not in the archive"
        assert "verified" in status.last["backed up"].what


def test_backups_are_private_and_read_back_before_they_count(tmp_path: Path) -> None:
    journal, archive = stores(tmp_path)
    path = write_backup(journal, archive, tmp_path / "b", real_world(), threading.Event())
    modes = {each.stat().st_mode & 0o077 for each in (path, *path.rglob("*"))}
    assert modes == {0}
    manifest = msgspec.json.decode((path / MANIFEST).read_bytes())
    assert manifest["stores"]["journal"]["last"] == 3 and manifest["stores"]["archive"]["last"] == 3
    assert sorted(p.name for p in path.iterdir()) == ["archive", "journal", MANIFEST]


def stores(folder: Path, world: World | None = None) -> tuple[JournalLog, Archive]:
    world = world or real_world()
    journal, archive = JournalLog(folder / "journal", world), Archive(folder / "archive", world)
    write(journal, archive, 3)
    return journal, archive


def write(journal: JournalLog, archive: Archive, count: int) -> None:
    for _ in range(count):
        event = Said(turn=str(archive.last), at="2026-01-01T00:00:00Z", role="user", text="words " * 200)
        archive.take([Captured(document="h:s", event=event)])
        journal.commit([Distilled(archive_seq=archive.last, captures=1, candidates=0)])


def test_a_damaged_copy_never_becomes_a_backup(tmp_path: Path) -> None:
    journal, archive = stores(tmp_path)
    environment = journal.log.environment

    def lie(transaction: lmdb.Transaction) -> None:
        cursor = transaction.cursor(environment.db("blocks"))
        assert cursor.last()
        key, row = cursor.item()
        kept = block.decode(row)
        kept[1] = msgspec.structs.replace(kept[1], stored=bytes(16) + b"a lie")
        transaction.put(key, block.encode(block.previous_of(row), kept), db=environment.db("blocks"))

    environment.write(lie)
    with pytest.raises(JournalCorrupt, match="not the last one that was written"):
        write_backup(journal, archive, tmp_path / "b", real_world(), threading.Event())
    assert list((tmp_path / "b").iterdir()) == []


def said_of(word: str, times: int, count: int) -> list[Captured]:
    at, words = "2026-01-01T00:00:00Z", [f"{word}{number:03} " * times for number in range(count)]
    said = [Said(turn=f"{word}{number}", at=at, role="user", text=text) for number, text in enumerate(words)]
    return [Captured(document="cli:here", event=each) for each in said]


def test_a_backup_has_no_byte_of_what_was_removed_T10(tmp_path: Path) -> None:
    journal, archive = stores(tmp_path)
    before = archive.last
    archive.take(said_of("quokka", 30, 300))
    archive.expire(range(before + 1, archive.last + 1))
    for captured in said_of("wombat", 250, 40):  # its page is not full, and LMDB leaves in it what the memory held
        archive.take([captured])
    path = write_backup(journal, archive, tmp_path / "backups", real_world(), threading.Event())
    held = b"".join(plain(file.read_bytes()) for file in path.rglob("*") if file.is_file())
    assert held.count(b"wombat") >= 40 * 250
    assert b"quokka" not in held


def test_only_what_changed_is_due_and_old_backups_go_P20(tmp_path: Path) -> None:
    journal, archive = stores(tmp_path)
    folder = tmp_path / "b"
    names: list[str] = []
    for _ in range(4):
        assert is_newer(journal, archive, folder)
        names.append(write_backup(journal, archive, folder, real_world(), threading.Event()).name)
        assert not is_newer(journal, archive, folder)
        write(journal, archive, 1)
    (folder / "notes").mkdir()
    assert [name for name, _ in backups(folder)] == names
    assert rotate(folder, 2) == names[:2]
    assert [name for name, _ in backups(folder)] == names[2:]
    assert (folder / "notes").exists(), "what is no backup is not ours to remove"
    rotate(folder, 0)
    assert [name for name, _ in backups(folder)] == names[3:]


def test_the_daemon_backs_up_and_rotates_by_itself_P20(daemon: Any) -> None:
    daemon.terminate()
    daemon.environment.update(MEMD_UPKEEP_S="0.3", MEMD_BACKUP_EVERY_H="0.0001", MEMD_BACKUP_KEEP="2")
    daemon.start()
    with daemon.client() as client:
        seen: set[str] = set()
        end = time.monotonic() + 60
        while len(seen) < 4:
            assert time.monotonic() < end
            client.remember(remember(len(seen)))
            found = client.backups().backups
            assert len(found) <= 3
            seen.update(each.name for each in found)
            time.sleep(0.1)


@pytest.mark.parametrize("place", ["journal", "archive"])
def test_one_flipped_bit_anywhere_in_a_backup_is_found_U3(tmp_path: Path, place: str) -> None:
    journal, archive = stores(tmp_path)
    path = write_backup(journal, archive, tmp_path / "b", real_world(), threading.Event())
    file = path / place / "data.mdb"
    good = file.read_bytes()
    for at in range(0, len(good), max(1, len(good) // 200)):
        file.write_bytes(good[:at] + bytes([good[at] ^ 16]) + good[at + 1 :])
        with pytest.raises(JournalCorrupt):
            check(path, real_world())
    file.write_bytes(good)
    assert check(path, real_world())[place].last == 3


def test_a_corrupted_backup_is_refused_and_nothing_is_touched_U3(daemon: Any) -> None:
    with daemon.client() as client:
        kept = client.remember(remember(1)).record
        path = Path(job_done(client, client.backup())["path"])
    daemon.terminate()
    file = path / "archive" / "data.mdb"
    file.write_bytes(file.read_bytes()[:-4096])
    refused = offline(daemon, "restore-backup", path.name)
    assert refused.returncode == 5 and "hint:" in refused.stderr, refused
    assert not list(daemon.places.data.glob("replaced-*"))
    daemon.start()
    with daemon.client() as client:
        assert client.get(kept.id).content == remember(1).text


@pytest.mark.parametrize("round_", range(FAULT_ROUNDS))
@pytest.mark.parametrize("place", ["restore:planned", "restore:moved", "restore:moved:2", "restore:placed"])
def test_a_restore_that_is_killed_is_finished_by_the_next_start_U3(daemon: Any, place: str, round_: int) -> None:
    with daemon.client() as client:
        client.remember(remember(1))
        job_done(client, client.backup())
        client.remember(remember(2))
    daemon.terminate()
    killed = offline(daemon, "restore-backup", MEMD_FAIL=place)
    assert killed.returncode < 0
    daemon.start()
    with daemon.client() as client:
        assert {record.content for record in everything(client).values()} == {remember(1).text}
    (replaced,) = daemon.places.data.glob("replaced-*")
    assert sorted(path.name for path in replaced.iterdir()) == ["archive", "journal"]
    assert not list(daemon.places.data.glob("incoming-*"))


def test_restoring_needs_the_daemon_down_and_a_backup_that_exists(daemon: Any) -> None:
    with daemon.client() as client:
        client.remember(remember(1))
        job_done(client, client.backup())
        with pytest.raises(MemdError, match="absolute"):
            client.backup("here")
    running = offline(daemon, "restore-backup")
    assert running.returncode == 5 and str(daemon.process.pid) in running.stderr
    daemon.terminate()
    missing = offline(daemon, "restore-backup", "yesterday")
    assert missing.returncode == 4 and "there are:" in missing.stderr
    preview = offline(daemon, "restore-backup", "--preview")
    assert preview.returncode == 0 and not list(daemon.places.data.glob("replaced-*"))
    with pytest.raises(NotFound):
        newest(daemon.places.data / "nowhere")
    assert os.listdir(daemon.places.data / "backups")


@pytest.mark.parametrize("gone", ["archive", MANIFEST])
def test_what_is_left_of_a_backup_is_none_U3(tmp_path: Path, gone: str) -> None:
    journal, archive = stores(tmp_path)
    folder = tmp_path / "copies"
    path = write_backup(journal, archive, folder, real_world(), threading.Event())
    for file in [path / gone] if gone == MANIFEST else [*(path / gone).iterdir()]:
        file.unlink()
    assert backups(folder) == [] and is_newer(journal, archive, folder)
    with pytest.raises(NotFound, match="not a complete backup"):
        newest(folder, path.name)
    journal.close()
    archive.close()


def test_a_backup_that_is_named_wrongly_is_told_how_to_be_named(tmp_path: Path) -> None:
    journal, archive = stores(tmp_path)
    path = write_backup(journal, archive, tmp_path / "copies", real_world(), threading.Event())
    with pytest.raises(NotFound, match="is a backup") as wrong:
        newest(path)
    assert wrong.value.hint == f"use `--from {path.parent} {path.name}`"
    with pytest.raises(NotFound, match="not the name of a backup but a path"):
        newest(path.parent, str(path))
    with pytest.raises(NotFound, match="there is no folder"):
        newest(path.parent / "nowhere")
    with pytest.raises(NotFound, match="there is no folder"):
        listed(path.parent, str(path / MANIFEST))
    assert listed(tmp_path / "nowhere", "").backups == (), "memd's own folder is made by the first backup"
    journal.close()
    archive.close()


def test_a_daemon_that_stops_in_the_middle_of_a_backup_ends_cleanly_U1(daemon: Any) -> None:
    with daemon.client() as client:
        for number in range(20):
            client.remember(remember(number))
    for _ in range(3):
        with daemon.client() as client:
            client.backup()
        assert daemon.terminate() == 0
        daemon.start()
    with daemon.client() as client:
        names = {each.name for each in client.backups().backups}
        report = job_done(client, client.backup())
        assert Path(report["path"]).name not in names
    left = {path.name for path in (daemon.places.data / "backups").iterdir()}
    assert left == names | {Path(report["path"]).name}, "what was cut off is cleared away"
