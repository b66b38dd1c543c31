"""`memd verify`, `memd rebuild`: damage is named with its remedy; what can be made anew is, while reads go on (U3)."""

import json
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from memd.daemon.projections.folded import TableSet
from memd.daemon.services.maintenance_process import MaintenanceProcess
from memd.daemon.storage.folder_swap import BUILDING, NEXT, OLD, promote, settle
from memd.daemon.storage.lmdb_environment import Environment
from memd.protocol.block import BEGIN
from memd.protocol.event import Origin, Said
from memd.protocol.reply import JobState
from tests.daemon.test_blocks import OLDER


def finished(client: Any, state: JobState) -> JobState:
    """A job when it is over."""
    end = time.monotonic() + 60
    while state.state == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
        state = client.job(state.id)
    return state


def filled(daemon: Any, count: int = 6) -> list[str]:
    """A few records and turns; the ids."""
    with daemon.client() as client:
        ids = [client.remember(f"The lamp{n} stands in room{n}.").record.id for n in range(count)]
        client.edit(ids[0], "The lamp0 stands on the stairs.")
        said = Said(turn="1", at="2026-01-01T00:00:00Z", role="assistant", text="A turn about the harbour crane.")
        client.capture(Origin(host="h", session="s"), [said])
    daemon.settle()
    return ids


def checked(folder: Path) -> dict[str, Any]:
    return MaintenanceProcess().run("verify", folder, (), lambda done, total, detail: None)


