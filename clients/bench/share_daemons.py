"""Sharing between real daemons, against git alone, against `memd import`, and against an idle daemon."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import msgspec

from ...protocol.event import Origin, Said
from ...protocol.operation import PoolOpened, SessionOpened
from ...protocol.record import Provenance, Record, Span, record_id
from ...protocol.reply import ExportedRecord
from ...protocol.request import ImportRecords
from ...protocol.share import PartitionTaken, PreparedShare, SegmentData, ShareList, ShareState
from ..exchange import carrying
from ..exchange.git_exchange import GitExchange, exchange_folder
from ..importers.transcript import BATCH_EVENTS
from ..python import launch
from ..python.client import Client
from .measurement import BenchOptions, Figure, PartResult, at_least, at_most, elapsed_ms, percentile_figure
from .processes import cpu_s
from .temporary_daemon import empty_home, measure, running

LINES, TURNS, QUICK_TURNS = 20, 15, 5
OWN, QUICK_OWN = 3_000, 500
TAKEN, TAKEN_TURNS = 1_000, 3
MANY, QUICK_MANY = 20_000, 2_000
AUTHORS = 10
ASKED, COMMANDS = 20, 5
IDLE = {"MEMD_IDLE_S": "1000000"}
AT = "2026-11-20T10:00:00+01:00"
_WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
_PULL = """
import os, sys
from memd.clients.exchange import carrying
from memd.clients.python.client import Client
from memd.protocol.places import places
home = places(os.environ, os.getuid())
with Client(home, 600_000) as client:
    share = client.shares().shares[0]
    carrying.pull(client, share.pool, carrying.exchange_for(client, share, None, False))
"""


class CarriedProject:
    """A repository with a remote that carries what is shared, and one beside it for git alone."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.remote, self.bare = folder, folder / "remote.git", folder / "bare.git"
        self.clone = folder / "orchard"
        for repository in (self.remote, self.bare):
            _git(folder, "init", "-q", "--bare", str(repository))
        _git(folder, "init", "-q", str(self.clone))
        _git(self.clone, *_WHO, "commit", "-q", "--allow-empty", "-m", "plant")
        self.root = _git(self.clone, "rev-parse", "HEAD").strip()

    def publish(self, authors: int, lines: int) -> Path:
        """Push partitions of invented authors; return the folder with their files."""
        folder = self.folder / f"partitions-{authors}-{lines}"
        with empty_home() as (_, environment):
            measure(environment, "write-partitions", str(authors), str(lines), self.root, str(folder))
        exchange = GitExchange(self.folder / "authors.git", None, str(self.remote))
        with exchange.exclusive():
            for partition in sorted(folder.iterdir()):
                files = enumerate(sorted((partition / "ops").iterdir()))
                exchange.write((partition / "head.json").read_bytes(), {n: file.read_bytes() for n, file in files})
                exchange.push(partition.name, many=True)
        return folder


class SharingMember:
    """A daemon that shares the project."""

    def __init__(self, project: CarriedProject, client: Client, environment: Mapping[str, str], name: str) -> None:
        self.client, self.environment, self.project = client, environment, project
        self.pool = client.bind_scope(str(project.clone)).pool
        client.open_share(self.pool, str(project.remote), name=name)
        self.exchange = GitExchange(exchange_folder(client.places.share, self.pool), None, str(project.remote))

    def push(self) -> carrying.Pushed:
        return carrying.push(self.client, self.pool, self.exchange)

    def pull(self, client: _Counting | None = None) -> carrying.Pulled:
        return carrying.pull(client or self.client, self.pool, self.exchange)

    def fill(self, count: int, session: str = "own") -> list[str]:
        """Import records of a session of the project, and return their ids."""
        records = [_record(self.pool, session, n) for n in range(count)]
        import_all(self.client, self.pool, session, records)
        return [record.id for record in records]


