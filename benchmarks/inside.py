"""Measurements inside the daemon's code: a home filled without a model, replay, secret and injection detection.

Invariants: `fill-home` rejects a home that is not empty; `replay` builds below `projections/building`, which a start
deletes, and leaves the home's projections unchanged.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..daemon.projections import replay
from ..daemon.projections.folded import TableSet
from ..daemon.projections.keywords import Keywords
from ..daemon.projections.stores import Stores
from ..daemon.projections.vector_store import VectorStore
from ..daemon.projections.vectors import VectorIndexes
from ..daemon.services.maintenance.vector_graphs import write_graph_rows
from ..daemon.services.maintenance_process import MaintenanceProcess
from ..daemon.services.token_estimate import tokens
from ..daemon.storage.folder_lock import FolderLock
from ..daemon.storage.folder_swap import fresh_folder
from ..daemon.storage.journal import JournalLog
from ..daemon.storage.restore import PROJECTIONS
from ..daemon.world import World
from ..models import registry
from ..models.injection import InjectionJudge, Place
from ..models.tokens import MAX_CHARACTERS
from ..protocol.errors import InvalidRequest, Refused
from ..protocol.instant import from_micros
from ..protocol.operation import Added, AnyOperation, Decision, Distilled, Invalidated, Merged, Neighbour, Step
from ..protocol.places import Places
from ..protocol.record import Evidence, Provenance, Record, Signal, Span, record_id
from ..protocol.reply import Logged
from ..stages.clauses import split
from ..stages.scan import flags_of, highest_score, is_order, is_scored
from ..stages.secrets.scan import find, redact

T = TypeVar("T")
GROUP = 500
DAY = 86_400_000_000
_WORDS = (
    "the team uses a bucket for exports and the parser reads every file once before the migration runs on friday "
    "because orders arrive late from partners whose clocks drift so tests compare calendar days in utc and retries "
    "wait two seconds unless the printer queue is empty or someone paused deployment after review of the release notes"
).split()


SPREAD = -0.75
"""The k-th of a model's principal components holds k to this power of the variance: of 11,722 real sentences, the first
20 hold .37 of it and the first 96 .74; this law gives .36 and .64."""


def fill_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`fill-home COUNT [ACTIVE]`: so many records, with evidence, retirements and vectors, into an empty home.

    With ACTIVE, a percentage, all of them lie in one pool, in words of usual rarity, and the others are archived; a
    large one has its graph of vectors.
    """
    count = _number(arguments[:1])
    active = _number(arguments[1:]) if len(arguments) > 1 else -1
    if (places.data / "journal").exists():
        raise Refused(f"{places.data} is not empty", hint="set MEMD_HOME to a new folder: it is for measurements only")
    places.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    model = registry.info()
    stores = Stores(places.data, world, model)
    chance = np.random.default_rng(7)
    begin = time.perf_counter()
    for first in range(0, count, GROUP):
        numbers = range(first, min(count, first + GROUP))
        records = [_record(n, world) if active < 0 else _in_one_pool(n, active, world) for n in numbers]
        rows = _vectors(len(records), model.dimension, chance)
        stores.vector_store.put((record.description, row.tobytes()) for record, row in zip(records, rows, strict=True))
        stores.commit([operation for record in records for operation in _operations(record, world)])
    took = time.perf_counter() - begin
    operations = stores.journal.last
    stores.load()
    if active >= 0 and (pool := stores.vectors.outgrown()):
        place = write_graph_rows(stores, pool, stores.vectors.place(pool))
        MaintenanceProcess().run("graph", places.data, [str(place)], lambda done, total, what: None)
    stores.close()
    return {"records": count, "operations": operations, "seconds": took}


