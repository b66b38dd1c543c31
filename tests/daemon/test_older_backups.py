"""Backups of an older layout and what a migration kept: verified, and migrated as they are restored (U3, P-13)."""

import json
import shutil
import signal
import subprocess
import sys
import tarfile
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest

from memd.daemon.storage.archive import Archive
from memd.daemon.storage.backup import FOLDER, MANIFEST, Copied, Manifest
from memd.daemon.storage.journal import JournalLog
from memd.daemon.storage.layout_version import LAYOUT, bring_up, read_format
from memd.daemon.storage.log import BLIND
from memd.daemon.storage.tombstone_carryover import carried, carry
from memd.daemon.world import real_world
from memd.protocol.block import Kept, header_of
from memd.protocol.operation import Redacted, Turns, encode
from tests.daemon.test_backup import everything, job_done, offline, remember
from tests.daemon.test_blocks import OLDER


def test_a_backup_of_a_layout_without_a_way_is_refused_before_anything_is_moved_P13(daemon: Any) -> None:
    with daemon.client() as client:
        client.remember(remember(1))
        path = Path(job_done(client, client.backup())["path"])
    daemon.terminate()
    told = msgspec.json.decode((path / MANIFEST).read_bytes())
    for layout in (0, 9):
        (path / MANIFEST).write_bytes(msgspec.json.encode({**told, "layout": layout}))
        refused = offline(daemon, "restore-backup", path.name)
        assert refused.returncode == 5 and f"layout {layout}" in refused.stderr and "with memd" in refused.stderr
    assert not list(daemon.places.data.glob("replaced-*"))


def older_backup(daemon: Any, folder: Path) -> Path:
    """A backup of layout 1 among the daemon's: the folder of an older memd that the tests keep, with a manifest."""
    with tarfile.open(OLDER) as archive:
        archive.extractall(folder, filter="data")
    told, stores = json.loads((folder / "entries.json").read_text()), dict[str, Copied]()
    path = daemon.places.data / FOLDER / "20250101T000000Z"
    for name in ("journal", "archive"):
        (path / name).mkdir(parents=True)
        file = (folder / name / "data.mdb").rename(path / name / "data.mdb")
        digest = blake2b(file.read_bytes(), digest_size=32).hexdigest()
        last, size = len(told[name]["entries"]), file.stat().st_size
        stores[name] = Copied(last=last, fingerprint=told[name]["tip"], file_hash=digest, size_bytes=size)
    manifest = Manifest(format=1, layout=1, version="0.1.0", at=1, stores=stores)
    (path / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return path


def test_a_backup_of_an_older_layout_is_migrated_as_it_is_restored_P13(daemon: Any, tmp_path: Path) -> None:
    with daemon.client() as client:
        kept = client.remember(remember(99)).record
    daemon.terminate()
    path = older_backup(daemon, tmp_path / "older")
    preview = offline(daemon, "restore-backup", "--preview", path.name)
    assert preview.returncode == 0 and json.loads(preview.stdout)["verified"], preview
    assert not list(daemon.places.data.glob("*ing-*"))
    restored = offline(daemon, "restore-backup", path.name)
    assert restored.returncode == 0, restored
    daemon.start()
    with daemon.client() as client:
        found = everything(client)
        assert found and kept.id not in found
        client.remember(remember(100))
    daemon.terminate()
    entries = json.loads((tmp_path / "older" / "entries.json").read_text())
    for name, store in (("journal", JournalLog), ("archive", Archive)):
        opened = store(daemon.places.data / name, real_world())
        assert opened.log.fingerprint(len(entries[name]["entries"])) == entries[name]["tip"]
        assert opened.log.verify() == opened.log.last
        opened.close()


def kept_by_a_migration(daemon: Any, folder: Path) -> Path:
    """What a migration kept among the daemon's backups, of the folder of an older memd that the tests keep."""
    with tarfile.open(OLDER) as archive:
        archive.extractall(folder, filter="data")
    bring_up(folder, real_world())
    (daemon.places.data / FOLDER).mkdir(exist_ok=True)
    return (folder / FOLDER / "layout-1").rename(daemon.places.data / FOLDER / "layout-1")


def test_what_a_migration_kept_is_listed_with_its_layout_and_restored_by_its_name_P13(
    daemon: Any, tmp_path: Path
) -> None:
    with daemon.client() as client:
        kept = client.remember(remember(99)).record
        report = job_done(client, client.backup())
    path = kept_by_a_migration(daemon, tmp_path / "older")
    with daemon.client() as client:
        found = {each.name: each for each in client.backups().backups}
    assert found.keys() == {path.name, Path(report["path"]).name}
    older, newer = found[path.name], found[Path(report["path"]).name]
    assert (older.layout, older.current, older.journal_seq) == (1, False, -1)
    assert (newer.layout, newer.current, newer.journal_seq) == (LAYOUT, True, report["operations"])
    daemon.terminate()
    told = json.loads(offline(daemon, "restore-backup", "--preview").stdout)
    assert told["backup"]["name"] == newer.name, "what a migration kept is never the newest"
    entries = json.loads((tmp_path / "older" / "entries.json").read_text())
    restored = offline(daemon, "restore-backup", path.name)
    assert restored.returncode == 0, restored
    told = json.loads(restored.stdout)
    assert told["backup"]["journal_seq"] == len(entries["journal"]["entries"]) and told["newer"]["archive"] == 1
    daemon.start()
    with daemon.client() as client:
        assert everything(client) and kept.id not in everything(client)
    assert path.exists()


def test_a_damaged_copy_that_a_migration_kept_is_refused_P11(daemon: Any, tmp_path: Path) -> None:
    daemon.terminate()
    file = kept_by_a_migration(daemon, tmp_path / "older") / "archive" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"The lamp7 stands", b"She lamp7 stands"))
    refused = offline(daemon, "restore-backup", "--preview", "layout-1")
    assert refused.returncode == 5 and "entry 8" in refused.stderr, refused
    refused = offline(daemon, "restore-backup")
    assert refused.returncode == 4 and "there are: layout-1" in refused.stderr, refused


