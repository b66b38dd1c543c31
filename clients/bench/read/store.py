"""A store for one measurement: texts become records as they are, each with the vector that memd gives it.

Comes in: notes, in talks, in pools. Goes out: a daemon that holds them. Invariants: it is filled through the protocol
alone (`import_records`), so that everything but the pipeline's choice of words is the real thing; no model runs for a
question.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from ....protocol import request
from ....protocol.errors import Unavailable
from ....protocol.event import Origin, Trust
from ....protocol.operation import PoolOpened, SessionOpened
from ....protocol.recall import Recall, Recalled, RecallOptions
from ....protocol.record import Provenance, Record, Span, record_id
from ....protocol.reply import ExportedRecord
from ...python.client import Client
from ..home import empty_home, running

BENCH = {"MEMD_BENCH": "1"}
GROUP = 500
EVERYTHING = 10_000_000
IDLE_POLLS = 4


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is one record: its name, whose words, when, in which talk; with a `key` an edge."""

    name: str
    text: str
    at: str
    talk: str
    author: str = "user"
    trust: Trust = "user"
    language: str = "en"
    key: str = ""


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A pool's records: each note's name by its record's id."""

    pool: str
    names: dict[str, str]


@contextmanager
def bench_daemon(settings: Mapping[str, str] | None = None) -> Generator[Client]:
    """A daemon that takes options, in a home of its own."""
    with empty_home({**BENCH, **(settings or {})}) as (where, environment), running(where, environment) as client:
        yield client


def fill(client: Client, pool: str, notes: Sequence[Note]) -> Filled:
    """Bring notes into a pool, each one record. Raises Unavailable for one that is refused."""
    names: dict[str, str] = {}
    talks = {note.talk: note.at for note in reversed(notes)}
    sessions = tuple(
        SessionOpened(document=talk, origin=Origin(host="bench", session=talk), project=pool, at=at)
        for talk, at in talks.items()
    )
    for start in range(0, len(notes), GROUP):
        records = [_record(pool, note) for note in notes[start : start + GROUP]]
        names.update((record.id, note.name) for record, note in zip(records, notes[start:], strict=False))
        wish = request.ImportRecords(
            records=tuple(ExportedRecord(record=record) for record in records),
            sessions=sessions,
            pools=(PoolOpened(pool=pool, title=pool),),
        )
        told = client.import_records(wish)
        if told.refused:
            raise Unavailable(f"{len(told.refused)} notes were refused: {told.refused[0].problem.message}")
    return Filled(pool=pool, names=names)


def _record(pool: str, note: Note) -> Record:
    span = Span(note.talk, note.name, 0, len(note.text))
    return Record(
        id=record_id(pool, note.talk, note.name, 0, 0),
        pool=pool,
        kind="edge" if note.key else "note",
        key=note.key,
        content=note.text,
        description=note.text,
        language=note.language,
        valid_from=note.at,
        provenance=Provenance(
            author=note.author,
            source=note.talk,
            trust=note.trust,
            spans=(span,),
            quote=note.text[:500],
            said_at=note.at,
        ),
    )


def embedded(client: Client, most_s: float = 900.0) -> None:
    """Wait until every record has its vector. Raises Unavailable when it takes longer."""
    end, idle = time.monotonic() + most_s, 0
    client.distil()
    while idle < IDLE_POLLS:
        time.sleep(0.5)
        status = client.status()
        idle = idle + 1 if not status.pending and not status.unembedded else 0
        if time.monotonic() > end:
            raise Unavailable(f"{status.unembedded} records have no vector after {most_s:.0f} s")


def ask(client: Client, query: str, pool: str, options: RecallOptions | None = None, limit: int = 20) -> Recalled:
    """An answer over one pool, with parts, and no budget unless the limit is the usual one."""
    wish = Recall(
        query=query,
        pools=(pool,),
        limit=limit,
        budget_tokens=1500 if limit == 20 else EVERYTHING,
        explain=True,
        options=options,
    )
    return client.ask(wish, Recalled)
