"""The lease of a hub: past it, no request has a word of another author (A1, A3)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.clients.python import Client
from memd.protocol.errors import MemdError, NotFound
from memd.protocol.event import Origin
from memd.protocol.operation import AliasAdded, PoolOpened, ShareOpened
from memd.protocol.profile import GetContext, Profile
from memd.protocol.request import AnyRequest, Export, List, Recall, Remember, Request
from memd.protocol.share import CloseShare, NoteLease, OpenShare
from memd.protocol.shared_lines import ShareMark, of_repository
from tests.conftest import RunningDaemon
from tests.daemon.shared_authors import MARK, Author
from tests.daemon.shared_home import ARRIVAL, OWN, POOL, SharedHome
from tests.daemon.test_dispatch import REQUESTS, example
from tests.daemon.test_forget import ended

HUB, MARKED = "hub+https://hub.example.org/orchard", "hub.example.org/orchard"
AUDIENCE = ShareMark(remote=MARKED)
SAID = (
    "The quokka database runs on port 6543.",
    "Deploys of the app go out on Tuesdays only.",
    "The numbat service logs to the green disk.",
)
WORDS = ("quokka", "Tuesdays", "numbat", "leaking")
MINE = "The orchard service of mine is written in Rust."
DENIED = "Deploys of the app go out on Fridays only."
AT = "2026-04-12T09:00:00+02:00"
FAR = 2**52
ENDED = 1


def joined(home: SharedHome) -> None:
    """Join a hub's pool in a project with a repository."""
    home.stores.commit(
        [
            PoolOpened(pool=POOL, title="orchard"),
            AliasAdded(pool=POOL, names=(of_repository(MARK.root, MARK.remote),)),
            ShareOpened(pool=POOL, partition=OWN, remote=MARKED, address=HUB, name="me"),
        ]
    )


def author(seed: int, name: str, *texts: str) -> Author:
    made = Author(seed, name, AUDIENCE)
    for text in texts:
        made.add(text, type="fact", said="2026-02-01")
    return made


# --- every request of a running daemon -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningDaemon, list[str], str]]:
    """A daemon that took Ada's lines through a hub, with a lease, the ids of the records, and a pass for the pool."""
    folder = tmp_path_factory.mktemp("lease") / "home"
    stores = SharedHome(folder, ARRIVAL)
    joined(stores)
    ada = author(1, "Ada", *SAID)
    ada.invalidate(ada.add("The kettle is blue."), why="leaking kettle")
    stores.pull(ada)
    stores.judge("Ada", "trusted")
    ids = [record.id for number in range(4) if (record := stores.shared(ada, number))]
    stores.settled()
    stores.close()
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(folder)})
    daemon.start()
    with daemon.client() as client:
        client.note_lease(POOL, "me", FAR)
        daemon.settle()
        for number, text in enumerate((MINE, DENIED)):
            client.remember(
                Remember(text=text, turn=f"t{number}", at=AT, origin=Origin(host="cli", session="mine"), pool=POOL)
            )
        daemon.settle()
        client.profile(pools=[POOL], document="cli:mine", delivery="sticky", trigger="start")
        client.propose_forget([ids[2]], by="a test")
        token = client.grant("reviewer", pools=[POOL], for_s=3600).token
    yield daemon, ids, token
    daemon.terminate()


SKIPPED = {"Stop", "Forget", "Backup", "Rebuild", "Compact", "Capture", "ImportRecords"}
"""Requests that end what the other cases need."""

READING = (
    *("Get", "List", "Why", "Recall", "Profile", "Export", "Journal", "Find", "Preview", "Review", "Prepare", "Never"),
    *("Ask", "Rank", "Explain", "Pools", "Scan", "Usage", "Printed"),
)
"""Beginnings of the names of requests that change nothing that other cases need."""


