"""`memd hub` as two colleagues and an administrator meet it: real daemons, a real gateway, a real PostgreSQL
(H3, A1, A3)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from typer.main import get_command

from memd.clients.cli.hub import HubCommandGroup, app
from memd.clients.hub import administration
from memd.clients.python.client import Client
from memd.protocol.errors import MemdError
from tests.clients.conftest import Told, memd_in
from tests.clients.hub_server import Hub, hub, postgres
from tests.conftest import RunningDaemon

__all__ = ["hub", "postgres"]

LEDGER = "We keep the apple ledger in SQLite, because the spreadsheet loses rows."
PRESS = "The press of the orchard service starts at six in the morning."
POOL = "acme/platform"


class Colleague:
    """A user with a home, a daemon and a folder of a project of their own, without a common repository."""

    def __init__(self, root: Path, name: str) -> None:
        self.name, self.folder = name, root / name
        self.folder.mkdir()
        git = ["git", "-C", str(self.folder), "-c", f"user.name={name}", "-c", "user.email=a@example.org"]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"plant {self.folder}"], check=True)
        home = root / f"{name}-home"
        home.mkdir(mode=0o700)
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        self.environment = {**os.environ, **settings, "MEMD_HOME": str(home), "MEMD_IDLE_S": "0.05"}
        self.daemon = RunningDaemon(self.environment)
        self.daemon.start()
        self._memd = memd_in(self.environment)

    def memd(self, *arguments: str, input: str | None = None) -> Told:
        """`memd …`."""
        return self._memd(*arguments, input=input)

    def done(self, *arguments: str) -> str:
        """A command that succeeds; what it prints, on one line."""
        told = self.memd(*arguments)
        assert told.code == 0, told.errors + told.text
        return " ".join(told.text.split())

    def join(self, hub: Hub, pass_file: Path) -> str:
        """Join the pool."""
        at = ("--cwd", str(self.folder), "--name", self.name, "--yes")
        return self.done("hub", "join", f"{hub.gateways[-1].url}/{POOL}", "--pass-file", str(pass_file), *at)

    def share(self, text: str) -> None:
        """Remember a statement of the project, and send it."""
        with self.client() as client:
            client.remember(text, cwd=str(self.folder), pool="project")
        self.daemon.settle()
        self.done("share", "review", "--all", "--cwd", str(self.folder))
        self.done("hub", "sync")

    def client(self) -> Client:
        """A client of the daemon."""
        return self.daemon.client()

    def everything(self) -> str:
        """All that this home's reads say of the project."""
        with self.client() as client:
            cwd, (share, *_) = str(self.folder), client.shares().shares
            ids = [event.id for event in client.share_log(share.pool).events if event.id]
            asked: list[Callable[[], object]] = [
                lambda: client.recall("apple ledger press orchard spreadsheet SQLite", cwd=cwd),
                lambda: client.recall("apple ledger press orchard", cwd=cwd, deep=True, include_retired=True),
                lambda: client.profile(cwd=cwd),
                lambda: client.context(cwd=cwd, days=30),
                lambda: client.list(limit=200),
                lambda: client.share_log(share.pool),
                client.inbox,
                lambda: client.inbox(all=True),
                lambda: client.topics(pools=[share.pool]),
                lambda: client.timeline("ledger press", pools=[share.pool]),
                lambda: client.state(cwd=cwd),
                client.report,
                client.map,
                lambda: client.export([share.pool]),
                *(lambda id=id: client.get(id) for id in ids),
                *(lambda id=id: client.why(id) for id in ids),
                *(lambda id=id: client.history(id) for id in ids),
            ]
            told: list[str] = []
            for ask in asked:
                try:
                    told.append(repr(ask()))
                except MemdError as error:
                    told.append(repr(error))
        return "\n".join(told)


@pytest.fixture
def colleague(tmp_path: Path) -> Iterator[Callable[[str], Colleague]]:
    """Makes colleagues."""
    people: list[Colleague] = []

    def new(name: str) -> Colleague:
        people.append(Colleague(tmp_path, name))
        return people[-1]

    yield new
    for person in people:
        person.daemon.terminate()


