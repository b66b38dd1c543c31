"""A later statement retires the one it contradicts (T1, W6, P-8); sessions that are sent twice, interrupted, shuffled
or halved give the same records in all fields but the time of learning (W13, P-7, P-12)."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ....protocol import request
from ....protocol.errors import MemdError, StoreError
from ....protocol.event import Origin, Said
from ....protocol.record import Record
from ...importers.transcript import CapturedSession
from ...python import launch
from ...python.client import Client
from ..measurement import BenchOptions, Figure, PartResult, at_least, share, zero_figure
from ..session_data import deliver, read, records
from ..temporary_daemon import DEADLINE_MS, START_S, empty_home, running, settle, temporary_daemon

# --- contradictions --------------------------------------------------------------------------------------------------
PAIRS = Path(__file__).parents[1] / "samples" / "contradictions.json"
OLD, NEW = "2026-03-01T09:00:00+01:00", "2026-04-12T09:00:00+02:00"
PAIRS_NAMED = 15


class StatementPair(msgspec.Struct, frozen=True):
    """Two statements, the second one later, and a word to ask for it. With the shape `keep` both hold."""

    shape: str
    old: str
    new: str
    word: str = ""


def pairs(path: Path) -> list[StatementPair]:
    """The pairs of a file. Raises StoreError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[StatementPair])
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path} holds no pairs: {error}", hint="a list of {shape, old, new, word}") from error


def reconcile(options: BenchOptions) -> PartResult:
    """Authored pairs of statements: the old one is retired or both are kept, and the old one is never ranked first."""
    figures, notes = list[Figure](), list[str]()
    more = sorted((options.data / "reconcile").glob("*.json")) if options.data else []
    for path in (PAIRS, *more):
        options.progress(f"write/reconcile: {path.stem}")
        of_file, wrong = _outcome(pairs(path), "" if path == PAIRS else f", {path.stem}")
        figures += of_file
        notes += wrong[:PAIRS_NAMED]
    shows_not = "statements in long sessions, whose meaning depends on other sentences"
    return PartResult(tuple(figures), notes=tuple(notes), shows_not=shows_not)


def _outcome(pairs: Sequence[StatementPair], suffix: str) -> tuple[list[Figure], list[str]]:
    """The figures of these pairs, and a line for each pair with the wrong outcome."""
    changes = sum(pair.shape != "keep" for pair in pairs)
    wrong: list[str] = []
    retired = preserved = outranked = 0
    with temporary_daemon() as client:
        old_ids = [_remember(client, f"old{n}", pair.old, OLD) for n, pair in enumerate(pairs)]
        settle(client)
        new_ids = [_remember(client, f"new{n}", pair.new, NEW) for n, pair in enumerate(pairs)]
        settle(client)
        for pair, old_id, new_id in zip(pairs, old_ids, new_ids, strict=True):
            old, new = client.get(old_id), client.get(new_id)
            if pair.shape == "keep":
                is_right = (old.status, new.status) == ("active", "active")
                preserved += is_right
            else:
                is_right = (old.status, new.status, old.superseded_by) == ("retired", "active", new.id)
                retired += is_right
                hits = [hit.record.id for hit in client.recall(f"{pair.old} {pair.word}", limit=20).hits]
                outranked += old.id in hits and (new.id not in hits or hits.index(old.id) < hits.index(new.id))
            if not is_right:
                wrong.append(f"{pair.shape}: {pair.old} | {pair.new} → {old.status}, {new.status}")
    return [
        share(f"changes that retire the old{suffix}", retired, changes, at_least(0.85)),
        share(f"second things kept beside the first{suffix}", preserved, len(pairs) - changes, at_least(0.9)),
        zero_figure(f"old ones recalled above the new{suffix}", outranked, changes),
    ], wrong


def _remember(client: Client, turn: str, text: str, at: str) -> str:
    origin = Origin(host="bench", session="pairs")
    return client.remember(request.Remember(text=text, turn=turn, at=at, origin=origin)).record.id


# --- delivery order --------------------------------------------------------------------------------------------------
SEED = 7
KILLS = 6
NAMED = 12

Rows = set[tuple[object, ...]]


class RecordSet(msgspec.Struct, frozen=True):
    """All records of a daemon, and the last sequence number of its journal."""

    records: tuple[Record, ...]
    journal_seq: int

    @property
    def identical(self) -> Rows:
        """Every field of each record but when it was learnt."""
        fields = "id pool status kind content key value valid_from valid_to superseded_by".split()
        return {(*(getattr(record, field) for field in fields), record.provenance.quote) for record in self.records}

    @property
    def exact(self) -> Rows:
        return {(record.pool, record.kind, record.key, record.value) for record in self.records if _is_exact(record)}

    @property
    def notes(self) -> Rows:
        return {(record.pool, record.kind, record.content) for record in self.records if not _is_exact(record)}


def _is_exact(record: Record) -> bool:
    return record.kind == "edge" or (record.kind == "fact" and bool(record.key))


def _record_set(client: Client) -> RecordSet:
    settle(client)
    return RecordSet(tuple(records(client)), client.status().journal_seq)


