"""Git between real daemons: a kill at any point of a push or pull, and a home that was copied (H1, H2)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.clients.exchange import carrying
from memd.clients.exchange.git_exchange import GitExchange, exchange_folder
from tests.conftest import RunningDaemon

ADA = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
PROGRAM = """
import os, sys
from pathlib import Path
from memd.clients.exchange import carrying
from memd.clients.python.client import Client
from memd.protocol.places import places
home = places(os.environ, os.getuid())
with Client(home, 30_000) as client:
    share = client.shares().shares[0]
    for step in sys.argv[1:]:
        getattr(carrying, step)(client, share.pool, carrying.exchange_for(home, share, None, False))
"""


class Member:
    """A daemon with a clone of the project."""

    def __init__(self, home: Path, clone: Path) -> None:
        self.home, self.clone = home, clone
        home.mkdir(mode=0o700, exist_ok=True)
        self.daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(home), "MEMD_IDLE_S": "0.05"})
        self.daemon.start()

    def share(self, remote: Path) -> None:
        with self.daemon.client() as client:
            client.remember("The orchard is private.", cwd=str(self.clone), pool="project")
            client.open_share(client.why_scope(str(self.clone)).pool, str(remote), name=self.home.name)

    def say(self, text: str) -> None:
        """Remember a statement, and choose it for the next push."""
        with self.daemon.client() as client:
            id = client.remember(text, cwd=str(self.clone), pool="project").record.id
        self.daemon.settle()
        with self.daemon.client() as client:
            client.offer_records(client.shares().shares[0].pool, [id])

    def carry(self, *steps: str, kill: str = "") -> int:
        environment = {**self.daemon.environment, carrying.KILL_POINT: kill}
        return subprocess.run([sys.executable, "-c", PROGRAM, *steps], env=environment, check=False).returncode

    def lines(self) -> set[tuple[str, int, str]]:
        """Partition, number and kind of each line that was sent or taken."""
        with self.daemon.client() as client:
            log = client.share_log(client.shares().shares[0].pool, limit=1000)
            return {(event.partition, event.n, event.what) for event in log.events}

    def delivered(self) -> tuple[int, int]:
        with self.daemon.client() as client:
            share = client.shares().shares[0]
            return share.offered, share.delivered


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    remote = tmp_path / "orchard.git"
    for command in (
        ["init", "-q", "--bare", str(remote)],
        ["clone", "-q", str(remote), str(tmp_path / "clone")],
        ["-C", str(tmp_path / "clone"), "commit", "-q", "--allow-empty", "-m", "plant"],
    ):
        subprocess.run(["git", *ADA, *command], check=True, capture_output=True)
    return remote


@pytest.fixture
def members(tmp_path: Path, remote: Path) -> Iterator[list[Member]]:
    both = [Member(tmp_path / name, tmp_path / "clone") for name in ("ada", "ben")]
    for one in both:
        one.share(remote)
    yield both
    for one in both:
        one.daemon.terminate()


def test_a_kill_at_any_point_changes_nothing_between_real_daemons_H1_H2(remote: Path, members: list[Member]) -> None:
    ada, ben = members
    for number, point in enumerate(carrying.POINTS):
        ada.say(f"The press number {number} stands in row A.")
        ben.say(f"The barrel number {number} stands in row B.")
        assert ben.carry("push") == 0
        assert ada.carry("push", "pull", kill=point) == -9
        assert ada.carry("push", "pull") == 0
        assert ben.carry("pull") == 0
    assert [one.carry(step) for one in (ada, ben, ada, ben) for step in ("pull", "push")] == [0] * 8
    assert ada.lines() == ben.lines()
    assert sum(what == "add" for _, _, what in ada.lines()) == 2 * len(carrying.POINTS)
    for one in (ada, ben):
        offered, delivered = one.delivered()
        assert offered == delivered
    refs = subprocess.run(["git", "-C", str(remote), "for-each-ref", "refs/memd"], check=True, capture_output=True)
    assert refs.stdout.count(b"\n") == 2
    subprocess.run(["git", "-C", str(remote), "fsck", "--strict"], check=True)


def test_a_copied_home_goes_on_in_a_partition_of_its_own_H1(
    remote: Path, members: list[Member], tmp_path: Path
) -> None:
    ada, ben = members
    ada.say("The press stands in row A.")
    assert ada.carry("push") == 0
    assert ada.daemon.terminate() == 0
    shutil.copytree(ada.home, tmp_path / "copy", ignore=lambda folder, names: {n for n in names if n.endswith("sock")})
    ada.daemon.start()
    copy = Member(tmp_path / "copy", ada.clone)
    try:
        ada.say("The barrel stands in row B.")
        assert ada.carry("push") == 0
        copy.say("The ladder stands in row C.")
        assert copy.carry("push") == 0
        assert copy.carry("pull", "pull") == 0
        with copy.daemon.client() as client:
            authors = {author.name: author for author in client.shares().shares[0].authors if not author.own}
            assert authors["you, other copy"].live == 1
            assert "The barrel stands in row B." in {record.description for record in client.list(limit=50).records}
    finally:
        copy.daemon.terminate()
    assert ben.carry("pull") == 0
    adds = [partition for partition, _, what in ben.lines() if what == "add"]
    assert sorted(map(adds.count, set(adds))) == [1, 2]
    with ben.daemon.client() as client:
        share = client.shares().shares[0]
        exchange = GitExchange(exchange_folder(ben.daemon.places.share, share.pool), None, str(remote))
    with exchange.exclusive():
        assert len(exchange.partitions("taken")) == 2