@pytest.fixture(autouse=True)
def project_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of the user who runs the tests out of them."""
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_help_lists_each_command_once_by_audience_H3() -> None:
    group = get_command(app)
    assert isinstance(group, HubCommandGroup)
    names = group.list_commands(None)
    assert sorted(names) == sorted(group.commands) and len(names) == len(set(names))


@pytest.mark.slow
def test_two_colleagues_share_without_a_repository_and_ask_across_H3(
    hub: Hub, colleague: Callable[[str], Colleague]
) -> None:
    ada, ben = colleague("Ada"), colleague("Ben")
    assert "is shared through" in ada.join(hub, hub.grant("ada", POOL))
    assert "Ada" in ben.join(hub, hub.grant("ben", POOL))
    ada.share(LEDGER)
    assert "1 new" in ben.done("hub", "sync")
    assert LEDGER in ben.everything()
    asked = ben.done("recall", "where is the apple ledger", "--org", "--cwd", str(ben.folder))
    assert LEDGER in asked
    assert f"Ada in {POOL}" in asked
    status = ben.done("hub", "status")
    assert "readable until" in status and "Ada" in status
    # somebody who works in no project asks
    eve = colleague("Eve")
    file = hub.grant("eve", POOL)
    assert "1 pool" in eve.done("hub", "join", hub.gateways[-1].url, "--pass-file", str(file))
    assert LEDGER in eve.done("recall", "apple ledger", "--org")
    # forgetting reaches the hub and the others
    with ada.client() as client:
        (record,) = [record for record in client.list().records if record.description == LEDGER]
        client.forget([record.id])
    ada.daemon.settle()
    ada.done("hub", "sync")
    ben.done("hub", "sync")
    assert LEDGER not in ben.everything()
    assert not hub.rows("select from memd.rec where text = %s", LEDGER)


@pytest.mark.slow
def test_a_revoked_colleague_and_one_past_the_lease_read_nothing_A1(
    hub: Hub, colleague: Callable[[str], Colleague]
) -> None:
    ada, ben = colleague("Ada"), colleague("Ben")
    ada.join(hub, hub.grant("ada", POOL))
    short = 25.0
    ben.join(hub, hub.grant("ben", POOL, seconds=short))
    end = time.monotonic() + short
    ada.share(PRESS)
    ben.done("hub", "sync")
    with ben.client() as client:
        client.remember("Ben waters the trees himself.", cwd=str(ben.folder), pool="project")
    ben.daemon.settle()
    assert PRESS in ben.everything()
    time.sleep(max(0.0, end - time.monotonic()) + 1)
    told = ben.everything()  # without a network: nothing was asked of the hub
    assert PRESS not in told
    assert "Ben waters the trees" in told
    assert "can't be read" in ben.done("hub", "status")
    assert ben.memd("hub", "sync").code != 0
    # renewed
    ben.join(hub, hub.grant("ben", POOL))
    assert PRESS in ben.everything()
    # revoked: the next contact ends it at once
    assert "1 grant" in administrator(hub, ada, "revoke", "ben", "--pool", POOL)
    assert "no access" in (told := ben.memd("hub", "sync")).errors, told
    assert PRESS not in ben.everything()
    # an author whom the hub withholds
    ben.join(hub, hub.grant("ben", POOL))
    assert PRESS in ben.everything()
    for name in administration.partitions_of(hub.admin, "ada"):
        administration.withhold(hub.admin, name)
    ben.done("hub", "sync")
    assert PRESS not in ben.everything()
    for name in administration.partitions_of(hub.admin, "ada"):
        administration.withhold(hub.admin, name, back=True)
    ben.done("hub", "sync")
    assert PRESS in ben.everything()
    ben.done("hub", "leave", "--cwd", str(ben.folder))
    assert PRESS not in ben.everything()
    assert "joined no hub" in ben.done("hub", "status")


@pytest.mark.slow
def test_a_withdrawal_that_fails_says_so_and_is_done_when_it_is_repeated_H3(
    hub: Hub, colleague: Callable[[str], Colleague]
) -> None:
    ada = colleague("Ida")
    file = hub.grant("ida", POOL)
    ada.join(hub, file)
    ada.share(LEDGER)
    bert = hub.user("bob", POOL)
    bert.put(POOL, bert.author(31, POOL, PRESS))
    ada.done("hub", "sync")
    assert PRESS in ada.everything()
    administrator(hub, ada, "revoke", "ida")
    at = ("--cwd", str(ada.folder))
    told = ada.memd("hub", "leave", "--withdraw", *at)
    words = " ".join(told.errors.split())
    assert told.code != 0 and "the hub still has your lines" in words and "repeat" in words
    assert PRESS not in ada.everything(), "the lease has ended"
    assert hub.rows("select from memd.rec where text = %s", LEDGER)
    assert "still has 1 line of yours" in ada.done("hub", "status")
    hub.grant("ida", POOL).rename(file)
    assert "is withdrawn" in ada.done("hub", "leave", "--withdraw", *at)
    assert not hub.rows("select from memd.rec where text = %s", LEDGER)
    assert PRESS not in ada.everything()
    assert "joined no hub" in ada.done("hub", "status")
    ada.join(hub, file)
    assert not hub.rows("select from memd.rec where text = %s", LEDGER), "nothing was chosen since"


@pytest.mark.slow
def test_after_a_restore_of_the_database_one_sync_sends_what_the_hub_lost_H3(
    hub: Hub, colleague: Callable[[str], Colleague]
) -> None:
    ada = colleague("Uta")
    ada.join(hub, hub.grant("uta", POOL))
    ada.share(LEDGER)
    mine = "(select part from memd.head where subject = 'uta')"
    searched = f"select text from memd.rec where part in {mine} order by n"
    with psycopg.connect(hub.admin) as connection:
        connection.execute("create table backup as select * from memd.head where subject = 'uta'")
    ada.share(PRESS)
    with psycopg.connect(hub.admin) as connection:  # as a restore from before the second sync leaves it
        for table in ("op", "rec"):
            connection.execute(f"delete from memd.{table} where n > 0 and part in {mine}".encode())
        connection.execute("delete from memd.head where subject = 'uta'")
        connection.execute("insert into memd.head select * from backup")
        connection.execute("drop table backup")
    assert hub.rows(searched) == [(LEDGER,)]
    ada.done("hub", "sync")
    assert hub.rows(searched) == [(LEDGER,), (PRESS,)]
    with psycopg.connect(hub.admin) as connection:  # and from before the first one
        for table in ("op", "rec", "head"):
            connection.execute(f"delete from memd.{table} where part in {mine}".encode())
    ada.done("hub", "sync")
    assert hub.rows(searched) == [(LEDGER,), (PRESS,)]


@pytest.mark.slow
def test_a_hub_that_is_only_asked_can_be_left_H3(hub: Hub, colleague: Callable[[str], Colleague]) -> None:
    eve = colleague("Eve")
    url = hub.gateways[-1].url
    assert "no pass for" in eve.memd("hub", "leave", url).errors
    eve.done("hub", "join", url, "--pass-file", str(hub.grant("eve", POOL)))
    assert "asked no more" in eve.done("hub", "leave", url)
    assert "joined no hub" in eve.done("hub", "status")
    eve.join(hub, hub.grant("eve", POOL))
    assert "in the project's folder" in eve.memd("hub", "leave", url).errors
    # the administrator's commands: a key is made after everything else is known to be right
    key = eve.folder / "issuer.key"
    missing = eve.memd("hub", "grant", "eve", "--pool", "no/such", "--key", str(key), "--database", hub.admin)
    assert "no pool no/such" in missing.errors and not key.exists()
    made = eve.memd("hub", "grant", "eve", "--pool", POOL, "--key", str(key), "--database", hub.admin)
    assert key.exists() and str(administration.public_file(key)) in made.errors.replace("\n", "")
    wrong = eve.memd(
        "hub", "grant", "zoe", "--pool", POOL, "--key", str(hub.keys / "issuer.pem"), "--database", hub.admin
    )
    assert wrong.code != 0 and "zoe" not in administrator(hub, eve, "grants")
    # hidden authors are listed, and --lines with --pool hides in that pool alone
    user = hub.user("kai", POOL, f"{POOL}-other")
    here, there = user.author(33, POOL, "The gate is green."), user.author(34, f"{POOL}-other", "The gate is shut.")
    user.put(POOL, here)
    user.put(f"{POOL}-other", there)
    administrator(hub, eve, "revoke", "kai", "--pool", POOL, "--lines")
    listed = administrator(hub, eve, "grants")
    assert "hidden from everybody" in listed and here.partition in listed and there.partition not in listed


def administrator(hub: Hub, person: Colleague, *arguments: str) -> str:
    return person.done("hub", *arguments, "--database", hub.admin)