def _vectors(count: int, dimension: int, chance: np.random.Generator) -> NDArray[np.float32]:
    """Unit vectors whose variance is spread over their dimensions as in the embeddings of real sentences."""
    spread = np.arange(1, dimension + 1) ** (SPREAD / 2)
    rows = (chance.standard_normal((count, dimension)) * spread).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _number(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or not arguments[0].isdigit():
        raise InvalidRequest("how many?", hint="python -m memd.benchmarks fill-home 10000")
    return int(arguments[0])


def _record(number: int, world: World) -> Record:
    """A record of usual size: a clause of some 100 characters with a quote, in one of four pools."""
    words = [_WORDS[number * 7919 // (n + 1) % len(_WORDS)] for n in range(14)]
    text = f"In room {number} {' '.join(words)}."
    span = Span(f"bench:{number // 50}", f"t{number}", 0, len(text))
    at = from_micros(world.now() - number % 3650 * DAY)
    provenance = Provenance(
        author="assistant", source=span.document, trust="assistant", spans=(span,), quote=text, said_at=at, rules=1
    )
    pool = "personal" if number % 4 else f"project/bench{number % 3}"
    return Record(
        id=record_id(pool, span.document, span.turn, 0, 0),
        pool=pool,
        kind="note",
        content=text,
        description=f"the assistant: {text}",
        provenance=provenance,
        tags=("decision", words[0], words[1]),
        valid_from=at,
        signal=Signal(importance=number % 10 / 10),
    )


def _in_one_pool(number: int, active: int, world: World) -> Record:
    """A record of one large pool: its words are as rare as in a language (Zipf), `active` percent are active."""
    ranks = np.random.default_rng(number).zipf(1.2, 40)
    words = [f"{_WORDS[rank % len(_WORDS)]}{rank if rank >= len(_WORDS) else ''}" for rank in ranks if rank < 20_000][
        :14
    ]
    text = f"In room {number} {' '.join(words)}."
    record = _record(number, world)
    provenance = msgspec.structs.replace(record.provenance, quote=text)
    return msgspec.structs.replace(
        record,
        id=record_id("personal", record.provenance.source, record.provenance.spans[0].turn, 0, 0),
        pool="personal",
        status="active" if number * 7919 % 100 < active else "archived",
        content=text,
        description=text,
        provenance=provenance,
        signal=Signal(importance=0.4),
    )


def _operations(record: Record, world: World) -> Iterator[AnyOperation]:
    """What the pipeline writes for a record: it is added, said again by another, sometimes retired."""
    steps = (Step("extract", "whole clause, decision 0.93"), Step("route", "note in its project"))
    near = (Neighbour("7q3hjwch7q3hjwch7q3hjwch7q", 1, 0.61, "unrelated"),)
    decision = Decision(action="add", reason="nothing known says this", steps=steps, neighbours=near)
    yield Added(record=record, decision=decision)
    span = Span(record.provenance.source, record.provenance.spans[0].turn + "r", 0, 40)
    evidence = Evidence(kind="restated", span=span, trust="user", at=record.valid_from)
    yield Merged(id=record.id, evidence=evidence, decision=Decision(action="noop", reason="says the same"))
    if record.signal.importance == 0.9:
        yield Invalidated(id=record.id, valid_to=from_micros(world.now()), reason="no longer so")
    if record.signal.importance == 0.5:
        yield Distilled(archive_seq=0, captures=64, candidates=10, rejected={"noise": 30})


def replay_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`replay`: seconds of a core to read, decode and chain the journal, and to apply it to each projection anew."""
    lock = FolderLock(places.data)
    try:
        journal = JournalLog(places.data / "journal", world)
        count = sum(1 for _ in journal.read())  # once for the page cache
        report: dict[str, object] = {"operations": count}
        report["chain_s"] = _timed(lambda: sum(1 for _ in journal.read()))
        model = registry.info()
        folder = fresh_folder(places.data / PROJECTIONS)
        try:
            folded = TableSet(folder / "tables")
            report["tables_s"] = _applied(journal, folded.tables.apply)
            keywords = Keywords(folder / "keywords", folded.records)
            report["keywords_s"] = _applied(journal, keywords.apply) + _timed(keywords.commit)
            keywords.close()
            store = VectorStore(places.data / "vectors", model.id, model.dimension, world)
            report["vectors_s"] = _timed(lambda: VectorIndexes(store, folded.records, journal.last))
            report["records"] = sum(1 for _ in folded.records.everything())
            store.close()
            folded.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        journal.close()
        return report
    finally:
        lock.release()


def scan_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`scan-texts FILE`, a JSON list of texts: each secret's rule, start and end, and the seconds of a core that the
    request server takes to redact them, the first and the second time; whether the stage flags the text."""
    if len(arguments) != 1:
        raise InvalidRequest("which texts?", hint="python -m memd.daemon scan-texts texts.json")
    texts = _texts(arguments[0])
    redact("the first text compiles the rules")
    seconds, again = (_timed(lambda: [redact(text) for text in texts]) for _ in range(2))
    hits = [[(hit.rule, hit.start, hit.end) for hit in find(text)] for text in texts]
    return {"hits": hits, "flagged": [bool(flags_of(text)) for text in texts], "seconds": seconds, "again": again}


class _PlacedText(msgspec.Struct, frozen=True):
    """A text, the place that it stands in, and whether it is judged clause by clause."""

    text: str
    place: Place
    cut: bool = False


def judge_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`judge-texts FILE`, a JSON list of texts with their places: of each text, or of each of its clauses, the score in
    [0, 1], whether the scan stage marks it in material, and whether its rules alone do; the seconds of a core."""
    if len(arguments) != 1:
        raise InvalidRequest("which texts?", hint="python -m memd.benchmarks judge-texts texts.json")
    texts = _decoded(arguments[0], list[_PlacedText])
    judge = InjectionJudge()
    begin = time.process_time()
    judged = [[_judged_text(judge, clause, text.place) for clause in _clauses(text)] for text in texts]
    return {"judged": judged, "seconds": time.process_time() - begin}


def _clauses(text: _PlacedText) -> list[str]:
    return [clause.text for clause in split(text.text).clauses] if text.cut else [text.text]


def _judged_text(judge: InjectionJudge, text: str, place: Place) -> Mapping[str, object]:
    score = highest_score(judge, text, place) if is_scored(text) else None
    ruled = "injection" in flags_of(text)
    return {"text": text, "score": score or 0.0, "marked": ruled or is_order(text, score), "ruled": ruled}


def embed_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`embed-texts FILE OUT`: the vectors of a JSON list of texts, as float32 rows in their order, and the milliseconds
    that each took."""
    if len(arguments) != 2:
        raise InvalidRequest("which texts, and where to?", hint="python -m memd.daemon embed-texts texts.json vectors")
    from ..models.trunk import Trunk

    trunk, times = Trunk(), list[float]()
    with Path(arguments[1]).open("wb") as out:
        for text in _texts(arguments[0]):
            begin = time.perf_counter()
            out.write(trunk.embed([text]).tobytes())
            times.append((time.perf_counter() - begin) * 1000)
    return {"dimension": trunk.info.dimension, "encode_ms": times}


def count_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`count-tokens FILE`, a JSON list of texts: the tokens of each by memd's estimate, and its word pieces by the
    tokenizer of the model that comes with memd."""
    if len(arguments) != 1:
        raise InvalidRequest("which texts?", hint="python -m memd.benchmarks count-tokens texts.json")
    from ..models.trunk import Trunk

    texts, pieces = _texts(arguments[0]), Trunk().tokens

    def counted(text: str) -> int:
        parts = (text[start : start + MAX_CHARACTERS] for start in range(0, len(text), MAX_CHARACTERS))
        return sum(map(pieces.count, parts))

    return {"estimated": [tokens(text) for text in texts], "pieces": [counted(text) for text in texts]}


def _texts(name: str) -> list[str]:
    return _decoded(name, list[str])


def _decoded(name: str, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(Path(name).read_bytes(), type=type_)
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{name} can't be read: {error}", hint="it holds a JSON list of texts") from error


def _timed(work: Callable[[], object]) -> float:
    """Seconds of a core, not of the clock: other programs' work on this machine does not count."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _applied(journal: JournalLog, apply: Callable[[Sequence[Logged]], None]) -> float:
    """Seconds of a core in `apply` alone, over the whole journal in groups."""
    seconds, after = 0.0, 0
    while group := journal.slice(after, replay.GROUP):
        seconds += _timed(lambda group=group: apply(group))
        after = group[-1].seq
    return seconds
