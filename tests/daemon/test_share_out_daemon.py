"""Sharing through a running daemon: sessions as a whole, forgetting, kills, and names that no client may use (T10)."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.protocol.errors import InvalidRequest, MemdError
from memd.protocol.event import Origin, Said
from memd.protocol.operation import SessionOpened
from memd.protocol.record import Provenance, Record, Span
from memd.protocol.reply import ExportedRecord
from memd.protocol.request import ImportRecords, Remember
from memd.protocol.shared_lines import decode_shared, split_segment
from tests.conftest import RunningDaemon
from tests.daemon.test_forget import ended, files_with

AT = "2026-03-04T18:30:00+01:00"
QUOKKA = "The quokka cluster of the orchard service runs in Lisbon."
TABS = "The orchard service is indented with tabs."
SENTENCES = (("quokka", "t01", QUOKKA), ("tabs", "t02", TABS))
LATER = "2036-01-01T00:00:00Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "orchard"
    place.mkdir()
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(place), *command], check=True)
    return place


def remember(client: Any, text: str, turn: str, folder: Path, session: str = "one", at: str = AT, **more: Any) -> str:
    origin = Origin(host="cli", session=session, cwd=str(folder), **more)
    return client.remember(Remember(text=text, turn=turn, at=at, origin=origin, pool="project")).record.id


@pytest.fixture
def told(daemon: RunningDaemon, folder: Path) -> Iterator[tuple[RunningDaemon, Any, str, dict[str, str]]]:
    """A daemon that shares a project with two records: its client, the pool, and their ids."""
    with daemon.client() as client:
        ids = {word: remember(client, text, turn, folder) for word, turn, text in SENTENCES}
        daemon.settle()
        pool = client.why_scope(str(folder)).pool
        assert client.open_share(pool, name="Ada").partition
        yield daemon, client, pool, ids


def lines(client: Any, pool: str) -> list[Any]:
    parts = client.prepare_share(pool).segments
    return [decode_shared(raw, number) for number, raw in enumerate(split_segment(parts[0].data))]


def test_a_forgotten_record_is_in_no_file_of_the_home_and_gone_for_the_others_T10(told: Any) -> None:
    daemon, client, pool, ids = told
    assert client.offer_records(pool, [*ids.values()]).items
    sent = client.prepare_share(pool)
    assert (sent.epoch, sent.added) == (0, 2) and sent.held == ()
    client.note_delivered(pool, sent.partition, 0, sent.count)
    assert {line.text for line in lines(client, pool)} == {QUOKKA, TABS}
    report = ended(client, client.forget([ids["quokka"]]))
    assert report["left"] == []
    after = client.prepare_share(pool)
    assert (after.epoch, after.gone, after.added) == (1, 1, 0) and after.hashes == sent.hashes
    assert sorted(type(line).__name__ for line in lines(client, pool)) == ["AddLine", "GoneLine"]
    assert files_with(daemon, "quokka") == []


@pytest.mark.parametrize("nth", ["share:offered", "journal:committed"])
def test_a_kill_between_the_offer_and_its_delivery_changes_nothing_H1(told: Any, nth: str) -> None:
    daemon, client, pool, ids = told
    client.offer_records(pool, [*ids.values()])
    client.close()
    daemon.terminate()
    daemon.environment["MEMD_FAIL"] = nth
    daemon.start()
    with daemon.client() as again, pytest.raises(MemdError):
        again.prepare_share(pool)
    assert daemon.process is not None and daemon.process.wait(20) == -signal.SIGKILL
    del daemon.environment["MEMD_FAIL"]
    daemon.start()
    with daemon.client() as again:
        sent = again.prepare_share(pool)
        assert sent.count == 2 and [line.text for line in lines(again, pool)] == [QUOKKA, TABS]
        assert again.prepare_share(pool).head == sent.head
        assert again.note_delivered(pool, sent.partition, sent.epoch, sent.count).delivered == 2


def test_a_remembered_statement_is_as_visible_as_its_session_P7(daemon: RunningDaemon, folder: Path) -> None:
    with daemon.client() as client:
        shared = remember(client, QUOKKA, "t1", folder, "shared", visibility="shared")
        private = remember(client, TABS, "t2", folder, "private")
        assert client.get(shared).provenance.visibility == "shared", "before the worker read it"
        said = Said(
            turn="t3", at=AT, role="user", text="We decided that the orchard service keeps its logs for a year."
        )
        client.capture(Origin(host="cli", session="shared", cwd=str(folder)), [said])
        own = client.remember(
            Remember(
                text="I prefer tea.", turn="t4", at=AT, origin=Origin(host="cli", session="me", visibility="shared")
            )
        ).record.id
        daemon.settle()
        assert [client.get(id).provenance.visibility for id in (shared, private, own)] == [
            "shared",
            "private",
            "private",
        ]
        pool = client.why_scope(str(folder)).pool
        others = [each for each in client.list(pools=[pool], limit=50).records if "logs" in each.content]
        assert {each.provenance.visibility for each in others} == {"shared"}


def test_sessions_that_begin_after_the_users_word_are_shared_as_a_whole_G7(told: Any, folder: Path) -> None:
    daemon, client, pool, _ = told
    client.open_share(pool, new_sessions=True)
    begun = {
        remember(client, "The orchard service logs to syslog.", "t5", folder, "new", LATER): "shared",
        remember(client, "The orchard service caches for an hour.", "t6", folder, "old", AT): "private",
        remember(client, "The orchard service retries twice.", "t7", folder, "imported", LATER, live=False): "private",
        remember(client, "The orchard service signs its logs.", "t8", folder, "one", LATER): "private",
    }
    daemon.settle()
    assert {id: client.get(id).provenance.visibility for id in begun} == begun
    (item,) = client.share_outbox(pool).items
    assert item.id == next(iter(begun)) and item.due
    assert client.prepare_share(pool).count == 0


@pytest.mark.parametrize("host", ["team", "memd", "team:x"])
def test_no_client_names_a_host_of_memds_own(daemon: RunningDaemon, folder: Path, host: str) -> None:
    origin = Origin(host=host, session="a" * 24, cwd=str(folder))
    with daemon.client() as client:
        with pytest.raises(InvalidRequest, match="reserved"):
            client.remember(Remember(text=QUOKKA, turn="0", at=AT, origin=origin))
        with pytest.raises(InvalidRequest, match="reserved"):
            client.capture(origin, [Said(turn="0", at=AT, role="user", text=QUOKKA)])
        assert client.list(limit=10).records == ()


def test_no_import_brings_the_words_of_another_author(daemon: RunningDaemon) -> None:
    document = f"team:{'a' * 24}"
    provenance = Provenance(
        author="Ada", source=document, trust="document", spans=(Span(document, "0", 0, 5),), quote="", said_at=AT
    )
    record = Record(id="0" * 26, pool="personal", kind="note", content=TABS, description=TABS, provenance=provenance)
    opened = SessionOpened(document=document, origin=Origin(host="team", session="a" * 24), project="", at=AT)
    with daemon.client() as client:
        taken = client.import_records(ImportRecords(records=(ExportedRecord(record=record),), sessions=(opened,)))
        assert taken.added == 0 and len(taken.refused) == 2
        assert "another author" in taken.refused[0].problem.message
