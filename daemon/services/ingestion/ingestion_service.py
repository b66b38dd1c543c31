"""Large input (W12): weighs the items that a user may choose from, and summarises a document that was captured.

The details of a summary are ordinary captures. Both jobs read with a worker process of their own, which ends with the
job; distilling waits for it, because a user does. A job that is killed leaves nothing: a summary is one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol

import numpy as np

from ....protocol.errors import InvalidRequest, NotFound, Stopping
from ....protocol.event import Captured, Wrote, text
from ....protocol.ingestion import (
    SUMMARY,
    SUMMARY_TOKENS,
    Detail,
    GetDetail,
    ListTopics,
    RecordTopic,
    SummariseDocument,
    TopicList,
    WeighedBy,
    WeighItems,
    summary_id,
)
from ....protocol.record import LIVE, Record, Span, learning_order
from ....protocol.reply import JobState
from ....stages.batch import Item, Point, Weight
from ....stages.extractive_summary import choose
from ...projections.topics import topics
from ...projections.vectors import embedded
from ..core import Core
from ..jobs import Progress, Report
from ..outgoing_screen import shown, without_secrets
from ..pass_limits import may_read
from ..service import Caller, Handler, Handlers, Service, owner
from ..token_estimate import most_tokens_of
from ..write_thread import Writer
from .chunks import chunks
from .document_summary import DocumentReading, is_open, operations, price, read_document, summary_record

READ, FEWEST_READ = 800, 4
"""Clauses of a document that the distiller reads, 6 ms each, and at least of a chunk: those that their form recommends.
"""

CANDIDATES = 240
"""Points of a document that compete for its summary, at least two of each chunk."""

WEIGHED = 64
"""Items that are weighed at once."""

MAPPED = 2_000
"""Newest records in scope that are grouped into topics."""

CENTRAL = 20
"""Records of a topic that are named."""


class PointFinder(Protocol):
    """The models, in a process of their own."""

    def points(self, items: Sequence[Item], most: int, read: int, pointed: Sequence[Span]) -> tuple[Point, ...]:
        """Return points of captures in the order of the text. `pointed`: words that another reader pointed at. Raises
        Unavailable, Stopping."""
        ...

    def safe(self, items: Sequence[Item], points: Sequence[Point]) -> tuple[Point, ...]:
        """Return the points of these captures that may stand in a summary. Raises Unavailable, Stopping."""
        ...

    def weigh(self, texts: Sequence[str], by: WeighedBy) -> tuple[Weight, ...]:
        """Return the weights of texts. Raises Unavailable, Stopping."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