class _Counting:
    """The requests of carrying, with a count of the lines that go to the daemon."""

    def __init__(self, client: Client) -> None:
        self._client, self.lines = client, 0

    def prepare_share(self, pool: str, *, first: int = 0, dry_run: bool = False, earlier: str = "") -> PreparedShare:
        return self._client.prepare_share(pool, first=first, dry_run=dry_run, earlier=earlier)

    def note_delivered(
        self, pool: str, partition: str, epoch: int, count: int, commit: str = "", earlier: str = ""
    ) -> ShareState:
        return self._client.note_delivered(pool, partition, epoch, count, commit, earlier=earlier)

    def renew_partition(self, pool: str, head: bytes, hashes: Sequence[bytes] = ()) -> ShareState:
        return self._client.renew_partition(pool, head, hashes)

    def shares(self, pools: Sequence[str] = ()) -> ShareList:
        return self._client.shares(pools)

    def take_partition(
        self,
        pool: str,
        head: bytes,
        hashes: Sequence[bytes] = (),
        segments: Sequence[SegmentData] = (),
        *,
        dry_run: bool = False,
    ) -> PartitionTaken:
        self.lines += sum(segment.data.count(b"\n") for segment in segments)
        return self._client.take_partition(pool, head, hashes, segments, dry_run=dry_run)


# --- a working day ---------------------------------------------------------------------------------------------------
def daily(options: BenchOptions) -> PartResult:
    """A push of twenty lines, a pull with nothing new and `memd share status`, with real daemons, against git alone."""
    turns, own = (QUICK_TURNS, QUICK_OWN) if options.quick else (TURNS, OWN)
    with _project() as project, ExitStack() as stack:
        ada, ben = (stack.enter_context(_member(project, name)) for name in ("Ada", "Ben"))
        ids = ada.fill(own + LINES * (turns + 1))
        spec, fetched = "+refs/memd/v1/*:refs/memd/v1/*", "+refs/memd/v1/*:refs/bench/*"
        private, reading = ada.exchange.folder, ben.exchange.folder
        pushes, pushed, pulls, pulled = list[float](), list[float](), list[float](), list[float]()
        counting = _Counting(ben.client)
        for turn in range(turns + 1):
            options.progress(f"share/daily: {turn + 1} of {turns + 1}")
            ada.client.offer_records(ada.pool, ids[turn * LINES : (turn + 1) * LINES])
            pushes.append(elapsed_ms(ada.push))
            pushed.append(elapsed_ms(_git, private, "push", "-q", str(project.bare), spec))
            ben.pull()
            pulls.append(elapsed_ms(ben.pull, counting))
            _git(reading, "fetch", "-q", str(project.remote), fetched)
            pulled.append(elapsed_ms(_git, reading, "fetch", "-q", str(project.remote), fetched))
        status = list(_status(ada, options))
    push, floor, pull, nothing = (median(times[1:]) for times in (pushes, pushed, pulls, pulled))
    figures = (
        Figure(f"push of {LINES} lines", push, "ms", floor, turns, at_most(1.5, times=True)),
        Figure("  git push", floor, "ms", samples=turns),
        Figure("pull with nothing new", pull, "ms", nothing, turns, at_most(1.3, times=True)),
        Figure("  git fetch", nothing, "ms", samples=turns),
        Figure("lines read again with nothing new", counting.lines, samples=turns, target=at_most(0)),
        *status,
    )
    notes = (f"{own + LINES * (turns + 1):,} records in the project, all of them may be shared",)
    return PartResult(figures, notes=notes, shows_not="a network, and the start of the command")


def _status(member: SharingMember, options: BenchOptions) -> Iterator[Figure]:
    """The milliseconds of `shares`, again and after a change, and those of the command."""
    client = member.client
    again, after, command = list[float](), list[float](), list[float]()
    for number in range(ASKED):
        client.remember(f"The kettle number {number} stands in the north row.")
        after.append(elapsed_ms(client.shares))
        again.append(elapsed_ms(client.shares))
    words = [sys.executable, "-P", "-m", "memd.clients.cli.main", "share", "status", "--json"]
    environment = launch.daemon_environment(member.environment)
    for _ in range(COMMANDS):
        command.append(elapsed_ms(subprocess.run, words, check=True, capture_output=True, env=environment))
    yield percentile_figure("status, the request, after a change p50", after, 50, target=at_most(100))
    yield percentile_figure("  without a change p50", again, 50)
    yield percentile_figure("status, the command p50", command, 50, target=at_most(100))


