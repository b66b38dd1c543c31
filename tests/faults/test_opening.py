"""What a start refuses, mends and trusts: layouts, migrations, marks, damaged stores (U3, P-11, P-13)."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import lmdb
import pytest

from memd.daemon.projections.stores import Stores
from memd.daemon.services.maintenance.verify import verify
from memd.daemon.storage import run_marker
from memd.daemon.storage.archive import Archive
from memd.daemon.storage.backup import write_backup
from memd.daemon.storage.journal import JournalLog
from memd.daemon.storage.layout_version import LAYOUT, bring_up, read_format
from memd.daemon.storage.lmdb_environment import Environment
from memd.daemon.storage.run_marker import Marker
from memd.daemon.storage.startup_checks import CHECKPOINT_EVERY, checkpoint
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import JournalCorrupt, UnsupportedFormat
from memd.protocol.event import Captured, Said, text
from memd.protocol.operation import Added, Checkpoint, Decision, PoolOpened
from memd.protocol.record import Provenance, Record
from tests.conftest import FAULT_ROUNDS
from tests.faults.migrations import BEFORE, MIGRATIONS, downgrade

ROOT, AT = Path(__file__).parents[2], "2026-01-01T00:00:00Z"


def stores(folder: Path) -> Stores:
    return Stores(folder, real_world(), registry.info())


def said(turn: str) -> Captured:
    return Captured(document="h:s", event=Said(turn=turn, at=AT, role="user", text=f"word {turn}"))


def leave(opened: Stores) -> None:
    """Close files and let go of the lock, as a kill does, and leave the mark."""
    mark = (opened.folder / "running").read_bytes()
    opened.close()
    (opened.folder / "sums.json").unlink(missing_ok=True)
    (opened.folder / "running").write_bytes(mark)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with thirty captures and a pool, cleanly closed."""
    opened = stores(tmp_path / "data")
    opened.take([said(str(number)) for number in range(30)])
    opened.commit([PoolOpened(pool="project/x")])
    opened.close()
    return tmp_path / "data"


def test_a_new_folder_says_which_layout_it_has_and_who_made_it(data: Path) -> None:
    told = json.loads((data / "format.json").read_bytes())
    assert told["layout"] == LAYOUT and [line["layout"] for line in told["history"]] == [LAYOUT]
    assert (data / "running").read_text().strip() == "clean"


def test_a_folder_of_a_later_layout_is_refused_and_says_which_version_reads_it(data: Path) -> None:
    later = {"layout": 9, "history": [{"layout": 9, "memd": "7.0", "at": "2030-01-01T00:00:00Z"}]}
    (data / "format.json").write_text(json.dumps(later))
    with pytest.raises(UnsupportedFormat) as refused:
        stores(data)
    assert "7.0" in refused.value.hint


def test_a_folder_of_somebody_else_is_refused_and_not_touched(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "thesis.odt").write_text("chapter one")
    with pytest.raises(UnsupportedFormat, match=r"thesis\.odt"):
        stores(folder)
    assert {path.name for path in folder.iterdir()} <= {"thesis.odt", "lock"}


@pytest.mark.parametrize("store", ["journal", "archive"])
def test_no_empty_store_is_made_where_one_was(data: Path, store: str) -> None:
    shutil.rmtree(data / store)
    with pytest.raises(JournalCorrupt, match=store):
        stores(data)
    assert not (data / store).exists()


def test_a_folder_that_was_cut_off_while_it_was_made_is_made(data: Path) -> None:
    (data / "format.json").unlink()
    shutil.rmtree(data / "archive")
    stores(data).close()
    assert read_format(data) is not None


POINTS = [
    "migration:snapshot",
    "migration:snapshot:2",
    "migration:marked",
    "migration:begun",
    "migration:done",
    "migration:written",
]


@pytest.mark.parametrize("round_", range(FAULT_ROUNDS))
@pytest.mark.parametrize("point", ["", *POINTS])
def test_a_migration_is_done_once_wherever_it_is_killed_P13(data: Path, point: str, round_: int) -> None:
    before = captures(data)
    downgrade(data)
    old = {path.name: path.read_bytes() for path in (data / "heard").iterdir() if path.name == "data.mdb"}
    migrate(data, point, 1 + round_ % 3)
    found = read_format(data)
    assert found is not None and [line.layout for line in found.history] == [BEFORE, LAYOUT]
    assert captures(data) == before
    kept = data / "backups" / f"layout-{BEFORE}" / "heard"
    assert {path.name: path.read_bytes() for path in kept.iterdir() if path.name == "data.mdb"} == old
    opened = stores(data)
    assert [captured for _, captured in opened.archive.after(0, 99)] == before
    assert all(opened.archive.turn("h:s", captured.event.turn) == captured for captured in before)
    assert [pool.pool for pool in opened.sources.pools()] == ["project/x"]
    opened.close()