class IngestionService(Service):
    """Jobs about large input, and reads of what they wrote."""

    name = "ingestion"

    def __init__(
        self, core: Core, writer: Writer, finder: Callable[[], PointFinder], distil: Callable[[], None]
    ) -> None:
        """`finder`: opens the models; `distil`: wakes the distiller, which embeds a new summary."""
        self._core, self._stores, self._writer = core, core.stores, writer
        self._finder, self._distil = finder, distil
        self._opened: PointFinder | None = None

    @property
    def handlers(self) -> Handlers:
        return {
            WeighItems: owner("slow", self.weigh),
            SummariseDocument: owner("slow", self.summarise),
            GetDetail: Handler("slow", self.detail, scoped=True),
            ListTopics: Handler("slow", self.topics, scoped=True),
        }

    @property
    def is_reading(self) -> bool:
        """Whether a job has the models open."""
        return self._opened is not None

    def stop(self) -> None:
        """End the models of a job, which then fails before the stores close."""
        if (finder := self._opened) is not None:
            finder.close()

    @contextmanager
    def _models(self) -> Generator[PointFinder]:
        """Open the models for one job; only one runs at a time."""
        with closing(self._finder()) as finder:
            self._opened = finder
            self._check_stopping()
            try:
                yield finder
            finally:
                self._opened = None

    # --- jobs ----------------------------------------------------------------------------------------------------
    def weigh(self, request: WeighItems) -> JobState:
        """Start to weigh items. Raises Unavailable beside another job."""
        return self._core.jobs.start("weigh items", lambda progress: self._weigh(request, progress))

    def _weigh(self, request: WeighItems, progress: Progress) -> Report:
        texts, by = request.texts, request.by
        weights: list[Weight] = []
        with self._models() as finder:
            for start in range(0, len(texts), WEIGHED):
                progress(start, len(texts), "items")
                self._check_stopping()
                weights += finder.weigh(texts[start : start + WEIGHED], by)
        worths = [f"{weight.worth:.4f}" for weight in weights] if by != "topic" else []
        if by == "worth":
            return {"worth": worths, "topics": []}
        vectors = np.stack([np.frombuffer(weight.vector, "<f4") for weight in weights])
        labels = [""] * len(texts)
        for topic in topics(vectors, texts):
            for member in topic.members:
                labels[member] = without_secrets(topic.label)
        return {"worth": worths, "topics": labels}

    def summarise(self, request: SummariseDocument) -> JobState:
        """Start to summarise a document. Raises NotFound, and Unavailable beside another job."""
        if self._stores.sources.session(request.document) is None:
            raise NotFound(f"memd knows no document {request.document!r}", hint="`memd ingest FILE` takes a file in")
        return self._core.jobs.start("summarise", lambda progress: self._summarise(request, progress))

    def _summarise(self, request: SummariseDocument, progress: Progress) -> Report:
        reading = read_document(self._stores, request.document, request.turns)
        if reading is None:
            raise NotFound(f"memd knows no document {request.document!r}", hint="someone removed it meanwhile")
        groups = chunks(reading.captures)
        before = self._stores.records.get(summary_id(request.document))
        is_made = before is not None and (before.provenance.distiller == reading.maker or not reading.is_whole)
        if before and is_made and before.status in LIVE:
            return _report(before, reading, len(groups), 0)
        if before and not is_open(self._stores, before):
            return _report(None, reading, len(groups), 0)
        points = self._points(groups, reading.pointed, progress)
        record = summary_record(reading, points) if points else None
        written = self._writer.run(lambda: self._commit(reading, record)).result()
        self._distil()
        after = self._stores.records.get(summary_id(request.document)) if record else None
        return _report(after, reading, len(groups), written)

    def _points(
        self, groups: Sequence[tuple[Captured, ...]], pointed: Sequence[Span], progress: Progress
    ) -> tuple[Point, ...]:
        """Return the points of the summary. Only the chosen ones are checked, and others are chosen for those that may
        not stand in it."""
        most, read = max(2, CANDIDATES // max(1, len(groups))), max(FEWEST_READ, READ // max(1, len(groups)))
        chunked = [[Item(seq=n, captured=captured) for n, captured in enumerate(group, 1)] for group in groups]
        items = {item.captured.event.turn: item for group in chunked for item in group}
        found: list[tuple[Point, ...]] = []
        safe, unsafe = set[Point](), set[Point]()
        with self._models() as finder:
            for at, group in enumerate(chunked):
                progress(at, len(groups), "chunks")
                self._check_stopping()
                found.append(finder.points(group, most, read, pointed))
            while True:
                left = [[point for point in points if point not in unsafe] for points in found]
                chosen = choose(left, SUMMARY_TOKENS, price)
                fresh = [point for point in chosen if point not in safe]
                if not fresh:
                    return chosen
                self._check_stopping()
                turns = dict.fromkeys(point.span.turn for point in fresh)
                safe.update(finder.safe([items[turn] for turn in turns], fresh))
                unsafe.update(point for point in fresh if point not in safe)

    def _commit(self, reading: DocumentReading, record: Record | None) -> int:
        """Write the summary; return the number of operations. Called on the write thread."""
        written = operations(self._stores, reading, record)
        if written:
            self._stores.commit(written)
        return len(written)

    def _check_stopping(self) -> None:
        if self._core.jobs.stopping.is_set():
            raise Stopping("memd is stopping", hint="run `memd ingest` again; what was saved stays")

    # --- reads ---------------------------------------------------------------------------------------------------
    def detail(self, request: GetDetail, caller: Caller) -> Detail:
        """Return a passage of a summary. Raises NotFound, InvalidRequest for a record that is no summary."""
        record = self._named(request.summary, caller) if request.summary else self._newest(caller)
        spans = record.provenance.spans
        if SUMMARY not in record.tags:
            raise InvalidRequest(f"{record.id[:8]} is no summary", hint="`memd why ID` shows the source of a record")
        if request.number > len(spans):
            hint = f"it has the passages §1 to §{len(spans)}"
            raise NotFound(f"{record.id[:8]} has no passage §{request.number}", hint=hint)
        span = spans[request.number - 1]
        captured = self._stores.archive.turn(span.document, span.turn)
        if captured is None or not may_read(caller, span.document, span.turn):
            raise NotFound("the archive no longer has this passage", hint=f"`memd show {record.id[:8]}` has its line")
        words = text(captured.event)
        event = captured.event
        return Detail(
            summary=shown(record).record,
            number=request.number,
            total=len(spans),
            document=span.document,
            turn=span.turn,
            at=event.at,
            text=without_secrets(words),
            start=span.start,
            end=span.end,
            path=without_secrets(event.path) if isinstance(event, Wrote) else "",
        )

    def _named(self, id: str, caller: Caller) -> Record:
        return self._stores.records.named(id, caller.permits)

    def _newest(self, caller: Caller) -> Record:
        """Return the newest summary in scope. Raises NotFound."""
        summaries = (record for record in self._live(caller) if SUMMARY in record.tags)
        newest = max(summaries, key=learning_order, default=None)
        if newest is None:
            raise NotFound("there is no summary in this scope", hint="`memd ingest FILE` makes one")
        return newest

    def topics(self, request: ListTopics, caller: Caller) -> TopicList:
        """Group the live records in scope by their vectors."""
        records = sorted(self._live(caller), key=lambda record: (-record.learned_at, record.id))
        standing = {record.id: record for record in records[:MAPPED] if SUMMARY not in record.tags}
        rows = [row for pool in self._pools(caller) for row in embedded(self._stores.records, pool)]
        rows = sorted((row for row in rows if row[0] in standing), key=lambda row: row[0])
        places, vectors = self._stores.vector_store.get([mark for _, mark in rows])
        ids = [rows[place][0] for place in places]
        grouped = topics(vectors, [standing[id].description for id in ids], request.most)
        shown_topics = tuple(
            RecordTopic(
                label=without_secrets(topic.label),
                records=len(topic.members),
                ids=tuple(ids[member] for member in topic.members[:CENTRAL]),
            )
            for topic in grouped
        )
        return TopicList(topics=shown_topics, left=len(records) - len(ids))

    def _pools(self, caller: Caller) -> tuple[str, ...]:
        return self._core.directory.joined(caller.scope)

    def _live(self, caller: Caller) -> Iterator[Record]:
        """Yield the live records in scope that the caller may see."""
        for pool in self._pools(caller):
            for record in self._stores.records.in_pool(pool):
                if record.status in LIVE and (caller.permits is None or caller.permits(record)):
                    yield record


def _report(record: Record | None, reading: DocumentReading, groups: int, written: int) -> Report:
    """Return the report of a job; its summary is empty without a record."""
    content = record.content if record else ""
    return {
        "id": record.id if record else "",
        "summary": content,
        "tokens": most_tokens_of(content) if content else 0,
        "lines": len(record.provenance.spans) if record else 0,
        "details": len(reading.captures),
        "chunks": groups,
        "written": written,
    }
