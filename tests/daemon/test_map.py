"""The map of the memory: pools and topics, what is near a thing, at another time, under a pass (U4, Q12, A1)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.clients.python import Client
from memd.daemon.projections.pool_directory import PoolDirectory
from memd.daemon.projections.timeline import Timeline
from memd.daemon.services.map.map_service import MapService
from memd.daemon.services.map.things import things_of
from memd.daemon.services.scheduler import Scheduler
from memd.daemon.services.service import Caller
from memd.protocol.errors import Denied, NotFound
from memd.protocol.event import Origin
from memd.protocol.instant import from_micros
from memd.protocol.map import LABEL, MARKS, POOLS, REPLY_BYTES, TOPICS, GetMap, MemoryMap
from memd.protocol.operation import Added, Invalidated, PoolOpened, Retirement
from memd.protocol.record import Record
from memd.protocol.request import Remember
from tests.daemon.living import WHY, Running, added, record, used

ORCHARD, QUARRY = "project/orchard", "project/quarry"


def words(number: int, text: str, **more: Any) -> Added:
    return added(number, content=text, **more)


GARDEN = (
    words(1, "We store the harvest in `postgres` and read it with Grafana.", pool=ORCHARD),
    words(2, "The backup of `postgres` runs before the one of Redis.", pool=ORCHARD),
    words(3, "Ask before you restart Redis or the Caddy proxy.", pool=ORCHARD),
    words(4, "Redis holds nothing that lasts.", pool=ORCHARD),
    words(5, "The stone saw is steered by `sawd` on the Lathe machine.", pool=QUARRY),
    words(6, "Never update `sawd` while the saw turns.", pool=QUARRY),
)


@pytest.fixture
def running(tmp_path: Path) -> Any:
    running = Running(tmp_path / "data")
    yield running
    running.close()


@pytest.fixture
def service(running: Running) -> MapService:
    stores = running.stores
    stores.commit([PoolOpened(pool=pool, title=pool.rpartition("/")[2]) for pool in (ORCHARD, QUARRY)])
    timeline = Timeline(stores.records, stores.sources, stores.journal)
    return MapService(stores, PoolDirectory(stores), timeline, Scheduler(running.world))


def names(drawn: MemoryMap, kind: str) -> list[str]:
    return [mark.label for mark in drawn.marks if mark.kind == kind]


def linked(drawn: MemoryMap) -> set[tuple[str, str, str]]:
    return {(drawn.marks[link.source].id, link.kind, drawn.marks[link.target].id) for link in drawn.links}


# --- things ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "more", "certain", "leading"),
    [
        ("The team reads it with Grafana Cloud.", {}, ("Grafana Cloud",), ()),
        ("Redis holds it. Ask Ada first.", {}, (), ("Redis", "Ask Ada", "Ask", "Ada")),
        ("Use `uv run` here.", {}, ("uv run",), ("Use",)),
        ('It returns `-1` or `""` then.', {}, (), ()),
        ("Wir nehmen den Kessel.", {"language": "de"}, (), ()),
        ("It has flags and Names in it.", {"flags": ("orders",)}, (), ()),
        ("ada uses vim", {"kind": "edge", "key": "ada uses vim"}, ("ada", "vim"), ()),
        ("I use vim.", {"kind": "edge", "key": "user uses vim"}, ("vim",), ()),
        ("k8s is Kubernetes.", {"aliases": ("k8s", "Kubernetes")}, ("k8s", "Kubernetes"), ()),
        ("the editor is set", {"kind": "fact", "key": "user.editor", "value": "vim"}, ("editor",), ()),
        ("it is in there", {"tags": ("fact", "src/main.rs", "there")}, ("src/main.rs",), ()),
    ],
)
def test_what_a_record_names_U4(
    text: str, more: dict[str, Any], certain: tuple[str, ...], leading: tuple[str, ...]
) -> None:
    things = things_of(record(1, content=text, **more))
    assert (things.certain, things.leading) == (certain, leading)


# --- the whole --------------------------------------------------------------------------------------------------------
def test_pools_with_the_things_that_set_them_apart_U4(running: Running, service: MapService) -> None:
    running.stores.commit(GARDEN)
    drawn = service.map(GetMap(), Caller())
    assert names(drawn, "pool") == ["orchard", "quarry"] and [mark.size for mark in drawn.marks[:2]] == [4, 2]
    assert {mark.label: mark.size for mark in drawn.marks if mark.kind == "topic"} == {
        "Redis": 3,  # also where it begins a sentence
        "postgres": 2,
        "sawd": 2,
    }
    assert ("sawd", "in", QUARRY) in linked(drawn) and drawn.left == 0 and drawn.records == len(GARDEN)
    assert names(service.map(GetMap(pools=("quarry",)), Caller()), "topic") == ["sawd"]
    assert service.map(GetMap(), Caller()) == drawn


def test_a_common_word_is_no_topic_but_can_be_asked_for_U4(running: Running, service: MapService) -> None:
    texts = (
        "It opens a new Session when the pane starts.",
        "We keep the Session beside Redis, as `redis` demands.",
        "The server ends a session after an hour, and its sessions are short.",
        "We restart redis at night.",
        "It writes to Redis first.",
    )
    running.stores.commit([words(number, text, pool=ORCHARD) for number, text in enumerate(texts, 1)])
    assert names(service.map(GetMap(), Caller()), "topic") == ["Redis"]
    around = service.map(GetMap(around="session", hops=2), Caller())
    assert "Session" in names(around, "thing") and "Redis" in names(around, "thing")
    assert "Session" not in names(service.map(GetMap(around="redis", hops=2), Caller()), "thing")


def test_a_common_word_that_is_the_end_of_a_relation_is_a_topic_U4(running: Running, service: MapService) -> None:
    relations = (words(n, "ada uses the press", kind="edge", key="ada uses press", pool=ORCHARD) for n in (1, 2))
    others = (words(n, "We clean the press, and no other presses.", pool=ORCHARD) for n in (3, 4))
    running.stores.commit([*relations, *others])
    assert "press" in names(service.map(GetMap(), Caller()), "topic")


def test_a_map_of_an_empty_home_is_empty_U4(service: MapService) -> None:
    assert service.map(GetMap(), Caller()) == MemoryMap(marks=(), links=(), records=0)


def test_more_pools_and_topics_than_a_map_has_room_for_are_counted_U4(running: Running, service: MapService) -> None:
    pools = [f"project/p{number}" for number in range(POOLS + 7)]
    texts = [f"Watch `thing{number}` there." for number in range(TOPICS + 5) for _ in (1, 2)]
    running.stores.commit([PoolOpened(pool=pool, title=pool) for pool in pools])
    running.stores.commit([words(at, "It is so.", pool=pool) for at, pool in enumerate(pools)])
    running.stores.commit([words(1000 + at, text, pool=pools[0]) for at, text in enumerate(texts)])
    drawn = service.map(GetMap(), Caller())
    assert len(names(drawn, "pool")) == POOLS and len(names(drawn, "topic")) == TOPICS and drawn.left == 7 + 5
    few = service.map(GetMap(limit=POOLS + 3), Caller())
    assert len(few.marks) == POOLS + 3 and few.left == drawn.left + TOPICS - 3


# --- around something -----------------------------------------------------------------------------------------------
def test_a_thing_its_records_and_what_these_name_by_steps_U4(running: Running, service: MapService) -> None:
    running.stores.commit(GARDEN)
    one, two, three = (service.map(GetMap(around="POSTGRES", hops=hops), Caller()) for hops in (1, 2, 3))
    assert one.marks[0].id == "postgres" and one.marks[0].size == 2
    assert {mark.id for mark in one.marks} == {"postgres", "id1", "id2"}
    assert set(names(two, "thing")) == {"postgres", "Grafana", "Redis"}
    assert {mark.id for mark in three.marks if mark.kind == "record"} == {"id1", "id2", "id3", "id4"}
    assert ("id2", "names", "redis") in linked(two) and "sawd" not in {mark.id for mark in three.marks}


def test_around_a_record_by_its_id_or_its_beginning_U4(running: Running, service: MapService) -> None:
    running.stores.commit([*GARDEN, words(777777, "It turns the saw with `sawd` too.", pool=QUARRY)])
    drawn = service.map(GetMap(around="id7777", hops=1), Caller())
    assert [(mark.kind, mark.id) for mark in drawn.marks] == [("record", "id777777"), ("thing", "sawd")]
    assert drawn.marks[0].status == "active" and drawn.marks[0].trust == "user"
    with pytest.raises(NotFound):
        service.map(GetMap(around="violin"), Caller())


def test_ends_of_a_relation_and_replaced_records_are_links_U4(running: Running, service: MapService) -> None:
    text = "Ada uses vim."
    running.stores.commit([words(1, text, kind="edge", key="ada uses vim"), words(2, "Ask Ada about Vim and `ed`.")])
    drawn = service.map(GetMap(around="vim", hops=2), Caller())
    assert {("id1", "subject", "ada"), ("id1", "object", "vim"), ("id2", "names", "vim")} <= linked(drawn)


def test_the_strongest_marks_stay_and_the_rest_is_counted_T3_U4(running: Running, service: MapService) -> None:
    running.stores.commit([words(at, f"The lamp {at} hangs on `hook`.") for at in range(MARKS + 50)])
    running.stores.commit([used(123, 5), used(45, 9)])
    drawn = service.map(GetMap(around="hook", hops=1, limit=3), Caller())
    assert [mark.id for mark in drawn.marks] == ["hook", "id45", "id123"] and drawn.left == MARKS + 48
    assert drawn.marks[1].strength > drawn.marks[2].strength > 1
    whole = service.map(GetMap(around="hook", hops=1), Caller())
    assert len(whole.marks) + whole.left == MARKS + 51


@pytest.mark.parametrize("letters", ["a long sentence about it ", "関係する長い文章です", '"\\\\'])
def test_no_reply_is_longer_than_its_budget_in_any_script_U4(
    running: Running, service: MapService, letters: str
) -> None:
    rows = [f"`hook` `n{at}` `m{at % 7}` `k{at % 11}` {letters * 20}" for at in range(500)]
    running.stores.commit([words(at, row) for at, row in enumerate(rows)])
    for hops in (1, 2, 3):
        drawn = service.map(GetMap(around="hook", hops=hops), Caller())
        for encode in (msgspec.json.encode, msgspec.msgpack.encode):
            assert len(encode(drawn)) <= REPLY_BYTES
        assert len(drawn.marks) > 100 and all(len(mark.label) <= LABEL for mark in drawn.marks)


def test_no_secret_is_a_label_P_18(running: Running, service: MapService) -> None:
    secret = "ghp_" + "x9Kq2LmN8vRt4WyZ1aBcD3eFgH5iJ6kLmN7o"
    running.stores.commit([words(at, f"Push to `hook` with `{secret}` as the token.") for at in (1, 2)])
    for drawn in (service.map(GetMap(), Caller()), service.map(GetMap(around="hook", hops=3), Caller())):
        assert secret not in msgspec.json.encode(drawn).decode()
        assert secret.casefold() not in msgspec.json.encode(drawn).decode()


# --- another time -----------------------------------------------------------------------------------------------------
def test_the_map_of_another_time_on_both_clocks_Q12(running: Running, service: MapService) -> None:
    stores = running.stores
    start = running.now
    stores.commit([words(1, "We store it in `postgres`.", valid_from="2026-01-01T00:00:00Z")])
    running.now += 10**9
    renewed = record(2, content="We store it in `sqlite`.", valid_from="2026-03-01T00:00:00Z")
    retired = Retirement("id1", "2026-03-01T00:00:00Z", "replaced")
    stores.commit([Added(record=renewed, retires=(retired,), decision=WHY)])

    assert names(service.map(GetMap(around="sqlite", hops=1), Caller()), "thing") == ["sqlite"]
    with pytest.raises(NotFound):
        service.map(GetMap(around="postgres"), Caller())
    for as_of, believed_at in (("2026-02-01T00:00:00Z", ""), ("", from_micros(start + 10**6))):
        drawn = service.map(GetMap(around="postgres", hops=1, as_of=as_of, believed_at=believed_at), Caller())
        assert [mark.id for mark in drawn.marks] == ["postgres", "id1"]
        with pytest.raises(NotFound):
            service.map(GetMap(around="sqlite", as_of=as_of, believed_at=believed_at), Caller())
        assert service.map(GetMap(as_of=as_of, believed_at=believed_at), Caller()).records == 1
    stores.commit([Invalidated(id="id2", valid_to="2026-04-01T00:00:00Z", reason="wrong")])
    assert service.map(GetMap(), Caller()).records == 0


# --- under a pass -----------------------------------------------------------------------------------------------------
def test_a_pass_sees_the_marks_and_counts_of_its_pool_alone_A1(running: Running, service: MapService) -> None:
    running.stores.commit([*GARDEN, words(9, "The quarry buys `postgres` too.", pool=QUARRY)])

    def permits(record: Record) -> bool:
        return record.pool == ORCHARD

    holder = Caller(permits=permits, knows=lambda pool: pool == ORCHARD)
    whole = service.map(GetMap(), holder)
    assert names(whole, "pool") == ["orchard"] and set(names(whole, "topic")) == {"postgres", "Redis"}
    assert whole.records == 4 and whole.left == 0
    assert service.map(GetMap(around="postgres"), holder).marks[0].size == 2
    for hidden in ("sawd", "id5", "id9"):
        with pytest.raises(NotFound) as told:
            service.map(GetMap(around=hidden, hops=3), holder)
        assert told.value.hint == "`memd map` lists topics, `memd list` the ids of records"
    with pytest.raises(Denied):
        service.map(GetMap(pools=("quarry",)), holder)


def test_a_pass_of_a_running_daemon_limits_the_map_A1(daemon: Any, tmp_path: Path) -> None:
    folder = tmp_path / "orchard"
    folder.mkdir()
    (folder / ".memd-id").write_text("orchard-0001\n")

    def remember(client: Client, text: str, cwd: str = "", pool: str = "") -> str:
        origin = Origin(host="pi", session="pi-1", cwd=cwd)
        at = "2026-03-04T18:30:00+01:00"
        return client.remember(Remember(text=text, turn=text[:20], at=at, origin=origin, pool=pool)).record.id

    with daemon.client() as owner:
        for text in ("I brew tea in a Stagg kettle.", "My Stagg kettle is made of copper."):
            remember(owner, text)
        theirs = [
            remember(owner, text, str(folder), "project")
            for text in ("The orchard service runs on Caddy.", "Restart Caddy on Tuesdays only.")
        ]
        daemon.settle()
        pool = owner.get(theirs[0]).pool
        assert {mark.id for mark in owner.map("stagg").marks} >= {"stagg"}
        token = owner.grant("reviewer", pools=[pool], for_s=3600).token
        with Client(daemon.places, deadline_ms=20_000, token=token) as reader:
            drawn = reader.map()
            assert [mark.id for mark in drawn.marks if mark.kind == "pool"] == [pool] and drawn.records == 2
            assert {mark.id for mark in reader.map("caddy", hops=1).marks} == {"caddy", *theirs}
            with pytest.raises(NotFound):
                reader.map("stagg")
