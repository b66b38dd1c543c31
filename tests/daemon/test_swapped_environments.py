"""Reads while a store's file is replaced: none uses a handle of the old environment, none waits for itself (P-12)."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memd.clients.python import Client
from memd.daemon.projections.stores import Stores
from memd.daemon.storage.lmdb_environment import Environment
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import MemdError
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.operation import Added, ChangeProposed, SessionOpened
from memd.protocol.request import Remember
from tests.daemon.test_forget import ended
from tests.daemon.test_projections import AT, WHY, record

ORIGIN = Origin(host="h", session="s")
READS: dict[str, Callable[[Stores], Any]] = {
    "inbox.list": lambda stores: stores.inbox.list(decided=True),
    "inbox.open": lambda stores: stores.inbox.open(),
    "inbox.starting": lambda stores: stores.inbox.starting("p"),
    "inbox.held": lambda stores: stores.inbox.held(["personal"]),
    "forgotten.among": lambda stores: stores.forgotten.among([("h:s", "1")]),
    "forgotten.names": lambda stores: stores.forgotten.names("h:s"),
    "forgotten.hiding": lambda stores: stores.forgotten.hiding("h:s"),
    "records.recent": lambda stores: stores.records.recent("personal", None, 9),
    "records.many": lambda stores: stores.records.many(["id1"]),
    "records.named": lambda stores: stores.records.named("id1"),
    "records.everything": lambda stores: list(stores.records.everything()),
    "records.tally": lambda stores: stores.records.tally(),
    "records.supported": lambda stores: stores.records.supported("h:s", "1"),
    "records.holding_key": lambda stores: stores.records.holding_key("personal", "k"),
    "records.ever": lambda stores: stores.records.ever("personal"),
    "sources.all_sessions": lambda stores: stores.sources.all_sessions(),
    "sources.documents": lambda stores: stores.sources.documents(["personal"]),
    "sources.feeds": lambda stores: stores.sources.feeds("h:s", ["personal"]),
    "sources.history": lambda stores: stores.sources.history("id1"),
    "sources.pools": lambda stores: stores.sources.pools(),
    "open_sessions": lambda stores: stores.open_sessions.documents(),
    "dead_letters": lambda stores: stores.dead_letters.newest(),
    "counters.everything": lambda stores: list(stores.counters.everything()),
    "counters.by_level": lambda stores: stores.counters.by_level("personal"),
    "counters.soonest": lambda stores: stores.counters.soonest("personal", "note", 0, 9),
    "counters.with_signal": lambda stores: stores.counters.with_signal(record(1)),
    "grants.sources": lambda stores: stores.grants.sources(),
    "vectors.lost": lambda stores: stores.vectors.lost(0),
    "vectors.missing": lambda stores: stores.vectors.missing(9),
    "profile.cards": lambda stores: stores.profile.cards("personal", "facts"),  # pyright: ignore[reportArgumentType]
    "archive.turns": lambda stores: stores.archive.turns("h:s"),
    "archive.around": lambda stores: stores.archive.around("h:s", "1", 1, 1),
    "archive.after": lambda stores: stores.archive.after(0, 9),
    "journal.read": lambda stores: list(stores.journal.read()),
    "journal.slice": lambda stores: stores.journal.slice(0, 9),
    "journal.checkpoint": lambda stores: stores.journal.checkpoint(),
}


@pytest.fixture
def stores(tmp_path: Path) -> Any:
    stores = Stores(tmp_path, real_world(), registry.info())
    stores.commit(
        [
            SessionOpened(document="h:s", origin=ORIGIN, project="", at=AT),
            Added(record=record(1, key="k"), decision=WHY),
            ChangeProposed(id="p1", what="forget", record="id1"),
        ]
    )
    stores.take([Captured(document="h:s", event=Said(turn="1", at=AT, role="user", text="Tabs."))])
    yield stores
    stores.close()


@pytest.mark.parametrize("name", READS)
def test_a_read_that_begins_during_a_swap_uses_the_new_file_P12(
    name: str, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each environment is replaced right before a read waits for it; a read within another would wait for ever."""
    read_environment, reading = Environment.read, threading.local()

    @contextmanager
    def read(environment: Environment) -> Generator[Any]:
        assert not getattr(reading, "inside", False), "a read within a read"
        environment.replace(lambda: None)
        reading.inside = True
        try:
            with read_environment(environment) as snapshot:
                yield snapshot
        finally:
            reading.inside = False

    before = READS[name](stores)
    monkeypatch.setattr(Environment, "read", read)
    assert READS[name](stores) == before


REQUESTS: tuple[Callable[[Client], object], ...] = (
    lambda client: client.inbox(all=True),
    lambda client: client.list(),
    lambda client: client.recall("tabs"),
    lambda client: client.profile(),
    lambda client: client.sessions(),
    lambda client: client.pools(),
    lambda client: client.export(),
    lambda client: client.timeline("tabs"),
    lambda client: client.status(),
    lambda client: client.capture(ORIGIN, [Said(turn="1", at=AT, role="user", text="Tabs.")]),
)


def test_requests_of_every_kind_go_on_during_compaction_P12(daemon: Any) -> None:
    stopping, problems = threading.Event(), list[BaseException]()

    def ask(request: Callable[[Client], object]) -> None:
        with daemon.client() as client:
            while not stopping.is_set() and not problems:
                try:
                    request(client)
                except MemdError as error:
                    problems.append(error)

    with daemon.client() as client:
        client.remember(Remember(text="I prefer tabs.", turn="0", at=AT, origin=ORIGIN))
        threads = [threading.Thread(target=ask, args=(request,)) for request in REQUESTS]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                ended(client, client.compact())
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
    assert not problems, problems[0]