def test_a_damaged_backup_of_an_older_layout_is_refused_P11(daemon: Any, tmp_path: Path) -> None:
    daemon.terminate()
    path = older_backup(daemon, tmp_path / "older")
    file = path / "archive" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"The lamp7 stands", b"She lamp7 stands"))
    refused = offline(daemon, "restore-backup", path.name)
    assert refused.returncode == 5 and "does not match its checksum" in refused.stderr, refused
    assert not list(daemon.places.data.glob("replaced-*"))


MIGRATE = """
import os, sys
from pathlib import Path
from memd.daemon import failpoint
from memd.daemon.storage.tombstone_carryover import carried, carry
from memd.daemon.storage.layout_version import bring_up
from memd.daemon.world import real_world
from memd.protocol.block import Kept, header_of
from memd.protocol.operation import Redacted, Turns, encode
failpoint.arm(os.environ["MEMD_FAIL"])
bring_up(Path(sys.argv[1]), real_world())
"""


@pytest.mark.parametrize("place", ["", "restore:planned", "restore:moved:2", "restore:placed"])
@pytest.mark.parametrize("point", ["migration:begun", "migration:done"])
def test_a_restore_ends_a_migration_that_was_cut_off_P13(daemon: Any, tmp_path: Path, point: str, place: str) -> None:
    with daemon.client() as client:
        client.remember(remember(1))
        job_done(client, client.backup())
    daemon.terminate()
    data = daemon.places.data
    for name in ("journal", "archive", "projections", "vectors"):
        shutil.rmtree(data / name)
    with tarfile.open(OLDER) as archive:
        archive.extractall(data, filter="data")
    (data / "entries.json").unlink()
    command = [sys.executable, "-c", MIGRATE, str(data)]
    killed = subprocess.run(command, check=False, env={**daemon.environment, "MEMD_FAIL": point})
    assert killed.returncode == -signal.SIGKILL and (data / "migrating").read_text() == "layout-1"
    (data / "journal.new").mkdir(exist_ok=True)  # of one that the disk had no room for
    restored = offline(daemon, "restore-backup", MEMD_FAIL=place)
    assert restored.returncode == (-signal.SIGKILL if place else 0), restored
    daemon.start()
    with daemon.client() as client:
        assert {record.content for record in everything(client).values()} == {remember(1).text}
    assert not (data / "migrating").exists() and not (data / "journal.new").exists()
    found = read_format(data)
    assert found is not None and [line.layout for line in found.history] == [1, LAYOUT]


def test_a_second_restore_finishes_the_first_one_that_was_killed_U3(daemon: Any) -> None:
    with daemon.client() as client:
        client.remember(remember(1))
        job_done(client, client.backup())
    daemon.terminate()
    assert offline(daemon, "restore-backup", MEMD_FAIL="restore:moved").returncode < 0
    assert offline(daemon, "restore-backup").returncode == 0
    replaced = list(daemon.places.data.glob("replaced-*"))
    assert [sorted(path.name for path in each.iterdir()) for each in replaced] == [["archive", "journal"]] * 2
    (daemon.places.data / "incoming-1" / "journal").mkdir(parents=True)  # of one that was killed while it copied
    daemon.start()
    assert not list(daemon.places.data.glob("incoming-*"))


@pytest.mark.parametrize("says", [b"no json", b'{"layout": 9}'])
def test_a_restore_writes_a_format_that_can_not_be_read_anew_P13(daemon: Any, says: bytes) -> None:
    with daemon.client() as client:
        kept = client.remember(remember(1)).record
        job_done(client, client.backup())
    daemon.terminate()
    (daemon.places.data / "format.json").write_bytes(says)
    assert offline(daemon, "restore-backup").returncode == 0
    daemon.start()
    with daemon.client() as client:
        assert client.get(kept.id).content == remember(1).text


def test_what_a_journal_of_layout_1_has_forgotten_is_carried_over_a_restore_T10(tmp_path: Path) -> None:
    """An upgrade may be cut off before it came to the journal; then a restore sets aside one of the older layout."""
    with tarfile.open(OLDER) as archive:
        archive.extractall(tmp_path, filter="data")
    entries = json.loads((tmp_path / "entries.json").read_text())["journal"]
    forgotten = Redacted(turns=(Turns(document="host:gone", turns=("t1", "t2")),))
    seq, tip = len(entries["entries"]) + 1, bytes.fromhex(entries["tip"])
    kept = Kept(1, "redacted", 1, bytes(BLIND) + encode(forgotten), b"")
    header, after = header_of(seq, tip, kept)
    tables = [name.encode() for name in ("headers", "payloads", "meta")]
    with closing(lmdb.open(str(tmp_path / "journal"), max_dbs=8)) as journal:
        headers, payloads, meta = (journal.open_db(name) for name in tables)
        with journal.begin(write=True) as transaction:
            transaction.put(seq.to_bytes(8), msgspec.msgpack.encode(header), db=headers)
            transaction.put(seq.to_bytes(8), kept.stored, db=payloads)
            transaction.put(b"tip", after, db=meta)
    assert carry(tmp_path) == 2
    assert carried(tmp_path).turns == (("host:gone", "t1"), ("host:gone", "t2"))
