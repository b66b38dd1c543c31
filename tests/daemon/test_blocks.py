"""Blocks: entries share a row and lose nothing by it; an older memd's store is read; what goes is gone (U3, P-13)."""

import json
import os
import shutil
import tarfile
from pathlib import Path
from threading import Event

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.projections.stores import Stores
from memd.daemon.services.forgetting.compaction import compact_log
from memd.daemon.services.forgetting.copy_removal import drop_copies
from memd.daemon.services.forgetting.residue_scan import search
from memd.daemon.storage import migrations
from memd.daemon.storage.archive import Archive
from memd.daemon.storage.journal import JournalLog
from memd.daemon.storage.layout_version import LAYOUT, bring_up, read_format
from memd.daemon.storage.lmdb_environment import Environment
from memd.daemon.storage.log import Draft, Entry, Log
from memd.daemon.world import World, real_world
from memd.models import registry
from memd.protocol.block import BEGIN, FULL, MARK, Kept, header_of, plain
from memd.protocol.errors import JournalCorrupt, StorageFull
from memd.protocol.operation import Redacted

OLDER = Path(__file__).parents[1] / "data" / "layout1.tar.xz"
"""A folder as memd 0.1.0 left it in layout 1: captures, operations, one payload removed and one rewritten in each sort;
`entries.json` says what memd read there."""


def rows(log: Log) -> list[tuple[bytes, bytes]]:
    with log.environment.read() as transaction:
        return list(transaction.cursor(log.environment.db("blocks")).iternext())


def as_told(entries: list[Entry]) -> list[list[object]]:
    return [[e.seq, e.header.kind, e.header.at, e.payload.hex() if e.payload is not None else None] for e in entries]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    with tarfile.open(OLDER) as archive:
        archive.extractall(tmp_path / "older", filter="data")
    return tmp_path / "older"


def test_what_layout_1_holds_is_the_same_in_blocks_down_to_the_last_hash_P13(older: Path) -> None:
    told = json.loads((older / "entries.json").read_text())
    assert not bring_up(older, real_world())
    found = read_format(older)
    assert found is not None and [line.layout for line in found.history] == [1, LAYOUT]
    for name, store in (("journal", JournalLog), ("archive", Archive)):
        opened = store(older / name, real_world())
        assert as_told(list(opened.log.read())) == told[name]["entries"]
        assert opened.log.tip.hex() == told[name]["tip"] and opened.log.verify() == opened.log.last
        opened.close()


def test_what_is_forgotten_after_a_migration_is_seen_in_the_copy_that_it_kept_T10(older: Path) -> None:
    told = json.loads((older / "entries.json").read_text())["archive"]["entries"]
    bring_up(older, real_world())
    kept = older / "backups" / "layout-1" / "archive"
    assert migrations.is_first(kept) and not migrations.is_first(older / "archive")
    held = migrations.stored_in_first(kept, [1, 5, 999])
    assert held == {1: held[1], 5: b"removed"} and held[1][16:].hex() == told[0][3]
    archive = Archive(older / "archive", real_world())
    assert archive.log.stored([1, 5, 999]) == held
    archive.close()


def test_every_copy_that_a_migration_kept_goes_with_what_is_forgotten_T10(older: Path) -> None:
    bring_up(older, real_world())
    for name in ("journal", "archive"):  # back to the version before, by hand
        shutil.copyfile(older / "backups" / "layout-1" / name / "data.mdb", older / name / "data.mdb")
    (older / "format.json").write_text('{"layout": 1}')
    stores = Stores(older, real_world(), registry.info())
    copies = older / "backups" / "layout-1", older / "backups" / "layout-1-2"
    assert all(path.exists() for path in copies)
    stores.archive.log.erase([1])
    dropped, _ = drop_copies(stores, Redacted(captures=(1,)), real_world(), Event())
    assert sorted(dropped) == ["layout-1", "layout-1-2"] and not any(path.exists() for path in copies)
    stores.close()


def disk_full(folder: Path, world: World) -> None:
    raise OSError(28, "No space left on device")


def write_as_before(folder: Path, payload: bytes) -> int:
    """Append an entry to a log of layout 1, as memd 0.1.0 did; its seq."""
    last, tip = migrations.check_first(folder)
    old = Environment(folder, ("meta", "headers", "payloads"), durable=True)
    seq, stored = last + 1, bytes(16) + payload
    header, after = header_of(seq, bytes.fromhex(tip), Kept(2_000_000_000_000_000, "later", 1, stored))
    key = seq.to_bytes(8)
    rows = [("headers", key, msgspec.msgpack.encode(header)), ("payloads", key, stored), ("meta", b"tip", after)]
    for name, key, row in rows:
        old.write(lambda into, name=name, key=key, row=row: into.put(key, row, db=old.db(name)))
    old.close()
    return seq


