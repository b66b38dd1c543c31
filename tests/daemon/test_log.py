"""The log: nothing acknowledged is lost, nothing wrong is served, the chain holds without payloads (U3, P-11)."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lmdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.daemon.storage.archive import Archive
from memd.daemon.storage.folder_lock import FolderLock
from memd.daemon.storage.log import Draft, Log
from memd.daemon.world import World, real_world
from memd.protocol import block
from memd.protocol.errors import JournalCorrupt, JournalLocked
from memd.protocol.event import Captured, Said
from memd.protocol.record import Span

STILL = World(now=lambda: 1_000_000, monotonic=lambda: 0.0, token=os.urandom)


def said(turn: str, words: str) -> Captured:
    return Captured(document="h:s", event=Said(turn=turn, at="2026-01-01T00:00:00Z", role="user", text=words))


def forge(log: Log, change: Callable[[list[block.Kept]], list[block.Kept]]) -> None:
    """Changes the log's last block behind its back."""

    def work(transaction: lmdb.Transaction) -> None:
        cursor = transaction.cursor(log.environment.db("blocks"))
        assert cursor.last()
        key, row = cursor.item()
        other = block.encode(block.previous_of(row), change(block.decode(row)))
        transaction.put(key, other, db=log.environment.db("blocks"))

    log.environment.write(work)


def test_entries_come_back_in_order_after_a_reopening(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("a", 1, b"one"), Draft("b", 1, b"two")])
    log.close()
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("c", 1, b"three")])
    assert [(e.seq, e.header.kind, e.payload) for e in log.read()] == [
        (1, "a", b"one"),
        (2, "b", b"two"),
        (3, "c", b"three"),
    ]
    assert log.verify() == 3


def test_time_grows_even_when_the_clock_stands_still(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", STILL)
    log.append([Draft("a", 1, b"") for _ in range(5)])
    at = [entry.header.at for entry in log.read()]
    assert at == sorted(set(at))


def test_a_full_map_grows_and_loses_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world(), map_size=64 * 1024)
    for number in range(60):
        log.append([Draft("a", 1, b"x" * 1000 + str(number).encode()) for _ in range(10)])
    assert log.verify() == 600


def test_a_damaged_payload_is_reported_never_served(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("a", 1, b"the truth")])
    forge(log, lambda kept: [msgspec.structs.replace(kept[0], stored=bytes(16) + b"a lie")])
    with pytest.raises(JournalCorrupt):
        log.get(1)
    with pytest.raises(JournalCorrupt):
        log.verify()


def test_the_chain_holds_when_a_payload_is_removed_T10(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("a", 1, b"keep"), Draft("a", 1, b"forget"), Draft("a", 1, b"keep")])
    log.erase([2])
    assert log.verify() == 3
    entry = log.get(2)
    assert entry is not None and entry.payload is None


def test_a_payload_that_is_gone_and_was_not_removed_is_reported(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("a", 1, b"keep"), Draft("a", 1, b"keep")])
    forge(log, lambda kept: [msgspec.structs.replace(kept[0], stored=b""), kept[1]])
    with pytest.raises(JournalCorrupt):
        log.get(1)


def test_an_entry_that_is_gone_and_was_not_removed_is_reported(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("a", 1, os.urandom(9000)), Draft("a", 1, os.urandom(9000)), Draft("a", 1, b"keep")])
    log.environment.write(lambda t: t.delete((2).to_bytes(8), db=log.environment.db("blocks")))
    for seq in (1, 2):
        with pytest.raises(JournalCorrupt):
            log.slice(seq - 1, 2)
    with pytest.raises(JournalCorrupt):
        log.get(2)


def test_a_changed_header_breaks_the_chain(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", real_world())
    log.append([Draft("a", 1, b"one"), Draft("a", 1, b"two")])
    forge(log, lambda kept: [msgspec.structs.replace(kept[0], kind="b"), kept[1]])
    with pytest.raises(JournalCorrupt, match="chain"):
        log.verify()


def test_the_second_opener_hears_who_holds_the_lock_P11(tmp_path: Path) -> None:
    first = FolderLock(tmp_path)
    with pytest.raises(JournalLocked, match=str(os.getpid())):
        FolderLock(tmp_path)
    first.release()
    FolderLock(tmp_path).release()


def test_a_turn_is_taken_once_and_a_changed_one_replaces_it_W13(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive", real_world())
    assert archive.take([said("1", "a"), said("2", "b"), said("1", "a")]) == ["accepted", "accepted", "duplicate"]
    assert archive.take([said("1", "a"), said("2", "c")]) == ["duplicate", "changed"]
    newest = archive.turn("h:s", "2")
    assert newest is not None and newest == Captured(document="h:s", event=said("2", "c").event, replaces=2)
    assert archive.last == 3


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 30))
def test_any_order_of_taking_gives_each_turn_once_P7(
    tmp_path_factory: pytest.TempPathFactory, turns: list[int], cut: int
) -> None:
    archive = Archive(tmp_path_factory.mktemp("archive"), real_world())
    captures = [said(str(turn), f"words {turn}") for turn in turns]
    fates = archive.take(captures[:cut]) + archive.take(captures[cut:])
    assert fates.count("accepted") == len(set(turns)) == archive.last
    archive.close()


def test_neighbouring_turns_of_a_document_are_found_in_order(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive", real_world())
    archive.take([said(str(n), f"words {n}") for n in range(6)])
    assert [captured.event.turn for _, captured in archive.around("h:s", "3", 2, 1)] == ["1", "2", "3", "4"]
    assert archive.around("h:s", "nope", 1, 1) == []


def as_killed(folder: Path, name: str) -> Path:
    """What a kill would leave of an archive now: its file as it is, nothing closed."""
    return Path(shutil.copytree(folder, folder.parent / name, ignore=shutil.ignore_patterns("lock.mdb")))


def test_a_turn_is_known_after_a_kill_whatever_part_of_the_index_was_written_P7(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memd.daemon.storage.archive.INDEX_EVERY", 7)
    archive = Archive(tmp_path / "archive", real_world())
    truth: dict[str, int] = {}
    for start in range(0, 30, 3):
        archive.take([said(str(start), "a"), said(str(start + 1), "a"), said(str(start // 2), "b")])
        truth.update({str(start): archive.last - 2, str(start + 1): archive.last - 1, str(start // 2): archive.last})
        killed = as_killed(archive.log.environment.folder, f"killed{start}")
        for readonly in (True, False):
            again = Archive(killed, real_world(), readonly=readonly)
            assert {turn: again.seq_of("h:s", turn) for turn in truth} == truth
            assert [seq for seq, _ in again.around("h:s", str(start + 1), 99, 99)] == sorted(truth.values())
            again.close()
    archive.close()


def test_what_expires_is_known_after_a_kill_though_its_name_is_gone_T10(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive", real_world())
    archive.take([said("1", "a"), said("2", "b")])
    archive.expire([1])
    again = Archive(as_killed(tmp_path / "archive", "killed"), real_world())
    assert again.take([said("1", "a"), said("2", "b")]) == ["duplicate", "duplicate"]
    assert again.span(Span("h:s", "1", 0, 1)) is None
    archive.close()
