"""Pools filled by `import_records`: each note becomes one record as it is, with the vector that memd computes."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from ....protocol import request
from ....protocol.errors import Unavailable
from ....protocol.event import Origin
from ....protocol.operation import PoolOpened, SessionOpened
from ....protocol.recall import Recall, Recalled, RecallOptions
from ....protocol.record import Provenance, Record, Span, record_id
from ....protocol.reply import ExportedRecord
from ...python.client import Client

WITH_OPTIONS = {"MEMD_BENCH": "1"}  # the setting of a daemon that accepts `RecallOptions`
GROUP = 500
UNLIMITED_TOKENS = 10_000_000
IDLE_POLLS = 4


class SeedNote(msgspec.Struct, frozen=True, kw_only=True):
    """A text that becomes one record, an edge if it has a `key`. `session`: the document it belongs to."""

    name: str
    text: str
    at: str
    session: str
    author: str = "user"
    language: str = "en"
    key: str = ""


class SeededPool(msgspec.Struct, frozen=True, kw_only=True):
    """A filled pool: the name of each note by the id of its record."""

    pool: str
    names: dict[str, str]

    def ask(self, client: Client, query: str, options: RecallOptions | None = None, limit: int = 20) -> Recalled:
        """An answer from this pool with the parts of its scores; no token budget unless the limit is the usual 20."""
        pools, budget = (self.pool,), 1500 if limit == 20 else UNLIMITED_TOKENS
        wish = Recall(query=query, pools=pools, limit=limit, budget_tokens=budget, explain=True, options=options)
        return client.ask(wish, Recalled)

    def ranked(self, answer: Recalled) -> tuple[str, ...]:
        return tuple(self.names[hit.record.id] for hit in answer.hits)


def fill(client: Client, pool: str, notes: Sequence[SeedNote]) -> SeededPool:
    """Import notes into a pool. Raises Unavailable if one is refused."""
    names: dict[str, str] = {}
    begins = {note.session: note.at for note in reversed(notes)}
    sessions = tuple(
        SessionOpened(document=session, origin=Origin(host="bench", session=session), project=pool, at=at)
        for session, at in begins.items()
    )
    for start in range(0, len(notes), GROUP):
        records = [_record(pool, note) for note in notes[start : start + GROUP]]
        names.update((record.id, note.name) for record, note in zip(records, notes[start:], strict=False))
        wish = request.ImportRecords(
            records=tuple(ExportedRecord(record=record) for record in records),
            sessions=sessions,
            pools=(PoolOpened(pool=pool, title=pool),),
        )
        if refused := client.import_records(wish).refused:
            raise Unavailable(f"{len(refused)} notes were refused: {refused[0].problem.message}")
    return SeededPool(pool=pool, names=names)


def _record(pool: str, note: SeedNote) -> Record:
    return Record(
        id=record_id(pool, note.session, note.name, 0, 0),
        pool=pool,
        kind="edge" if note.key else "note",
        key=note.key,
        content=note.text,
        description=note.text,
        language=note.language,
        valid_from=note.at,
        provenance=Provenance(
            author=note.author,
            source=note.session,
            trust="user",
            spans=(Span(note.session, note.name, 0, len(note.text)),),
            quote=note.text[:500],
            said_at=note.at,
        ),
    )


def await_vectors(client: Client, most_s: float = 900.0) -> None:
    """Wait until every record has its vector. Raises Unavailable when it takes longer than `most_s` seconds."""
    end, idle = time.monotonic() + most_s, 0
    client.distil()
    while idle < IDLE_POLLS:
        time.sleep(0.5)
        status = client.status()
        idle = idle + 1 if not status.pending and not status.unembedded else 0
        if time.monotonic() > end:
            raise Unavailable(f"{status.unembedded} records have no vector after {most_s:.0f} s")
