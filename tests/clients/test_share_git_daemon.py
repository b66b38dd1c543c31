"""Daemons that others disturb while git carries: eight that push at once, a kill at any point of a push or pull, and a
home that was copied (H1, H2)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memd.clients.exchange import carrying
from tests.clients.sharing_members import Member, SharedProject, git, own_settings, refs, running_members
from tests.conftest import RunningDaemon

__all__ = ["own_settings"]


@pytest.fixture
def project(tmp_path: Path) -> SharedProject:
    """A new project."""
    return SharedProject(tmp_path)


@pytest.fixture
def remote(project: SharedProject) -> Path:
    """The bare repository of the project."""
    return project.remote


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningDaemon]]:
    """The daemons of Ada and Ben; each test has projects of its own in them."""
    with running_members(tmp_path_factory.mktemp("homes"), "Ada", "Ben") as running:
        yield running


@pytest.fixture
def members(daemons: list[RunningDaemon], project: SharedProject) -> Iterator[list[Member]]:
    """Ada and Ben."""
    members = [Member(daemon, project) for daemon in daemons]
    yield members
    for member in members:
        member.client.close()


def test_a_kill_at_any_point_changes_nothing_between_real_daemons_H1_H2(remote: Path, members: list[Member]) -> None:
    ada, ben = members
    for number, point in enumerate(carrying.POINTS):
        ada.say(f"The press number {number} stands in row A.")
        ben.say(f"The barrel number {number} stands in row B.")
        assert ben.carry("push") == 0
        assert ada.carry("push", "pull", kill=point) == -9
        assert ada.carry("push", "pull") == 0
        assert ada.delivered() == (number + 1, number + 1)
        assert len(ada.taken()[ben.partition]) == number + 1
        for one in members:
            assert git(remote, "rev-list", "--count", one.ref) == str(number + 1)
            assert ada.commit("taken", one.partition) == refs(remote)[one.ref]
        assert ben.carry("pull") == 0
    assert [one.carry(step) for one in (ada, ben, ada, ben) for step in ("pull", "push")] == [0] * 8
    assert ada.log() == ben.log()
    assert sum(what == "add" for _, _, what in ada.log()) == 2 * len(carrying.POINTS)
    for one in members:
        assert one.delivered() == (len(carrying.POINTS), len(carrying.POINTS))
    assert len(refs(remote)) == 2
    git(remote, "fsck", "--strict")


def test_a_copied_home_goes_on_in_a_partition_of_its_own_and_nothing_is_lost_H1(
    project: SharedProject, members: list[Member], tmp_path: Path
) -> None:
    ada, ben = members
    ada.say("The press stands in row A.")
    ada.push()
    ada.client.close()
    assert ada.daemon.terminate() == 0
    home = Path(ada.daemon.environment["MEMD_HOME"])
    shutil.copytree(home, tmp_path / "copy", ignore=lambda folder, names: {n for n in names if n.endswith("sock")})
    ada.daemon.start()
    ada.connect()
    daemon = RunningDaemon({**ada.daemon.environment, "MEMD_HOME": str(tmp_path / "copy")})
    daemon.start()
    try:
        copy = Member(daemon, project, "Ada", ada.pool)
        copy.ids |= ada.ids
        assert copy.partition == ada.partition
        ada.say("The barrel stands in row B.")
        assert not ada.push().renewed
        copy.say("The ladder stands in row C.")
        done = copy.push()
        assert done.renewed and done.partition != ada.partition
        copy.pull()
        authors = {author.name: author for author in copy.share.authors if not author.own}
        assert authors["you, other copy"].live == 1
        assert "The barrel stands in row B." in {record.description for record in copy.client.list(limit=50).records}
    finally:
        daemon.terminate()
    ben.pull()
    assert ben.taken() == {
        ada.partition: ["The press stands in row A.", "The barrel stands in row B."],
        done.partition: ["The ladder stands in row C."],
    }
    assert all(ben.commit("taken", partition) for partition in ben.taken())


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
def test_a_daemon_that_shares_opens_no_socket_but_unix_ones_P27(
    daemons: list[RunningDaemon], project: SharedProject, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    calls = "trace=socket,socketpair,connect,bind,sendto,sendmsg"
    strace = ("strace", "-D", "-f", "--seccomp-bpf", "-qq", "-e", calls, "-o", str(trace))
    with (
        Member(daemons[1], project) as ben,
        running_members(tmp_path, "Cleo", through=strace) as [traced],
        Member(traced, project) as cleo,
    ):
        cleo.say("The press stands in row A.")
        ben.say("The barrel stands in row B.")
        assert ben.push().count == 1
        assert cleo.push().count == 1
        assert cleo.pull().partitions[0].added == 1
        cleo.client.judge_author(cleo.pool, "Ben", "trusted")
        cleo.client.dispute_records([cleo.client.share_log(cleo.pool, "Ben").events[0].id])
        cleo.forget("The press stands in row A.")
        assert cleo.push().gone == 1
        assert ben.pull().partitions[0].added == 0
        cleo.client.close_share(cleo.pool, withdraw=True)
        assert cleo.push().gone == 1
    seen = trace.read_text()
    opened = re.findall(r"socket(?:pair)?\((\w+)", seen)
    assert opened and set(opened) == {"AF_UNIX"}, sorted(set(opened))
    bound = set(re.findall(r'bind\(.*sun_path="([^"]+)"', seen))
    assert bound == {str(traced.places.socket)}
    assert not set(re.findall(r"sa_family=(\w+)", seen)) - {"AF_UNIX"}


def push_at_once(members: list[Member], remote: Path, pushes: int) -> None:
    """Each member says something and pushes it, several times, while all others do; no push fails."""

    def push(member: Member) -> None:
        for time in range(pushes):
            member.say(f"The row {time} is planted, says {member.name}.")
            member.push(str(remote))

    with ThreadPoolExecutor(len(members)) as threads:
        assert list(threads.map(push, members)) == [None] * len(members)
    assert len(refs(remote)) == len(members)
    for one in members:
        assert one.delivered() == (pushes, pushes)
        assert git(remote, "rev-list", "--count", one.ref) == str(pushes)
    git(remote, "fsck", "--strict")


def takes(reader: Member, others: list[Member], remote: Path, pushes: int) -> None:
    """A member pulls, and has all lines of these others and no line of anybody else."""
    reader.pull(str(remote))
    assert reader.taken() == {
        one.partition: [f"The row {time} is planted, says {one.name}." for time in range(pushes)] for one in others
    }
    for one in others:
        assert reader.tree("taken", one.partition) == one.tree("v1", one.partition)


def test_eight_partitions_are_pushed_at_once_and_nothing_fails_H1(
    daemons: list[RunningDaemon], remote: Path, tmp_path: Path
) -> None:
    projects = [SharedProject(tmp_path / f"project {number}") for number in range(4)]
    members = [Member(daemon, project) for project in projects for daemon in daemons]
    push_at_once(members, remote, 3)
    for ada, ben in zip(members[::2], members[1::2], strict=True):
        takes(ada, [ben], remote, 3)
        takes(ben, [ada], remote, 3)


@pytest.mark.slow
def test_eight_homes_push_two_hundred_times_at_once_and_nothing_fails_H1(
    project: SharedProject, remote: Path, tmp_path: Path
) -> None:
    with running_members(tmp_path, *(f"member {number}" for number in range(8))) as daemons:
        members = [Member(daemon, project) for daemon in daemons]
        push_at_once(members, remote, 200)
        takes(members[0], members[1:], remote, 200)