def sending(options: BenchOptions) -> PartResult:
    """The first push of 20,000 lines, from the user's word on, against `git push` of the same commit."""
    many = QUICK_MANY if options.quick else MANY
    with _project() as project, _member(project, "Ada") as ada:
        ada.fill(many)
        options.progress("share/sending: the push")
        ada.client.offer_records(ada.pool, all=True)
        seconds, cpu = _spent(ada, ada.push)
        assert ada.client.shares().shares[0].delivered == many
        spec = "+refs/memd/v1/*:refs/memd/v1/*"
        floor = elapsed_ms(_git, ada.exchange.folder, "push", "-q", str(project.bare), spec) / 1000
    figures = (
        Figure(f"first push of {many:,} lines", seconds, "s", floor),
        Figure("  seconds of a core, the daemon", cpu, "s"),
        Figure("  lines sent", many / seconds, "/s"),
        Figure("  git push", floor, "s"),
    )
    return PartResult(figures, shows_not="a network, and the choice of what goes")


# --- what arrives ----------------------------------------------------------------------------------------------------
def arrival(options: BenchOptions) -> PartResult:
    """A pull of 1,000 lines, against `memd import` of the same statements into an empty home."""
    turns = 1 if options.quick else TAKEN_TURNS
    pulls, imports, pull_cpu, import_cpu = list[float](), list[float](), list[float](), list[float]()
    with _project() as project:
        project.publish(1, TAKEN)
        for turn in range(turns):
            options.progress(f"share/arrival: {turn + 1} of {turns}")
            with _member(project, "Ben") as ben:
                seconds, cpu = _spent(ben, ben.pull)
                pulls.append(seconds)
                pull_cpu.append(cpu)
                texts = [exported.record.content for exported in _exported(ben)]
                assert len(texts) == TAKEN
            with _member(project, "Cleo") as cleo:
                records = [_record(cleo.pool, "own", n, text) for n, text in enumerate(texts)]
                seconds, cpu = _spent(cleo, import_all, cleo.client, cleo.pool, "own", records)
                imports.append(seconds)
                import_cpu.append(cpu)
    pull, floor = median(pulls), median(imports)
    figures = (
        Figure(f"pull of {TAKEN:,} lines", pull, "s", floor, turns, at_most(2, times=True)),
        Figure("  import of the same", floor, "s", samples=turns),
        Figure("  seconds of a core, pull", median(pull_cpu), "s", median(import_cpu), turns),
    )
    return PartResult(figures, shows_not="a network; the vectors, which memd makes later in both cases")


def _checked(folder: Path) -> Iterator[Figure]:
    with empty_home() as (_, environment):
        result = msgspec.json.decode(measure(environment, "check-partitions", str(folder)), type=dict[str, float])
    lines = result["lines"]
    yield Figure("lines verified", lines / result["verifying"], "/s", samples=int(lines), target=at_least(50_000))
    yield Figure("  read by the rules", lines / result["reading"], "/s", samples=int(lines))


def meanwhile(options: BenchOptions) -> PartResult:
    """Captures of one client while a pull of 20,000 lines runs, against the same without one."""
    many = QUICK_MANY if options.quick else MANY
    with _project() as project:
        project.publish(1, many)
        with _member(project, "Ben") as ben:
            numbers = iter(range(1_000_000))
            idle = [_capture(ben.client, next(numbers)) for _ in range(500)]
            words = [sys.executable, "-P", "-c", _PULL]
            environment = launch.daemon_environment(ben.environment)
            begin, busy = time.perf_counter(), list[float]()
            with subprocess.Popen(words, env=environment) as pulling:
                while pulling.poll() is None:
                    busy.append(_capture(ben.client, next(numbers)))
            seconds = time.perf_counter() - begin
            idle += [_capture(ben.client, next(numbers)) for _ in range(500)]
            taken = sum(author.lines for author in ben.client.shares().shares[0].authors if not author.own)
    figures = (
        percentile_figure(f"capture p99 during a pull of {many:,}", busy, 99, idle, at_most(2, times=True)),
        percentile_figure("  p50", busy, 50, idle),
        Figure("lines taken", taken / seconds, "/s", samples=taken),
    )
    return PartResult(figures, shows_not="several clients that capture at once")