@pytest.mark.parametrize("again", [False, True])
def test_what_an_older_memd_wrote_after_an_upgrade_was_cut_off_is_kept_P13(older: Path, again: bool) -> None:
    with pytest.raises(StorageFull):
        bring_up(older, real_world(), migrations={1: disk_full})
    assert (older / "migrating").read_text() == "layout-1"
    seq = write_as_before(older / "journal", b"between")
    if again:
        with pytest.raises(StorageFull):
            bring_up(older, real_world(), migrations={1: disk_full})
    assert not bring_up(older, real_world())
    log = Log(older / "journal", real_world())
    entry = log.get(seq)
    assert entry is not None and entry.payload == b"between" and log.last == seq
    log.close()
    assert {path.name for path in (older / "backups").iterdir()} == {"layout-1", "layout-1-2"}
    assert not (older / "migrating").exists()


@pytest.mark.parametrize("left", [0, 40_000])
def test_what_a_migration_left_half_done_is_taken_from_the_copy_P13(older: Path, left: int) -> None:
    with pytest.raises(StorageFull):
        bring_up(older, real_world(), migrations={1: disk_full})
    file = older / "archive" / "data.mdb"
    assert file.stat().st_size > left
    with file.open("r+b") as open_file:
        open_file.truncate(left)
    assert not bring_up(older, real_world())
    told = json.loads((older / "entries.json").read_text())["archive"]
    log = Log(older / "archive", real_world())
    assert log.tip.hex() == told["tip"] and log.verify() == len(told["entries"])
    log.close()
    assert [path.name for path in (older / "backups").iterdir()] == ["layout-1"]


def test_a_damaged_store_of_layout_1_is_never_carried_over_P11(older: Path) -> None:
    data = older / "archive" / "data.mdb"
    data.write_bytes(data.read_bytes().replace(b"The lamp7 stands", b"She lamp7 stands"))
    with pytest.raises(JournalCorrupt, match="entry 8"):
        bring_up(older, real_world())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.binary(max_size=6000), min_size=1, max_size=9), max_size=12), st.sets(st.integers(1, 60)))
def test_any_groups_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[bytes]], gone: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = Log(folder, real_world(), quick=len(groups) % 2 == 0)
    said = [payload for group in groups for payload in group]
    for group in groups:
        log.append([Draft("a", 1, payload) for payload in group])
    hashes = [log.fingerprint(seq) for seq in range(1, log.last + 1)]
    log.erase(sorted(gone))
    log.rewrite({seq + 1: b"another" for seq in gone if seq < log.last}, lambda transaction: None)
    wanted = [
        b"another" if seq - 1 in gone else None if seq in gone else payload for seq, payload in enumerate(said, 1)
    ]
    for _ in range(2):  # as it is written, and as it is read after a start
        assert [entry.payload for entry in log.read()] == wanted and log.verify() == len(said)
        assert [entry.payload for seq in range(1, log.last + 1) if (entry := log.get(seq))] == wanted
        assert [log.fingerprint(seq) for seq in range(1, log.last + 1)] == hashes
        assert all(log.slice(after, 3) == list(log.read(after))[:3] for after in range(log.last + 1))
        log.close()
        log = Log(folder, real_world())
    log.close()


def test_what_is_said_slowly_shares_pages_as_what_is_said_at_once(tmp_path: Path) -> None:
    words = [f"The lamp{number} stands in room{number}, and nobody moved it." for number in range(400)]
    slow, fast = Log(tmp_path / "slow", real_world()), Log(tmp_path / "fast", real_world())
    for number, each in enumerate(words):
        if number == 200:  # by another process
            slow.close()
            slow = Log(tmp_path / "slow", real_world())
        slow.append([Draft("a", 1, each.encode())])
    fast.append([Draft("a", 1, each.encode()) for each in words])
    assert len(rows(slow)) <= len(rows(fast)) * 1.5
    assert all(len(row) <= FULL for log in (slow, fast) for _, row in rows(log))
    assert [entry.payload for entry in slow.read()] == [entry.payload for entry in fast.read()]


def test_words_are_sought_within_blocks_and_are_gone_from_the_file_after_compaction_T10(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("a", 1, f"{word} {os.urandom(40).hex()} ".encode() * 5) for word in ("xylofon", "lamp") * 9])
    file = tmp_path / "log" / "data.mdb"
    log.erase(range(1, 19, 2))
    log.environment.sync()
    assert b"xylofon xyl" not in file.read_bytes() and b"xylofon" in plain(file.read_bytes())
    assert search([tmp_path], [b"xylofon", b"nothing"]).found[str(file)] == (b"xylofon",)
    compact_log(log)
    assert search([tmp_path], [b"xylofon"]).found == {}
    assert b"xylofon" not in plain(file.read_bytes()) and b"lamp" in plain(file.read_bytes())
    assert log.verify() == 18 and sum(entry.payload is not None for entry in log.read()) == 9


def test_a_flipped_bit_anywhere_in_a_block_is_an_error_P11(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("a", 1, f"the truth {number}".encode()) for number in range(20)])
    ((key, row),) = rows(log)
    truth = [entry.payload for entry in log.read()]
    assert row.startswith(MARK) and len(row) > BEGIN
    for place in range(len(row)):
        flipped = bytearray(row)
        flipped[place] ^= 1 << place % 8
        log.environment.write(lambda t, flipped=flipped: t.put(key, bytes(flipped), db=log.environment.db("blocks")))
        try:
            found = [entry.payload for entry in log.read()]
        except JournalCorrupt:
            continue
        assert found == truth  # one that deflate does not need, at its end