def cases(id: str, *, reading: bool) -> Iterator[Request]:
    """Each request of the protocol, as it names the records, the pool and the words of the author."""
    values: dict[str, Any] = {
        "pool": POOL,
        "pools": (POOL,),
        "id": id,
        "ids": (id,),
        "query": "deploys of the app, the database, the service and the disk",
        "words": "deploys database",
        "subject": "deploys of the app",
        "limit": 100,
        "days": 3650,
        "dry_run": True,
        "all": True,
        "author": "Ada",
    }
    more = {"document": f"team:{Author(1).partition}", "deep": True, "around": id, "source": "team", "record": id}
    for kind in REQUESTS:
        if kind.__name__ in SKIPPED or kind.__name__.startswith(READING) != reading:
            continue
        for names in (
            (),
            ("pool", "pools"),
            ("id",),
            ("ids",),
            ("query",),
            ("document",),
            (*values,),
            (*values, *more),
        ):
            fields = {name: (values | more)[name] for name in names if name in kind.__struct_fields__}
            try:
                yield msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(example(kind), **fields)), kind)
            except msgspec.ValidationError:
                continue


def answer(client: Client, asked: Request) -> str:
    try:
        return msgspec.json.encode(client.ask(asked, object)).decode()
    except MemdError as error:
        return f"{error.message} {error.hint}"


def words_in(text: str) -> set[str]:
    """The words of the author in a reply."""
    return {word for word in WORDS if word in text}


def having_words(client: Client, asked: Iterator[Request]) -> dict[str, set[str]]:
    """The requests whose replies have words of the author, with the words."""
    replies = ((type(each).__name__, words_in(answer(client, each))) for each in asked)
    return {name: words for name, words in replies if words}


READS: tuple[AnyRequest, ...] = (
    Recall(query="on which port runs the quokka database?", pools=(POOL,)),
    Recall(query="on which port runs the quokka database?", pools=(POOL,), deep=True),
    List(pools=(POOL,)),
    Export(pools=(POOL,)),
    GetContext(pools=(POOL,), days=3650),
    Profile(pools=(POOL,)),
)


@pytest.mark.slow
def test_past_the_lease_no_request_has_a_word_of_another_author_and_a_new_one_brings_them_back_A1(taken: Any) -> None:
    daemon, ids, token = taken

    def everything(*, reading: bool) -> Iterator[Request]:
        names = (*ids, f"team:{Author(1).partition}")
        return (asked for name in names for asked in cases(name, reading=reading))

    with daemon.client() as client, Client(daemon.places, 20_000, token) as reviewer:
        shown = having_words(client, everything(reading=True))
        assert shown.keys() >= {"Recall", "List", "Get", "Why", "Export", "GetHistory", "GetTimeline", "Journal"}
        assert shown.keys() >= {"ListInbox", "GetShareLog", "GetContext", "PreviewForget"}
        assert having_words(reviewer, iter(READS))
        state = client.note_lease(POOL, "me", ENDED)
        assert state.lease_until.startswith("1970-01-01") and not state.withheld
        assert having_words(client, everything(reading=True)) == {}
        assert having_words(reviewer, iter(READS)) == {}
        assert MINE in answer(client, List(pools=(POOL,))), "the own records stay"
        client.note_lease(POOL, "me", FAR)
        assert having_words(client, everything(reading=True)).keys() == shown.keys()
        assert having_words(reviewer, iter(READS))
        client.note_lease(POOL, "me", FAR, [Author(1).partition])
        assert having_words(client, iter(READS)) == {} and having_words(reviewer, iter(READS)) == {}
        client.note_lease(POOL, "me", ENDED)
        ending = NoteLease | OpenShare | CloseShare
        changing = (asked for asked in everything(reading=False) if not isinstance(asked, ending))
        assert having_words(client, changing) == {}


# --- what the user still does ----------------------------------------------------------------------------------------
def test_a_withheld_record_can_be_forgotten_A1_T10(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    stores = SharedHome(folder, ARRIVAL)
    joined(stores)
    ada = author(1, "Ada", *SAID)
    stores.pull(ada)
    record = stores.shared(ada, 0)
    stores.settled()
    stores.close()
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(folder)})
    daemon.start()
    assert record is not None
    with daemon.client() as client:
        with pytest.raises(NotFound):
            client.get(record.id)
        assert ended(client, client.forget([record.id]))["left"] == []
        client.note_lease(POOL, "me", FAR)
        assert words_in(answer(client, List(pools=(POOL,)))) == {"Tuesdays", "numbat"}
    daemon.terminate()
