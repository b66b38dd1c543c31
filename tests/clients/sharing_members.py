"""Members of a project that they share: a daemon each, a clone of the project, and git between them (H1, H2)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from memd.clients.exchange import carrying
from memd.clients.exchange.git_exchange import GitExchange, Where, exchange_folder
from memd.clients.python.client import Client
from memd.protocol.errors import Unavailable
from memd.protocol.event import Origin
from memd.protocol.operation import PoolOpened, SessionOpened
from memd.protocol.record import Provenance, Record, Span, record_id
from memd.protocol.reply import ExportedRecord
from memd.protocol.request import ImportRecords
from memd.protocol.share import AuthorState, ShareState
from memd.protocol.shared_lines import ShareMark, split_segment, verified_head
from tests.conftest import RunningDaemon
from tests.daemon.shared_authors import Author

PUSH_AND_PULL = """
import os, sys
from pathlib import Path
from memd.clients.exchange import carrying
from memd.clients.python.client import Client
from memd.protocol.places import places
home = places(os.environ, os.getuid())
with Client(home, 30_000) as client:
    [share] = client.shares((sys.argv[1],)).shares
    for step in sys.argv[2:]:
        getattr(carrying, step)(client, share.pool, carrying.exchange_for(client, share, None, False))
"""
"""Pushes and pulls as the command does, in a process that can be killed: the pool, then `push` or `pull`."""

AT = "2026-11-20T10:00:00+01:00"
IMPORTED = 200
"""Records of one import."""

WAIT_S = 90.0
_ADA = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of the user who runs the tests out of them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """What git prints, with none of the settings of the user who runs the tests."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    done = subprocess.run(
        ["git", "-C", str(folder), *_ADA, *arguments], check=check, capture_output=True, text=True, env=environment
    )
    return (done.stdout or done.stderr).strip()


def refs(remote: Path) -> dict[str, str]:
    """The refs of a repository, each with its commit."""
    lines = git(remote, "for-each-ref", "--format=%(refname) %(objectname)", "refs/memd").splitlines()
    return dict(line.split(" ") for line in lines if line)


def has_words(repository: Path, words: bytes) -> bool:
    """Whether an object of a repository has the words, also one that nothing leads to."""
    command = ["git", "--git-dir", str(repository), "cat-file", "--batch-all-objects", "--batch"]
    return words in subprocess.run(command, check=True, capture_output=True).stdout


