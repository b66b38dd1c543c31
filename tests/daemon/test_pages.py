"""Pages of `list` over several pools: newest first over all of them, each record once, at any time (Q12)."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from memd.daemon.projections.pool_directory import PoolDirectory
from memd.daemon.projections.timeline import Timeline
from memd.daemon.services.records.records_service import RecordsService
from memd.daemon.services.service import Caller
from memd.protocol.errors import InvalidRequest
from memd.protocol.instant import from_micros
from memd.protocol.operation import PoolOpened
from memd.protocol.record import Record, learning_order
from memd.protocol.request import List
from tests.conftest import RunningDaemon
from tests.daemon.living import Running, added
from tests.daemon.test_scope import git

POOLS = ("personal", "project/orchard", "project/quarry", "project/mill")
KNOWN = 300


@pytest.fixture
def running(tmp_path: Path) -> Any:
    running = Running(tmp_path / "data")
    yield running
    running.close()


@pytest.fixture
def service(running: Running) -> RecordsService:
    """Records of four pools, in a random order."""
    stores, random = running.stores, Random(7)
    stores.commit([PoolOpened(pool=pool, title=pool.rpartition("/")[2]) for pool in POOLS[1:]])
    for number in range(KNOWN):
        running.now += random.choice((0, 1_000_000))
        stores.commit([added(number, pool=random.choice(POOLS))])
    running.now += 1_000_000
    timeline = Timeline(stores.records, stores.sources, stores.journal)
    return RecordsService(stores, PoolDirectory(stores), timeline, lambda record: "", lambda record: "", lambda: None)


def pages(service: RecordsService, **wish: Any) -> list[Record]:
    caller, page, found = Caller(), service.list(List(**wish), Caller()), list[Record]()
    while page.records:
        found += page.records
        if not page.next:
            break
        page = service.list(List(after=page.next, **wish), caller)
    return found


@pytest.mark.parametrize("limit", [1, 7, 100, 1000])
@pytest.mark.parametrize("past", [False, True], ids=["now", "then"])
def test_pages_are_newest_first_over_all_pools_and_hold_each_record_once_Q12(
    service: RecordsService, running: Running, limit: int, past: bool
) -> None:
    instant = from_micros(running.world.now()) if past else ""
    found = pages(service, limit=limit, believed_at=instant)
    assert [record.id for record in found] == [record.id for record in sorted(found, key=learning_order, reverse=True)]
    assert len({record.id for record in found}) == KNOWN
    two = pages(service, limit=limit, believed_at=instant, pools=POOLS[1:3])
    assert two == [record for record in found if record.pool in POOLS[1:3]]


def test_what_memd_learns_between_two_pages_changes_no_later_page(service: RecordsService, running: Running) -> None:
    first = service.list(List(limit=10), Caller())
    before = service.list(List(limit=10, after=first.next), Caller()).records
    running.stores.commit([added(KNOWN + 1, pool=POOLS[2])])
    assert service.list(List(limit=10, after=first.next), Caller()).records == before


@pytest.mark.parametrize("cursor", ["x", "1", ":", "1:", ":id", "-1:id", "²:id", "0:1:id" * 9, "9" * 30 + ":id"])
def test_a_cursor_that_is_none_is_refused_with_a_hint(service: RecordsService, cursor: str) -> None:
    if cursor.startswith("0:1"):
        assert service.list(List(after=cursor), Caller()).records == ()
        return
    with pytest.raises(InvalidRequest) as caught:
        service.list(List(after=cursor), Caller())
    assert "next" in caught.value.hint


def test_the_newest_record_of_any_project_comes_first(daemon: RunningDaemon, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("mill", "quarry", "orchard")]
    for folder in folders:
        folder.mkdir()
        git(folder, "init")
        git(folder, "commit", "--allow-empty", "-m", folder.name)
    with daemon.client() as client:
        for number in range(6):
            text = f"The gate number {number} opens to the north."
            client.remember(text, cwd=str(folders[number % 3]), pool="project")
        said = [record.content for record in client.list(limit=50).records if record.content.startswith("The gate")]
    assert said == [f"The gate number {number} opens to the north." for number in reversed(range(6))]