def _capture(client: Client, number: int) -> float:
    time.sleep(0.005)
    said = Said(turn=f"t{number}", at=AT, role="assistant", text=f"Step {number}: I keep the date as plain text.")
    return elapsed_ms(client.capture, Origin(host="bench", session="capturing", live=False), [said])


def first(options: BenchOptions) -> PartResult:
    """The first pull of ten authors with 20,000 lines each, until a search finds what the last one shared."""
    many = QUICK_MANY if options.quick else MANY
    with _project() as project:
        folder = project.publish(AUTHORS, many)
        checked = list(_checked(folder))
        with _member(project, "Ben") as ben:
            options.progress("share/first: the pull")
            seconds, cpu = _spent(ben, _pull_until_found, ben, many)
            status = list(_status(ben, options))
            nothing = elapsed_ms(ben.pull)
    total = AUTHORS * many
    figures = (
        Figure(f"first pull of {AUTHORS} × {many:,} lines", seconds, "s", target=at_most(60)),
        Figure("  seconds of a core, the daemon", cpu, "s"),
        Figure("  lines taken", total / seconds, "/s"),
        *checked,
        *status,
        Figure("  pull with nothing new after it", nothing, "ms"),
    )
    return PartResult(figures, shows_not="a network; the vectors, which memd makes later")


def _pull_until_found(ben: SharingMember, many: int) -> None:
    taken = 0
    while taken < many:
        ben.pull()
        authors = ben.client.shares().shares[0].authors
        taken = min(author.lines for author in authors if not author.own)
    assert ben.client.recall("press in the room", cwd=str(ben.project.clone)).hits


# --- homes and records -----------------------------------------------------------------------------------------------
@contextmanager
def _project() -> Generator[CarriedProject]:
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as name:
        yield CarriedProject(Path(name))


@contextmanager
def _member(project: CarriedProject, name: str) -> Generator[SharingMember]:
    with empty_home(IDLE) as (home, environment), running(home, environment) as client:
        yield SharingMember(project, client, environment, name)


def _record(pool: str, session: str, number: int, text: str = "") -> Record:
    text = text or f"The orchard service number {number} listens on its own port, because the press needs it."
    span = Span(f"bench:{session}", f"t{number}", 0, len(text))
    return Record(
        id=record_id(pool, span.document, span.turn, 0, 0),
        pool=pool,
        kind="note",
        content=text,
        description=text,
        tags=("decision",),
        provenance=Provenance(author="user", source=span.document, trust="user", spans=(span,), quote=text, said_at=AT),
    )


def import_all(client: Client, pool: str, session: str, records: Sequence[Record]) -> None:
    """Import records in requests as large as those of `memd import`."""
    opened = SessionOpened(
        document=f"bench:{session}", origin=Origin(host="bench", session=session), project=pool, at=AT
    )
    for start in range(0, len(records), BATCH_EVENTS):
        exported = tuple(ExportedRecord(record=record) for record in records[start : start + BATCH_EVENTS])
        pools = (PoolOpened(pool=pool, title="orchard"),)
        done = client.import_records(ImportRecords(records=exported, sessions=(opened,), pools=pools))
        assert not done.refused, done.refused


def _exported(member: SharingMember) -> list[ExportedRecord]:
    records: list[ExportedRecord] = []
    page = member.client.export([member.pool])
    records += page.records
    while page.next:
        page = member.client.export([member.pool], page.next)
        records += page.records
    return records


def _spent(member: SharingMember, step: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """The seconds of a step, and the seconds of a core that the daemon used meanwhile."""
    pid = member.client.status().pid
    cpu = cpu_s(pid)
    seconds = elapsed_ms(step, *arguments) / 1000
    return seconds, cpu_s(pid) - cpu


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True).stdout