def again(options: BenchOptions) -> PartResult:
    """Every real session imported twice, and with the daemon killed at random moments: the identical records."""
    sessions = read(options).sessions
    with temporary_daemon() as client:
        begin = time.perf_counter()
        deliver(client, sessions)
        seconds = time.perf_counter() - begin
        once = _record_set(client)
        options.progress("write/again: the second time")
        deliver(client, sessions)
        twice = _record_set(client)
    killed, kills = _killed(sessions, seconds, options)
    total = len(once.records)
    figures = (
        zero_figure("records that differ, imported twice", len(once.identical ^ twice.identical), total),
        zero_figure("  operations of the second time", twice.journal_seq - once.journal_seq),
        zero_figure(f"records that differ, killed {kills} times", len(once.identical ^ killed.identical), total),
    )
    notes = (
        *_differences("twice", once.identical, twice.identical),
        *_differences("killed", once.identical, killed.identical),
    )
    return PartResult(figures, notes=notes, shows_not="a power cut: tests/faults simulates it, write by write")


def _killed(sessions: Sequence[CapturedSession], seconds: float, options: BenchOptions) -> tuple[RecordSet, int]:
    """The records of a daemon that was killed several times while it captured and distilled, and how often it was."""
    chance = random.Random(SEED)
    kills = 0
    with empty_home() as (home, environment):
        for number in range(2 if options.quick else KILLS):
            options.progress(f"write/again: kill {number + 1}")
            process = launch.start(home, environment, START_S)
            killer = threading.Timer(chance.uniform(0, seconds / 2), process.kill)
            killer.start()
            with suppress(MemdError), Client(home, DEADLINE_MS) as client:
                deliver(client, sessions)
                settle(client)
                killer.cancel()
            killer.join()
            launch.end(process, home)
            kills += process.returncode == -signal.SIGKILL
        with running(home, environment) as client:
            deliver(client, sessions)
            return _record_set(client), kills


def any_order(options: BenchOptions) -> PartResult:
    """Every real session, and authored changes, in another order and in halves: the same facts, edges and notes."""
    sessions = (*read(options).sessions, *_changes())
    chance = random.Random(SEED)
    orders: dict[str, list[list[CapturedSession]]] = {
        "one by one": [[session] for session in sessions],
        "sessions shuffled": [[session] for session in chance.sample(sessions, len(sessions))],
        "turns shuffled": [[_shuffled(session, chance)] for session in chance.sample(sessions, len(sessions))],
        "in halves": [[_half(session, 0) for session in sessions], [_half(session, 1) for session in sessions]],
    }
    whole = _delivered([sessions])
    figures, notes = list[Figure](), list[str]()
    for name, steps in orders.items():
        options.progress(f"write/order: {name}")
        other = _delivered(steps)
        differing, exact = len(whole.exact ^ other.exact), len(whole.exact | other.exact)
        union = whole.notes | other.notes
        jaccard = len(whole.notes & other.notes) / len(union) if union else 1.0
        figures.append(zero_figure(f"facts and edges that differ, {name}", differing, exact))
        figures.append(Figure(f"  notes, Jaccard, {name}", jaccard, samples=len(union), target=at_least(0.97)))
        notes += _differences(name, whole.exact | whole.notes, other.exact | other.notes)
    shows_not = "two daemons on two machines whose copies are merged: sharing does not exist yet"
    return PartResult(tuple(figures), notes=tuple(notes), shows_not=shows_not)


def _changes() -> Iterator[CapturedSession]:
    """Two authored sessions, the second of which changes statements of the first: real ones hold few facts with an
    exact key, the only ones that an order of delivery could reverse."""
    authored = pairs(PAIRS)
    for name, at, texts in (("old", OLD, [pair.old for pair in authored]), ("new", NEW, [p.new for p in authored])):
        events = tuple(Said(turn=str(n), at=at, role="user", text=text) for n, text in enumerate(texts))
        yield CapturedSession(origin=Origin(host="bench", session=name, live=False), events=events)


def _delivered(steps: Sequence[Sequence[CapturedSession]]) -> RecordSet:
    with temporary_daemon() as client:
        for sessions in steps:
            deliver(client, sessions)
            settle(client)
        return _record_set(client)


def _shuffled(session: CapturedSession, chance: random.Random) -> CapturedSession:
    return msgspec.structs.replace(session, events=tuple(chance.sample(session.events, len(session.events))))


def _half(session: CapturedSession, which: int) -> CapturedSession:
    middle = len(session.events) // 2
    return msgspec.structs.replace(session, events=session.events[middle:] if which else session.events[:middle])


def _differences(name: str, before: Rows, after: Rows) -> Iterator[str]:
    for what, rows in (("lacks", before - after), ("has besides", after - before)):
        for row in sorted(rows, key=str)[:NAMED]:
            yield f"{name} {what}: {' | '.join(str(part) for part in row if part)}"[:300]
        if len(rows) > NAMED:
            yield f"{name} {what} {len(rows) - NAMED} more"
