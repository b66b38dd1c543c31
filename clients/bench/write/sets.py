"""What memd believes does not hang on how it was told: twice, killed, in another order, in halves (W13, P-7, P-12).

Comes in: a setting with real sessions. Goes out: figures, and the differences in words. Invariants: each way has a home
of its own; beliefs are compared by everything that does not depend on the time of learning.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from ....protocol.errors import MemdError
from ....protocol.event import Origin, Said
from ....protocol.record import Record
from ...importers.transcript import CapturedSession
from ...python import launch
from ...python.client import Client
from ..figure import Figure, at_least, at_most
from ..home import PATIENCE_MS, START_S, empty_home, running, settle
from ..part import Part, Setting
from ..sessions import deliver, read, records
from .reconcile import NEW, OLD, PAIRS, pairs

SEED = 7
KILLS = 6
NAMED = 12

Tell = Callable[[Client], None]


class Beliefs(msgspec.Struct, frozen=True):
    """What a daemon believes, and how far its journal is."""

    records: tuple[Record, ...]
    journal_seq: int
    seconds: float = 0.0

    @property
    def identical(self) -> set[tuple[object, ...]]:
        """Everything of each record but when it was learnt."""
        return {
            (each.id, each.pool, each.status, each.kind, each.content, each.key, each.value, each.valid_from,
             each.valid_to, each.provenance.quote, each.superseded_by)
            for each in self.records
        }  # fmt: skip

    @property
    def exact(self) -> set[tuple[object, ...]]:
        """Facts with an exact key, and edges."""
        keyed = (each for each in self.records if each.kind == "edge" or (each.kind == "fact" and each.key))
        return {(each.pool, each.kind, each.key, each.value) for each in keyed}

    @property
    def notes(self) -> set[tuple[object, ...]]:
        """Everything else, by its words."""
        kept = (each for each in self.records if not (each.kind == "edge" or (each.kind == "fact" and each.key)))
        return {(each.pool, each.kind, each.content) for each in kept}


def believed(client: Client, seconds: float = 0.0) -> Beliefs:
    """What a daemon believes once all is distilled."""
    settle(client)
    return Beliefs(tuple(records(client)), client.status().journal_seq, seconds)


def _told(tell: Tell) -> Beliefs:
    """What a fresh daemon believes after it was told so."""
    with empty_home() as (where, environment), running(where, environment) as client:
        begin = time.perf_counter()
        tell(client)
        return believed(client, time.perf_counter() - begin)


def again(setting: Setting) -> Part:
    """Every real session imported twice, and with the daemon killed at any moment: the identical active set."""
    sessions = read(setting).sessions
    with empty_home() as (where, environment), running(where, environment) as client:
        begin = time.perf_counter()
        deliver(client, sessions)
        once = believed(client, time.perf_counter() - begin)
        setting.tell("write/again: the second time")
        deliver(client, sessions)
        twice = believed(client)
    killed, kills = _killed(sessions, once.seconds, setting)
    grown = twice.journal_seq - once.journal_seq
    differing = len(once.identical ^ twice.identical), len(once.identical ^ killed.identical)
    figures = (
        Figure(name="records that differ, imported twice", value=differing[0], target=at_most(0),
               samples=len(once.records)),
        Figure(name="  operations of the second time", value=grown, target=at_most(0)),
        Figure(name=f"records that differ, killed {kills} times", value=differing[1], target=at_most(0),
               samples=len(once.records)),
    )  # fmt: skip
    notes = (*_differences("twice", once.identical, twice.identical), *_differences("killed", once.identical,
             killed.identical))  # fmt: skip
    return Part(figures=figures, notes=notes, shows_not="a power cut: tests/faults cuts it, write by write")


def _killed(sessions: Sequence[CapturedSession], seconds: float, setting: Setting) -> tuple[Beliefs, int]:
    """What a daemon believes that was killed again and again while it learnt, and how often that was."""
    chance = random.Random(SEED)
    kills = 0
    with empty_home() as (where, environment):
        for number in range(2 if setting.quick else KILLS):
            setting.tell(f"write/again: kill {number + 1}")
            process, begin = launch.spawn(where, environment)
            launch.wait(process, where, begin, START_S)
            killer = threading.Timer(chance.uniform(0, seconds / 2), process.kill)
            killer.start()
            with suppress(MemdError), Client(where, PATIENCE_MS) as client:
                deliver(client, sessions)
                settle(client)
                killer.cancel()
            killer.join()
            launch.end(process, where)
            kills += process.returncode == -signal.SIGKILL
        with running(where, environment) as client:
            deliver(client, sessions)
            return believed(client), kills


def any_order(setting: Setting) -> Part:
    """Every real session, and authored changes, in another order and in halves: the same facts, edges and notes."""
    sessions = (*read(setting).sessions, *_changes())
    chance = random.Random(SEED)
    ways: dict[str, list[list[CapturedSession]]] = {
        "one by one": [[each] for each in sessions],
        "sessions shuffled": [[each] for each in chance.sample(sessions, len(sessions))],
        "turns shuffled": [[_shuffled(each, chance)] for each in chance.sample(sessions, len(sessions))],
        "in halves": [[_half(each, 0) for each in sessions], [_half(each, 1) for each in sessions]],
    }
    whole = _told(lambda client: _stepwise(client, [sessions]))
    figures: list[Figure] = []
    notes: list[str] = []
    for name, steps in ways.items():
        setting.tell(f"write/order: {name}")
        found = _told(lambda client, steps=steps: _stepwise(client, steps))
        figures += _compared(name, whole, found)
        notes += _differences(name, whole.exact | whole.notes, found.exact | found.notes)
    shows_not = "two daemons on two machines, whose copies are merged: sharing is not there yet"
    return Part(figures=tuple(figures), notes=tuple(notes), shows_not=shows_not)


def _changes() -> Iterator[CapturedSession]:
    """Two sessions of authored statements: what the first one says, the second one changes. Real ones hold few facts
    with an exact key, and those are what an order could turn round."""
    said = pairs(PAIRS)
    for name, at, texts in (("old", OLD, [pair.old for pair in said]), ("new", NEW, [pair.new for pair in said])):
        events = tuple(Said(turn=str(n), at=at, role="user", text=text) for n, text in enumerate(texts))
        yield CapturedSession(origin=Origin(host="bench", session=name, live=False), events=events)


def _stepwise(client: Client, steps: Sequence[Sequence[CapturedSession]]) -> None:
    for sessions in steps:
        deliver(client, sessions)
        settle(client)


def _shuffled(session: CapturedSession, chance: random.Random) -> CapturedSession:
    return msgspec.structs.replace(session, events=tuple(chance.sample(session.events, len(session.events))))


def _half(session: CapturedSession, which: int) -> CapturedSession:
    middle = len(session.events) // 2
    return msgspec.structs.replace(session, events=session.events[middle:] if which else session.events[:middle])


def _compared(name: str, whole: Beliefs, found: Beliefs) -> Iterator[Figure]:
    union = whole.notes | found.notes
    jaccard = len(whole.notes & found.notes) / len(union) if union else 1.0
    yield Figure(name=f"facts and edges that differ, {name}", value=len(whole.exact ^ found.exact), target=at_most(0),
                 samples=len(whole.exact | found.exact))  # fmt: skip
    yield Figure(name=f"  notes, Jaccard, {name}", value=jaccard, target=at_least(0.97), samples=len(union))


def _differences(name: str, before: set[tuple[object, ...]], after: set[tuple[object, ...]]) -> Iterator[str]:
    for what, rows in (("lacks", before - after), ("has besides", after - before)):
        for row in sorted(rows, key=str)[:NAMED]:
            yield f"{name} {what}: {' | '.join(str(part) for part in row if part)}"[:300]
        if len(rows) > NAMED:
            yield f"{name} {what} {len(rows) - NAMED} more"
