"""A home that shares a project, without a daemon: real stores, a clock and random bytes that a test knows."""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from memd.daemon.config import Config
from memd.daemon.projections.stores import Stores
from memd.daemon.services.core import core_of
from memd.daemon.services.sharing.own_partition import OwnPartition
from memd.daemon.services.write_thread import NoCaptures, WriteThread
from memd.daemon.world import World, real_world
from memd.models import registry
from memd.protocol.event import Origin, Visibility
from memd.protocol.operation import Added, AliasAdded, AnyOperation, Decision, PoolOpened, SessionOpened, Updated
from memd.protocol.places import places
from memd.protocol.record import Provenance, Record, Span, record_id
from memd.protocol.share import OfferRecords, OpenShare, PreparedShare, PrepareShare
from memd.protocol.shared_lines import AnySharedLine, decode_shared, split_segment

POOL, OTHER = "project/orchard", "project/quarry"
ROOT, REMOTE = "f" * 40, "example.org/orchard/app"
AT = "2026-11-20T10:00:00+01:00"
SESSION, WHOLE = "h:private", "h:shared"
WHY = Decision(action="add", reason="a test")
START = 1_790_000_000_000_000
HOUR = 3_600_000_000


def session(document: str, project: str, visibility: Visibility = "private", agent: str = "") -> SessionOpened:
    host, _, name = document.partition(":")
    origin = Origin(host=host, session=name, visibility=visibility, agent=agent)
    return SessionOpened(document=document, origin=origin, project=project, at=AT)


def identified(number: int) -> str:
    return record_id("note", "h", str(number), 0, 0)


def record(number: int, text: str = "", document: str = SESSION, **more: Any) -> Record:
    text = text or f"The orchard service number {number} listens on its own port."
    provenance = Provenance(
        author="user",
        source=document,
        trust=more.pop("trust", "user"),
        spans=(Span(document, f"t{number}", 0, len(text)),) if document else (),
        quote=f"quoted words {number}",
        said_at=AT,
        visibility=more.pop("visibility", "private"),
    )
    fields: dict[str, Any] = {"pool": POOL, "kind": "note", "description": text, "tags": ("decision", "ports"), **more}
    return Record(id=identified(number), content=text, provenance=provenance, **fields)


def added(*records: Record) -> list[AnyOperation]:
    return [Added(record=each, decision=WHY) for each in records]


class SharedHome:
    """The stores, the write thread and the own partition."""

    def __init__(self, folder: Path) -> None:
        self.now = START
        self.random = Random(1)
        self.places = places({**os.environ, "MEMD_HOME": str(folder)}, os.getuid())
        self.places.data.mkdir(parents=True, mode=0o700, exist_ok=True)
        real = real_world()
        self.world = World(lambda: self.now, real.monotonic, self.random.randbytes)
        self.stores = Stores(self.places.data, self.world, registry.info())
        self.writer = WriteThread(NoCaptures(), real.monotonic)
        self.writer.start()
        core = core_of(self.stores, self.places, Config, self.world)
        self.own = OwnPartition(core, self.writer)

    def found(self) -> None:
        """Open the project with two sessions of its own."""
        self.commit(
            PoolOpened(pool=POOL, title="orchard"),
            AliasAdded(pool=POOL, names=(f"repository:{ROOT}@{REMOTE}",)),
            session(SESSION, POOL),
            session(WHOLE, POOL, "shared"),
        )

    def close(self) -> None:
        self.writer.stop()
        self.stores.close()

    def commit(self, *operations: AnyOperation) -> None:
        self.now += 1_000_000
        self.stores.commit(operations)

    def share(self, **more: Any) -> None:
        self.own.open(OpenShare(pool=POOL, name="Ada", **more))

    def choose(self, *numbers: int, keep: tuple[int, ...] = ()) -> None:
        ids, kept = (tuple(map(identified, each)) for each in (numbers, keep))
        self.own.choose(OfferRecords(pool=POOL, ids=ids, keep=kept))

    def change(self, number: int, **changes: Any) -> None:
        """Change a record as an edit does."""
        before = self.stores.records.get(identified(number))
        assert before is not None
        after = msgspec.structs.replace(before, rev=before.rev + 1, **changes)
        self.commit(Updated(record=after, decision=WHY))

    def reword(self, number: int, text: str) -> None:
        self.change(number, content=text, description=text)

    def prepared(self, **more: Any) -> PreparedShare:
        return self.own.prepare(PrepareShare(pool=POOL, **more))

    def pages(self) -> Iterator[PreparedShare]:
        page = self.prepared()
        yield page
        while page.next:
            page = self.prepared(first=page.next)
            yield page

    def raw(self) -> list[bytes]:
        """The bytes of all lines, after an offer."""
        return [line for page in self.pages() for part in page.segments for line in split_segment(part.data)]

    def lines(self) -> list[AnySharedLine]:
        return [decode_shared(raw, number) for number, raw in enumerate(self.raw())]


def said(lines: list[AnySharedLine]) -> list[str]:
    """The lines in short: + and the text, - and the number of the line that no longer holds, or `gone`."""
    short = {"AddLine": lambda line: f"+{line.text}", "InvLine": lambda line: f"-{line.id.partition('/')[2]}"}
    return [short.get(type(line).__name__, lambda _: "gone")(line) for line in lines]