def offline(daemon: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memd.daemon", "verify"]
    return subprocess.run(
        command, env=daemon.environment, capture_output=True, text=True, check=False, timeout=60, cwd="/"
    )


def test_all_is_well_beside_a_running_daemon_and_without_one(daemon: Any) -> None:
    filled(daemon)
    with daemon.client() as client:
        report = finished(client, client.verify()).report
    assert report["intact"] == 1 and report["damage"] == []
    assert "follows from its journal" in str(report["verdict"])
    assert report["records"] == report["quotes"] != 0
    assert offline(daemon).returncode == 5, "a daemon holds the lock"
    daemon.terminate()
    told = offline(daemon)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["verdict"] == report["verdict"] or json.loads(told.stdout)["intact"] == 1


@pytest.mark.slow
def test_a_changed_row_is_named_and_made_anew_while_reads_go_on(daemon: Any) -> None:
    ids = filled(daemon)
    daemon.terminate()
    folder = daemon.places.data
    folded = TableSet(folder / "projections" / "tables")
    rows = folded.tables.environment
    rows.write(lambda transaction: transaction.delete(ids[1].encode(), db=rows.db("records")))
    folded.close()
    report = checked(folder)
    assert not report["intact"]
    assert [damage for damage in report["damage"] if "rows of records" in damage and "memd rebuild tables" in damage]
    (folder / "projections.sums").unlink(missing_ok=True)  # as if it had happened while the daemon was up
    told = offline(daemon)
    assert told.returncode == 5 and "damaged" in told.stderr and json.loads(told.stdout)["damage"]
    daemon.start()
    missed: list[str] = []
    stop = threading.Event()

    def read() -> None:
        with daemon.client() as client:
            while not stop.is_set():
                if client.get(ids[2]).content != "The lamp2 stands in room2.":
                    missed.append("get")
                if not client.recall("lamp3 room3").hits:
                    missed.append("recall")

    reader = threading.Thread(target=read)
    reader.start()
    with daemon.client() as client:
        state = finished(client, client.rebuild())
        assert state.state == "done", state.problem
        kept = client.remember("The lamp9 stands in room9.").record
        assert client.recall("lamp9 room9").hits[0].record.id == kept.id
        stop.set()
        reader.join()
        assert not missed
        assert client.get(ids[1]).content == "The lamp1 stands in room1."
        assert finished(client, client.verify()).report["damage"] == []


@pytest.mark.slow
def test_a_record_is_there_that_was_added_during_a_rebuild(daemon: Any) -> None:
    filled(daemon)
    with daemon.client() as client:
        state = client.rebuild("all")
        made = []
        while state.state == "running":
            made.append(client.remember(f"The boat{len(made)} lies at pier{len(made)}.").record)
            state = client.job(state.id)
        assert state.state == "done", state.problem
        for record in made:
            assert client.get(record.id).content == record.content
            assert client.recall(record.content, limit=3).hits[0].record.id == record.id
    daemon.settle()
    with daemon.client() as client:
        assert finished(client, client.verify()).report["damage"] == []


@pytest.mark.slow
def test_a_flipped_byte_of_the_journal_is_named_and_nothing_else_is_judged(daemon: Any) -> None:
    filled(daemon)
    with daemon.client() as client:
        for number in range(100, 130):  # more than one block
            client.remember(f"The shelf{number} stands in hall{number}.")
    daemon.terminate()
    data = daemon.places.data / "journal" / "data.mdb"
    journal = Environment(data.parent, ("blocks",), durable=True)
    with journal.read() as transaction:
        first, *others = [row for _, row in transaction.cursor(journal.db("blocks")).iternext()]
    journal.close()
    assert others
    content = data.read_bytes()
    assert content.count(first) == 1
    flipped = first[: BEGIN + 30] + bytes([first[BEGIN + 30] ^ 1]) + first[BEGIN + 31 :]
    data.write_bytes(content.replace(first, flipped))
    report = checked(daemon.places.data)
    assert not report["intact"]
    assert report["damage"][0].startswith("journal") and "restore-backup" in report["damage"][0]


def test_an_older_layout_is_not_called_damaged_before_it_is_migrated_P13(daemon: Any) -> None:
    daemon.terminate()
    shutil.rmtree(daemon.places.data)
    with tarfile.open(OLDER) as archive:
        archive.extractall(daemon.places.data, filter="data")
    told = offline(daemon)
    assert (told.returncode, told.stdout) == (5, "")
    assert "has layout 1" in told.stderr and "`memd up`" in told.stderr and "restore-backup" not in told.stderr
    daemon.places.data.chmod(0o700)
    (daemon.places.data / "entries.json").unlink()
    daemon.start()
    daemon.terminate()
    told = offline(daemon)
    assert told.returncode == 0, told.stderr


def test_a_keyword_index_that_lost_a_record_is_named_and_rebuilt(daemon: Any) -> None:
    filled(daemon)
    daemon.terminate()
    folder = daemon.places.data / "projections"
    shutil.rmtree(folder / "keywords")
    shutil.copytree(folder / "turns", folder / "keywords")
    (folder / "keywords" / "applied_seq").write_text("999")
    report = checked(daemon.places.data)
    assert any(damage.startswith("keywords") and "memd rebuild keywords" in damage for damage in report["damage"])


@pytest.mark.parametrize("cut", ["building", "complete", "moved away"])
def test_a_swap_that_was_cut_off_is_finished_or_discarded(tmp_path: Path, cut: str) -> None:
    for place in (tmp_path / "tables", tmp_path / BUILDING / "tables"):
        place.mkdir(parents=True)
    (tmp_path / "tables" / "old").touch()
    (tmp_path / BUILDING / "tables" / "new").touch()
    if cut != "building":
        (tmp_path / BUILDING / "tables").rename(tmp_path / ("tables" + NEXT))
    if cut == "moved away":
        (tmp_path / "tables").rename(tmp_path / ("tables" + OLD))
    settle(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]
    assert [path.name for path in (tmp_path / "tables").iterdir()] == (["old"] if cut == "building" else ["new"])


def test_a_swap_puts_the_fresh_one_in_place(tmp_path: Path) -> None:
    for place, name in ((tmp_path / "tables", "old"), (tmp_path / BUILDING / "tables", "new")):
        place.mkdir(parents=True)
        (place / name).touch()
    promote(tmp_path, "tables")
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["new"]