@pytest.mark.parametrize("round_", range(FAULT_ROUNDS))
@pytest.mark.parametrize("point", ["", *POINTS])
def test_what_was_written_after_a_downgrade_is_there_after_the_next_upgrade_P13(
    data: Path, point: str, round_: int
) -> None:
    downgrade(data)
    migrate(data)
    opened = stores(data)
    opened.take([said("between")])
    opened.close()
    before = captures(data)
    assert len(before) == 31
    downgrade(data)
    migrate(data, point, 1 + round_ % 3)
    assert captures(data) == before
    kept = {path.name: path for path in (data / "backups").iterdir()}
    assert kept.keys() == {f"layout-{BEFORE}", f"layout-{BEFORE}-2"} and not (data / "migrating").exists()
    sizes = [(path / "heard" / "data.mdb").read_bytes().count(b"between") for _, path in sorted(kept.items())]
    assert sizes[0] == 0 and sizes[1] > 0, "each has what stood there before its migration"
    stores(data).close()


def migrate(data: Path, point: str = "", times: int = 1) -> None:
    """Bring a folder to today's layout; a start that is killed on the way may be killed again."""
    for _ in range(times if point else 1):
        command = [sys.executable, "-m", "tests.faults.migrations", str(data)]
        killed = subprocess.run(command, cwd=ROOT, check=False, env={**os.environ, "MEMD_FAIL": point})
        assert killed.returncode == (-signal.SIGKILL if point else 0)
    assert not bring_up(data, real_world(), migrations=MIGRATIONS)


def captures(data: Path) -> list[Captured]:
    """What the archive of a closed folder holds."""
    archive = Archive(data / "archive", real_world())
    found = [captured for _, captured in archive.after(0, 99)]
    archive.close()
    return found


