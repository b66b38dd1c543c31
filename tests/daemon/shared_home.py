"""A home that shares a project, without a daemon: real stores, a clock and random bytes that a test knows."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from memd.daemon.config import Config
from memd.daemon.services.core import core_of
from memd.daemon.services.shared_belief import shared_id
from memd.daemon.services.sharing.arrivals import Arrivals
from memd.daemon.services.sharing.own_partition import OwnPartition
from memd.protocol.event import Origin, Visibility
from memd.protocol.operation import (
    Added,
    AliasAdded,
    AnyOperation,
    Decision,
    PoolOpened,
    SessionOpened,
    ShareOpened,
    Updated,
)
from memd.protocol.places import places
from memd.protocol.record import Provenance, Record, Span, record_id
from memd.protocol.share import (
    JudgeAuthor,
    OfferRecords,
    OpenShare,
    PartitionTaken,
    PreparedShare,
    PrepareShare,
    SegmentData,
    Standing,
    TakePartition,
)
from memd.protocol.shared_lines import AnySharedLine, decode_shared, of_repository, segments_of, split_segment
from tests.daemon.living import Running, forgetting_of
from tests.daemon.shared_authors import MARK, Author

POOL, OTHER = "project/orchard", "project/quarry"
ROOT, REMOTE = "f" * 40, "example.org/orchard/app"
AT = "2026-11-20T10:00:00+01:00"
SESSION, WHOLE = "h:private", "h:shared"
WHY = Decision(action="add", reason="a test")
OWN = "a" * 24
START, ARRIVAL = 1_790_000_000_000_000, 1_800_000_000_000_000
"""When a home begins to share, and when it takes what others share."""

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


class SharedHome(Running):
    """Stores with a write thread, the own partition, and the service that takes what arrives."""

    def __init__(self, folder: Path, now: int = START) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.random = Random(1)
        super().__init__(folder / "data", now, self.random.randbytes)
        self.places = places({"MEMD_HOME": str(folder), "HOME": str(folder)}, os.getuid())
        self.core = core_of(self.stores, self.places, Config, self.world)
        self.forgetting = forgetting_of(self.core, self.writer)
        self.own = OwnPartition(self.core, self.writer)
        self.said: list[tuple[str, str, str, str]] = []
        self.arrivals = Arrivals(
            self.core, self.writer, self.forgetting.forget_lines, lambda *words: self.said.append(words)
        )

    # --- what leaves -------------------------------------------------------------------------------------------------
    def found(self) -> None:
        """Open the project with two sessions of its own."""
        self.commit(
            PoolOpened(pool=POOL, title="orchard"),
            AliasAdded(pool=POOL, names=(f"repository:{ROOT}@{REMOTE}",)),
            session(SESSION, POOL),
            session(WHOLE, POOL, "shared"),
        )

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

    # --- what arrives ------------------------------------------------------------------------------------------------
    def open(self, pool: str = POOL, partition: str = OWN) -> None:
        """Open a shared project."""
        self.stores.commit(
            [
                PoolOpened(pool=pool, title=pool.partition("/")[2]),
                AliasAdded(pool=pool, names=(of_repository(MARK.root, MARK.remote),)),
                ShareOpened(pool=pool, partition=partition, root=MARK.root, remote=MARK.remote, name="me"),
            ]
        )

    def send(
        self,
        author: Author,
        segments: Sequence[SegmentData] | None = None,
        *,
        pool: str = POOL,
        head: bytes | None = None,
        hashes: Sequence[bytes] | None = None,
        dry_run: bool = False,
    ) -> PartitionTaken:
        """Send one request."""
        return self.arrivals.take(
            TakePartition(
                pool=pool,
                head=author.head() if head is None else head,
                hashes=tuple(author.hashes() if hashes is None else hashes),
                segments=tuple(author.segments()[:8] if segments is None else segments),
                dry_run=dry_run,
            )
        )

    def pull(self, *authors: Author, pool: str = POOL) -> list[PartitionTaken]:
        """Take everything of some authors, as a client does: it asks again while lines are left."""
        replies: list[PartitionTaken] = []
        for author in authors:
            segments = author.segments()
            reply = self.send(author, segments[:1], pool=pool)
            replies.append(reply)
            for _ in range(4 * segments_of(len(author.lines)) + 4):
                if not reply.left:
                    break
                reply = self.send(author, [segments[number] for number in reply.wanted], pool=pool)
                replies.append(reply)
            assert reply.problem or not reply.left, reply
        return replies

    def judge(self, author: str, standing: Standing, pool: str = POOL) -> None:
        """Say what the user thinks of an author."""
        self.arrivals.judge(JudgeAuthor(pool=pool, author=author, standing=standing))

    def shared(self, author: Author, number: int, pool: str = POOL) -> Record | None:
        """The record of a line."""
        return self.stores.records.get(shared_id(pool, author.partition, number))

    def state(self, author: Author, number: int) -> str:
        """The status of a line's record, "" for none."""
        record = self.shared(author, number)
        return record.status if record else ""

    def beliefs(self, *authors: Author) -> dict[str, Any]:
        """The states of all shared records, by the name of their line."""
        states: dict[str, Any] = {}
        for author in authors:
            for number in range(len(author.lines)):
                if record := self.shared(author, number):
                    states[f"{author.name}/{number}"] = (
                        record.status,
                        record.valid_to,
                        record.content,
                        record.key,
                        record.needs_review,
                    )
        return states

    def settled(self) -> None:
        """Wait until no job runs."""
        while self.core.jobs.current is not None:
            assert self.core.jobs._thread is not None
            self.core.jobs._thread.join(30)


def said(lines: list[AnySharedLine]) -> list[str]:
    """The lines in short: + and the text, - and the number of the line that no longer holds, or `gone`."""
    short = {"AddLine": lambda line: f"+{line.text}", "InvLine": lambda line: f"-{line.id.partition('/')[2]}"}
    return [short.get(type(line).__name__, lambda _: "gone")(line) for line in lines]