class SharedProject:
    """A project with a commit, and the bare repository that carries what its members share."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.remote, self.clone = folder, folder / "remote.git", folder / "clone"
        git(folder, "init", "-q", "--bare", str(self.remote))
        git(folder, "clone", "-q", str(self.remote), str(self.clone))
        git(self.clone, "commit", "-q", "--allow-empty", "-m", f"plant {folder}")


@contextmanager
def running_members(folder: Path, *names: str, through: tuple[str, ...] = ()) -> Generator[list[RunningDaemon]]:
    """Daemons of several homes, which share the projects of several tests one after another, ended in the end."""
    with ExitStack() as stack:
        daemons: list[RunningDaemon] = []
        for name in names:
            home = folder / name
            home.mkdir(mode=0o700)
            daemons.append(RunningDaemon({**os.environ, "MEMD_HOME": str(home), "MEMD_IDLE_S": "1000000"}))
            daemons[-1].through = through
            daemons[-1].start()
            stack.callback(daemons[-1].terminate)
        yield daemons


class Member:
    """A home that shares a project."""

    def __init__(self, daemon: RunningDaemon, project: SharedProject, name: str = "", pool: str = "") -> None:
        self.daemon, self.project = daemon, project
        self.name = name or Path(daemon.environment["MEMD_HOME"]).name
        self.ids: dict[str, str] = {}
        """The record of each statement."""
        self.connect()
        self.pool = pool or self._bound()
        self.partition = self.client.open_share(self.pool, str(project.remote), name=self.name).partition

    def _bound(self) -> str:
        """Bind the clone to a pool of its own, and wait while the daemon reads the clone."""
        end = time.monotonic() + WAIT_S
        while True:
            try:
                return self.client.bind_scope(str(self.project.clone)).pool
            except Unavailable:
                assert time.monotonic() < end
                time.sleep(0.1)

    def connect(self) -> None:
        """Connect to the daemon, also after it was started again."""
        self.client: Client = self.daemon.client()

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    # --- records -----------------------------------------------------------------------------------------------------
    def say(self, *texts: str) -> None:
        """Import statements of a session in the project, and choose them for the next push."""
        records = [self._record(len(self.ids) + number, text) for number, text in enumerate(texts)]
        session = SessionOpened(
            document=f"test:{self.pool}", origin=Origin(host="test", session=self.pool), project=self.pool, at=AT
        )
        for start in range(0, len(records), IMPORTED):
            exported = tuple(ExportedRecord(record=record) for record in records[start : start + IMPORTED])
            pools = (PoolOpened(pool=self.pool, title="orchard"),)
            done = self.client.import_records(ImportRecords(records=exported, sessions=(session,), pools=pools))
            assert not done.refused, done.refused
        self.ids |= {record.content: record.id for record in records}
        self.client.offer_records(self.pool, [record.id for record in records])

    def _record(self, number: int, text: str) -> Record:
        span = Span(f"test:{self.pool}", f"t{number}", 0, len(text))
        id = record_id(self.pool, span.document, f"{self.name} {span.turn}", 0, 0)
        provenance = Provenance(
            author="user", source=span.document, trust="user", spans=(span,), quote=text, said_at=AT
        )
        return Record(id=id, pool=self.pool, kind="note", content=text, description=text, provenance=provenance)

    def forget(self, text: str) -> None:
        """Forget a statement for good, once no other job runs."""
        end, id = time.monotonic() + WAIT_S, self.ids.pop(text)
        while True:
            try:
                state = self.client.forget([id])
                break
            except Unavailable:
                assert time.monotonic() < end
                time.sleep(0.05)
        while state.state == "running":
            time.sleep(0.01)
            state = self.client.job(state.id)
        assert state.problem is None, state.problem

    # --- carrying ----------------------------------------------------------------------------------------------------
    @property
    def private(self) -> Path:
        """The private repository."""
        return exchange_folder(self.daemon.places.share, self.pool)

    def exchange(self, address: str | None = None, checkout: Path | None = None) -> GitExchange:
        """The private repository and a remote, the project's without an address."""
        return GitExchange(self.private, checkout, str(self.project.remote) if address is None else address)

    def push(self, address: str | None = None, checkout: Path | None = None) -> carrying.Pushed:
        """Push, to the project's remote without an address."""
        return carrying.push(self.client, self.pool, self.exchange(address, checkout))

    def pull(self, address: str | None = None, checkout: Path | None = None) -> carrying.Pulled:
        """Pull, from the project's remote without an address."""
        return carrying.pull(self.client, self.pool, self.exchange(address, checkout))

    def carry(self, *steps: str, kill: str = "") -> int:
        """Push or pull in another process, which dies at a point; its exit code."""
        environment = {**self.daemon.environment, carrying.KILL_POINT: kill}
        words = [sys.executable, "-c", PUSH_AND_PULL, self.pool, *steps]
        return subprocess.run(words, env=environment, check=False).returncode

    # --- what is there -----------------------------------------------------------------------------------------------
    @property
    def share(self) -> ShareState:
        """The shared project as the daemon shows it."""
        [share] = self.client.shares((self.pool,)).shares
        return share

    @property
    def ref(self) -> str:
        """The own ref at the remote."""
        return f"refs/memd/v1/{self.share.partition}"

    @property
    def lines(self) -> list[bytes]:
        """The own lines, as the daemon renders them."""
        page = self.client.prepare_share(self.pool)
        segments = list(page.segments)
        while page.next:
            page = self.client.prepare_share(self.pool, first=page.next)
            segments += page.segments
        return [line for segment in segments for line in split_segment(segment.data)]

    @property
    def mark(self) -> ShareMark:
        """The project's mark."""
        return verified_head(self.client.prepare_share(self.pool).head).share

    def others(self) -> dict[str, AuthorState]:
        """The partitions that were taken, or refused."""
        return {author.partition: author for author in self.share.authors if not author.own}

    def taken(self) -> dict[str, list[str]]:
        """The statements of the partitions that were taken, in their order; "" for a line without a record."""
        texts: dict[str, list[str]] = {}
        for partition in (partition for partition, one in self.others().items() if one.lines):
            events = reversed(self.client.share_log(self.pool, partition, limit=1000).events)
            texts[partition] = [event.text for event in events if event.what != "inv"]
        return texts

    def log(self) -> set[tuple[str, int, str]]:
        """Partition, number and kind of each line that was sent or taken."""
        events = self.client.share_log(self.pool, limit=1000).events
        return {(event.partition, event.n, event.what) for event in events}

    def commit(self, where: Where, partition: str) -> str:
        """The commit of a partition in the private repository."""
        exchange = self.exchange()
        with exchange.exclusive():
            return exchange.commit(where, partition)

    def tree(self, where: Where, partition: str) -> tuple[bytes, tuple[str, ...]] | None:
        """The head and the segments of a partition in the private repository."""
        exchange = self.exchange()
        with exchange.exclusive():
            tree = exchange.tree(where, partition)
        return tree and (tree.head, tree.blobs)

    def delivered(self) -> tuple[int, int]:
        """The own lines, and those that the remote has."""
        return self.share.offered, self.share.delivered


class Counting:
    """Counts the requests of a member that carry lines, from now on."""

    def __init__(self, member: Member) -> None:
        self.requests = 0
        for name in ("prepare_share", "take_partition"):
            setattr(member.client, name, self._counted(getattr(member.client, name)))

    def _counted(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:
            self.requests += 1
            return send(*arguments, **more)

        return counted


# --- authors who are not at home here --------------------------------------------------------------------------------
def author_of(member: Member, seed: int, *texts: str) -> Author:
    """An author of a member's project, with some lines. A home takes a partition in one project alone, so that each
    project has authors of its own."""
    author = Author(crc32(f"{member.pool} {seed}".encode()), mark=member.mark)
    for text in texts:
        author.add(text)
    return author


def raw_push(author: Author, remote: Path) -> str:
    """Push a partition over whatever the remote has, as someone with a key and git can; the commit."""
    folder = remote.parent / f"raw-{author.partition}-{len(list(remote.parent.iterdir()))}.git"
    exchange = GitExchange(folder, None, str(remote))
    with exchange.exclusive():
        commit = exchange.write(author.head(), {segment.number: segment.data for segment in author.segments()})
        exchange.push(author.partition, over=refs(remote).get(f"refs/memd/v1/{author.partition}", ""))
    return commit