def test_a_folder_of_an_older_layout_is_refused_where_there_is_no_way_to_it(data: Path) -> None:
    downgrade(data, 0)
    with pytest.raises(UnsupportedFormat, match="cannot migrate to"):
        stores(data)
    assert not (data / "archive").exists()
    with pytest.raises(UnsupportedFormat, match="cannot migrate to"):
        bring_up(data, real_world(), layout=LAYOUT + 2, migrations=MIGRATIONS)


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
from tests.faults.test_opening import Path, stores
stores(Path(sys.argv[1]))
"""


def test_a_limit_on_address_space_is_named_and_nothing_is_called_damaged(data: Path) -> None:
    for _ in range(2):
        told = subprocess.run(
            [sys.executable, "-c", LIMITED, str(data)], cwd=ROOT, check=False, capture_output=True, text=True
        )
        assert "StoreError" in told.stderr and "address space" in told.stderr and "damaged" not in told.stderr
        leave(stores(data))  # a start after a kill looks at the stores first


def test_a_replay_that_was_killed_leaves_nothing_behind(data: Path) -> None:
    before = (data / "projections" / "tables" / "data.mdb").stat().st_ino
    (data / "projections" / "building" / "tables").mkdir(parents=True)
    (data / "projections" / "building" / "tables" / "data.mdb").write_bytes(b"half")
    stores(data).close()
    assert not (data / "projections" / "building").exists()
    assert (data / "projections" / "tables" / "data.mdb").stat().st_ino == before, "the tables were made anew"


def test_the_mark_tells_how_the_last_run_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Marker(tmp_path).last_end() == "clean"
    Marker(tmp_path).opening()
    assert Marker(tmp_path).last_end() == "opening"
    Marker(tmp_path).serving()
    assert Marker(tmp_path).last_end() == "killed"
    other = tmp_path / "boot"
    other.write_text("another start of the machine")
    monkeypatch.setattr(run_marker, "BOOT_ID", other)
    assert Marker(tmp_path).last_end() == "power"
    Marker(tmp_path).clear()
    assert Marker(tmp_path).last_end() == "clean"


def test_a_damaged_journal_is_named_with_the_newest_backup_and_the_command_P11(data: Path) -> None:
    opened = stores(data)
    backup = write_backup(opened.journal, opened.archive, data / "backups", real_world(), Event())
    leave(opened)
    file = data / "journal" / "data.mdb"
    content = bytearray(file.read_bytes())
    content[2 * 4096 :] = bytes(len(content) - 2 * 4096)
    file.write_bytes(content)
    for _ in range(2):
        with pytest.raises(JournalCorrupt, match="journal") as refused:
            stores(data)
        assert f"memd restore-backup {backup.name}" in refused.value.hint


def test_damaged_projections_are_made_anew_after_a_kill(data: Path) -> None:
    leave(stores(data))
    file = data / "projections" / "tables" / "data.mdb"
    file.write_bytes(file.read_bytes()[:8192] + bytes(file.stat().st_size - 8192))
    opened = stores(data)
    assert [pool.pool for pool in opened.sources.pools()] == ["project/x"]
    opened.close()


def flip_key(folder: Path, table: str) -> None:
    """The first row of a table moves to where a flipped bit in its key puts it."""
    environment = Environment(folder, (table,), durable=True)

    def work(transaction: lmdb.Transaction) -> None:
        key, value = next(iter(transaction.cursor(environment.db(table)).iternext()))
        transaction.delete(key, db=environment.db(table))
        transaction.put(key[:-1] + bytes([key[-1] ^ 1]), value, db=environment.db(table))

    environment.write(work)
    environment.close()


def test_a_flipped_bit_in_the_archives_index_is_mended_after_a_kill_P11(data: Path) -> None:
    leave(stores(data))
    flip_key(data / "archive", "index")
    opened = stores(data)
    for number in range(30):
        found = opened.archive.turn("h:s", str(number))
        assert found is not None and text(found.event) == f"word {number}"
        assert len(opened.archive.around("h:s", str(number), 30, 30)) == 30
    opened.close()


def test_verify_names_a_damaged_index_of_the_archive_P11(data: Path) -> None:
    assert verify(data, real_world(), lambda *_: None)["damage"] == []
    flip_key(data / "archive", "index")
    told = verify(data, real_world(), lambda *_: None)["damage"]
    assert isinstance(told, list) and "its index does not match its checksum" in told[0]


@pytest.mark.parametrize("table", ["pools", "recent", "tally", "history"])
def test_a_flipped_bit_in_a_key_of_the_tables_is_mended_after_a_kill_P11(data: Path, table: str) -> None:
    source = Provenance(author="user", source="h:s", trust="user", spans=(), quote="", said_at=AT)
    record = Record(id="id1", pool="project/x", kind="note", content="a", description="a", provenance=source)
    opened = stores(data)
    opened.commit([Added(record=record, decision=Decision(action="add", reason="it was said"))])
    leave(opened)
    flip_key(data / "projections" / "tables", table)
    opened = stores(data)
    assert [pool.pool for pool in opened.sources.pools()] == ["project/x"]
    assert [each.id for each in opened.records.recent("project/x", None, 9)] == ["id1"]
    assert opened.records.tally() == {"project/x": {"active": 1}} and opened.sources.history("id1") == [2]
    opened.close()


def test_what_was_found_damaged_is_looked_at_by_the_next_start_although_the_stop_was_clean_P11(data: Path) -> None:
    flip_value = Environment(data / "archive", ("index",), durable=True)
    key = next(iter(flip_value.write(lambda into: list(into.cursor(flip_value.db("index")).iternext()))))[0]
    flip_value.write(lambda into: into.put(key, b"\0\0\1", db=flip_value.db("index")))
    flip_value.close()
    (data / "sums.json").unlink()
    opened = stores(data)
    with pytest.raises(JournalCorrupt, match="index"):
        opened.archive.around("h:s", "1", 30, 30)
    opened.close()
    opened = stores(data)
    assert len(opened.archive.around("h:s", "1", 30, 30)) == 30
    opened.close()


def test_projections_that_changed_while_memd_was_down_are_made_anew(data: Path) -> None:
    file = data / "projections" / "tables" / "data.mdb"
    content = bytearray(file.read_bytes())
    at = content.index(b"project/x")
    content[at] ^= 1
    file.write_bytes(content)
    opened = stores(data)
    assert [pool.pool for pool in opened.sources.pools()] == ["project/x"]
    opened.close()


def test_a_start_verifies_what_came_after_the_last_checkpoint(data: Path) -> None:
    opened = stores(data)
    opened.commit([checkpoint(opened.journal, opened.archive)])
    opened.take([said("after")])
    opened.close()
    journal, archive = JournalLog(data / "journal", real_world()), Archive(data / "archive", real_world())
    point = journal.checkpoint()
    assert (point.journal_seq, point.archive_seq) == (1, 30)
    assert archive.log.verify(point.archive_seq, point.archive_tip) == 1
    with pytest.raises(JournalCorrupt, match="differs from the one that was verified"):
        archive.log.verify(point.archive_seq, bytes(32))
    archive.close()
    journal.close()


def test_a_checkpoint_is_written_when_enough_was(data: Path) -> None:
    opened = stores(data)
    for start in range(0, CHECKPOINT_EVERY, 500):
        opened.take([said(f"many{number}") for number in range(start, start + 500)])
    written = opened.commit([PoolOpened(pool="project/y")])
    assert isinstance(opened.journal.read(written[-1].seq - 1).__next__().operation, Checkpoint)
    opened.close()
