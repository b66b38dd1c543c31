"""A shareable export: the gate of `memd share` decides what is in it, and nothing else leaves with it (A2, W5)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.daemon.projections.pool_directory import PoolDirectory
from memd.daemon.projections.timeline import Timeline
from memd.daemon.services.records.records_service import RecordsService
from memd.daemon.services.service import Caller
from memd.daemon.services.sharing.gate import KEPT, ShareGate
from memd.protocol.event import Origin
from memd.protocol.operation import Moved, PoolOpened, Revoked, SessionOpened
from memd.protocol.record import Artifact, Evidence, Record, Span
from memd.protocol.reply import ExportPage
from memd.protocol.request import Export
from tests.daemon.shared_home import AT, OTHER, POOL, SESSION, SharedHome, added, identified, record, session

GHP = "ghp_" + "8Hk2LmQ9xT4vB7nR1sW6yZ3cD5fG0jKpA1bC"
TITLE, FOLDER = "Why Mara left the cooperative", "/home/ada/cooperative"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SharedHome]:
    opened = SharedHome(tmp_path)
    opened.found()
    yield opened
    opened.close()


def pages(home: SharedHome, **wish: Any) -> list[ExportPage]:
    stores = home.stores
    timeline = Timeline(stores.records, stores.sources, stores.journal)
    gate = ShareGate(stores)
    service = RecordsService(
        stores, PoolDirectory(stores), timeline, lambda record: "", gate.why_not_exported, lambda: None
    )
    page = service.export(Export(**wish), Caller())
    found = [page]
    while page.next:
        page = service.export(Export(after=page.next, **wish), Caller())
        found.append(page)
    return found


def shareable(home: SharedHome, **wish: Any) -> tuple[set[str], dict[str, int]]:
    """The ids of a shareable export, and how many records stayed by the reason."""
    found, stayed = set[str](), dict[str, int]()
    for page in pages(home, shareable=True, **wish):
        found |= {exported.record.id for exported in page.records}
        for reason, number in page.stayed.items():
            stayed[reason] = stayed.get(reason, 0) + number
    return found, stayed


def evident(made: Record, document: str) -> Record:
    """The record with evidence from another document."""
    evidence = Evidence(kind="confirmed", span=Span(document, "e", 0, 1), trust="user", at=AT)
    return msgspec.structs.replace(made, provenance=msgspec.structs.replace(made.provenance, evidence=(evidence,)))


def test_only_what_the_gate_of_sharing_lets_go_is_in_it_A2_W5(home: SharedHome) -> None:
    home.commit(PoolOpened(pool=OTHER, title="quarry"), PoolOpened(pool="agent/bot"), PoolOpened(pool="unbound/u"))
    home.commit(session("h:personal", ""), session("h:quarry", OTHER), session("h:bot", POOL, agent="bot"))
    home.commit(
        *added(
            record(1),
            record(2, document="h:quarry", pool=OTHER),
            record(3, document="h:personal", pool="personal"),
            record(4, document="h:bot", pool="agent/bot"),
            record(5, pool="unbound/u"),
            record(6, document="h:quarry"),
            record(7, document="h:unknown"),
            record(8, document=f"team:{'a' * 24}"),
            record(9, status="quarantined"),
            record(10, status="retired"),
            record(11, kind="procedure"),
            record(12, f"The token is {GHP} today."),
            record(13, injection=0.99),
            evident(record(14), "h:personal"),
            record(15),
        )
    )
    home.share()
    home.choose(keep=(15,))
    found, stayed = shareable(home)
    assert found == {identified(1), identified(2)}, "each by the gate of its own project"
    assert stayed.pop("it is not in a project") == 3
    assert stayed.pop("it rests on a session outside this project") == 3
    assert stayed.pop("another author shared it") == 1 and stayed.pop(KEPT) == 1
    assert stayed.pop("a procedure is not shared") == 1
    assert sum(stayed.values()) == 4 and any("secret" in reason for reason in stayed)
    whole = pages(home)
    assert sum(len(page.records) for page in whole) == 15 and not any(page.stayed for page in whole)


def test_every_page_counts_its_own_records_A2(home: SharedHome) -> None:
    home.commit(*added(*(record(number, status="retired" if number % 3 else "active") for number in range(20))))
    for limit in (1, 3, 7, 200):
        found, stayed = shareable(home, limit=limit)
        assert (len(found), sum(stayed.values())) == (7, 13)


def test_the_users_move_is_the_only_way_over_and_the_others_session_tells_nothing_A2(home: SharedHome) -> None:
    origin = Origin(host="h", session="personal", cwd=FOLDER, title=TITLE)
    home.commit(SessionOpened(document="h:personal", origin=origin, project="", at=AT))
    home.commit(PoolOpened(pool="project/mill", title="mill", roots=(FOLDER,), evidence=f"{FOLDER} has a remote"))
    home.commit(session("h:mill", "project/mill"))
    proof = Artifact(type="file", ref=f"{FOLDER}/notes.md", note="private words")
    moved = record(1, document="h:personal", pool="personal", learnings={"taste": "private words"}, artifacts=(proof,))
    home.commit(*added(moved, record(2, document="h:mill", pool="project/mill")))
    assert shareable(home)[0] == {identified(2)}
    home.commit(Moved(ids=(identified(1),), pool=POOL, reason="private words"))
    assert shareable(home)[0] == {identified(1), identified(2)}
    sent = msgspec.json.encode(pages(home, shareable=True))
    for words in (TITLE, FOLDER, "private words", "quoted words"):
        assert words.encode() not in sent, words
    whole = msgspec.json.encode(pages(home))
    assert all(words.encode() in whole for words in (TITLE, FOLDER, "private words", "quoted words"))


def test_a_revoked_source_is_in_no_shareable_export_A3(home: SharedHome) -> None:
    home.commit(*added(record(1, document=SESSION)))
    assert shareable(home)[0] == {identified(1)}
    home.commit(Revoked(sources=(SESSION,)))
    assert shareable(home)[0] == set()
