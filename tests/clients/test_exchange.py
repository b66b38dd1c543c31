"""Every exchange carries partitions alike: by git, and through a hub (H1, H3)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from memd.clients.exchange.git_exchange import GitExchange
from memd.clients.exchange.hub_client import HubClient, JoinedHub
from memd.clients.exchange.hub_exchange import HubExchange
from memd.protocol.errors import Refused, RemoteUnreachable
from memd.protocol.exchange import Exchange, StaleRemote
from memd.protocol.hub import HubPools, PoolsAtHub
from memd.protocol.recall import TextVectors
from memd.protocol.share import SegmentData, ShareState
from memd.protocol.shared_lines import SEGMENT, ShareMark
from tests.clients.hub_server import Hub, User, hub, postgres
from tests.clients.sharing_members import own_settings
from tests.daemon.shared_authors import MARK, Author

__all__ = ["hub", "own_settings", "postgres"]
_numbers = count()


class NotedLeases:
    """A daemon without a model, which notes the leases that it hears of."""

    def __init__(self) -> None:
        self.until: list[int] = []

    def note_lease(self, pool: str, subject: str, until: int, withheld: Sequence[str] = ()) -> ShareState:
        self.until.append(until)
        return ShareState(pool=pool)

    def vectors(self, texts: Sequence[str]) -> TextVectors:
        return TextVectors()


class Remote:
    """A remote: exchanges of new homes with it, and the mark of its authors."""

    def __init__(self, home: Callable[[Path], Exchange], mark: ShareMark, folder: Path) -> None:
        self._home, self.mark, self._folder = home, mark, folder

    def home(self, name: str) -> Exchange:
        return self._home(self._folder / name)

    def author(self, *texts: str) -> Author:
        author = Author(next(_numbers) + 7000, mark=self.mark)
        for text in texts:
            author.add(text)
        return author


def _git(folder: Path, request: pytest.FixtureRequest) -> Remote:
    bare = folder / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    return Remote(lambda home: GitExchange(home.with_suffix(".git"), None, str(bare)), MARK, folder)


def _hub(folder: Path, request: pytest.FixtureRequest) -> Remote:
    running: Hub = request.getfixturevalue("hub")
    pool = f"exchange-{next(_numbers)}"
    user: User = running.user("ada", pool)
    url = running.gateways[-1].url

    def home(folder: Path) -> Exchange:
        client = HubClient(JoinedHub(url=url, pass_file=str(user.pass_file)))
        return HubExchange(folder.with_suffix(".hub"), f"hub+{url}/{pool}", client, NotedLeases(), "project/a")

    return Remote(home, user.mark(pool), folder)


@pytest.fixture(params=[_git, _hub], ids=["git", "hub"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Remote]:
    """A remote without partitions."""
    yield request.param(tmp_path, request)


def write(exchange: Exchange, author: Author, first: int = 0) -> str:
    """Write and push the segments of an author from a number on."""
    with exchange.exclusive():
        commit = exchange.write(author.head(), {segment.number: segment.data for segment in author.segments(first)})
        assert exchange.push(author.partition)[author.partition] == commit
    return commit


def fetched(exchange: Exchange, author: Author) -> tuple[bytes, tuple[SegmentData, ...]]:
    """What an exchange has of an author after a fetch."""
    assert exchange.fetch() == {}
    tree = exchange.tree("new", author.partition)
    assert tree is not None
    assert exchange.hashes(author.partition, tree) == author.hashes()
    return tree.head, tuple(exchange.segment(tree, number) for number in range(len(tree.blobs)))


def test_what_one_home_pushes_another_fetches_byte_for_byte(remote: Remote) -> None:
    author = remote.author(*(f"Tree {n} bears pears." for n in range(2 * SEGMENT + 5)))
    write(remote.home("ada"), author)
    reader = remote.home("ben")
    with reader.exclusive():
        assert fetched(reader, author) == (author.head(), author.segments())
        assert reader.partitions("new") == [author.partition]
        assert reader.partitions("taken") == []


def test_a_head_without_lines_is_a_partition_too(remote: Remote) -> None:
    author = remote.author()
    write(remote.home("ada"), author)
    reader = remote.home("ben")
    with reader.exclusive():
        assert fetched(reader, author) == (author.head(), ())


def test_only_segments_that_differ_from_those_taken_are_named(remote: Remote) -> None:
    author = remote.author(*(f"Row {n}." for n in range(SEGMENT + 3)))
    writer, reader = remote.home("ada"), remote.home("ben")
    write(writer, author)
    with reader.exclusive():
        fetched(reader, author)
        tree = reader.tree("new", author.partition)
        assert tree and reader.changed(author.partition, tree) == [0, 1]
        reader.take(author.partition)
        assert reader.changed(author.partition, tree) == []
    author.add("Another row.")
    write(writer, author, 1)
    with reader.exclusive():
        assert fetched(reader, author) == (author.head(), author.segments())
        tree = reader.tree("new", author.partition)
        assert tree and reader.changed(author.partition, tree) == [1]


def test_a_forgotten_line_is_named_although_its_segment_keeps_its_hash_T10(remote: Remote) -> None:
    author = remote.author("The quince is sour.", "The pear is sweet.")
    writer, reader = remote.home("ada"), remote.home("ben")
    write(writer, author)
    with reader.exclusive():
        fetched(reader, author)
        reader.take(author.partition)
    author.forget(0)
    write(writer, author)
    with reader.exclusive():
        assert fetched(reader, author) == (author.head(), author.segments())
        tree = reader.tree("new", author.partition)
        assert tree and reader.changed(author.partition, tree) == [0]


def test_the_same_partition_has_the_same_name_of_its_state(remote: Remote) -> None:
    author = remote.author("The gate is shut.")
    writer = remote.home("ada")
    first = write(writer, author)
    assert write(writer, author, first=1) == first
    with writer.exclusive():
        assert writer.remote_refs()[author.partition] == first
        assert writer.fetch_one(author.partition)[0] == first


def test_a_partition_that_is_not_there_is_none(remote: Remote) -> None:
    exchange = remote.home("ada")
    with exchange.exclusive():
        assert exchange.fetch() == {}
        assert exchange.fetch_one(remote.author().partition) == ("", None)
        assert exchange.tree("new", remote.author().partition) is None


def test_a_second_writer_of_one_key_is_told_that_the_remote_has_more_H1(remote: Remote) -> None:
    author = remote.author("The first line.")
    write(remote.home("ada"), author)
    author.add("A line of the first home.")
    with (first := remote.home("ada")).exclusive():
        first.write(author.head(), {segment.number: segment.data for segment in author.segments()})
        first.push(author.partition, over=first.fetch_one(author.partition)[0])
    author.lines.pop()
    author.add("A line of the copy.")
    with (copy := remote.home("copy")).exclusive():
        copy.write(author.head(), {segment.number: segment.data for segment in author.segments()})
        with pytest.raises(StaleRemote):
            copy.push(author.partition)
        commit, tree = copy.fetch_one(author.partition)
        assert commit and tree is not None and tree.decoded.count == 2


def test_what_a_home_stores_can_be_lost_H1(remote: Remote) -> None:
    author = remote.author("The well is deep.")
    writer = remote.home("ada")
    write(writer, author)
    with writer.exclusive():
        writer.remove()
    author.add("The well is dry.")
    with (again := remote.home("ada")).exclusive():
        again.write(author.head(), {segment.number: segment.data for segment in author.segments()})
        try:
            again.push(author.partition)
        except StaleRemote:
            again.push(author.partition, over=again.fetch_one(author.partition)[0])
    reader = remote.home("ben")
    with reader.exclusive():
        assert fetched(reader, author) == (author.head(), author.segments())


def test_two_processes_do_not_use_an_exchange_at_once(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memd.clients.exchange.exclusive_folder.LOCK_S", 0.1)
    one, other = remote.home("ada"), remote.home("ada")
    with one.exclusive(), pytest.raises(Exception, match="another memd"), other.exclusive():
        pass


def test_without_the_http_library_the_command_says_what_to_install_H3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(Refused) as told:
        HubClient(JoinedHub(url="http://127.0.0.1:9", pass_file=str(tmp_path / "pass"))).ask(HubPools(), PoolsAtHub)
    assert "memd[hub]" in told.value.hint


def test_a_hub_that_is_away_is_unreachable_and_keeps_the_lease_H3(tmp_path: Path) -> None:
    leases = NotedLeases()
    (tmp_path / "pass").write_text("x")
    client = HubClient(JoinedHub(url="http://127.0.0.1:9", pass_file=str(tmp_path / "pass")))
    exchange = HubExchange(tmp_path / "a.hub", "hub+http://127.0.0.1:9/a", client, leases, "project/a")
    with exchange.exclusive(), pytest.raises(RemoteUnreachable):
        exchange.fetch()
    assert leases.until == []
