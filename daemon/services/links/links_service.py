"""Tells whether the documents behind records have changed (C3). It changes nothing: no record is retired by it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace

from ....protocol.document_links import DocumentState, LinkList, LinkState, ListLinks
from ....protocol.record import LIVE, Record
from ...projections.pool_directory import PoolDirectory
from ...projections.stores import Stores
from ...world import World
from ..outgoing_screen import shown, without_secrets
from ..service import Caller, Handler, Handlers, Service
from .document_links import Holds, Link, drop_documents, state_of, tracked_blobs
from .evidence_links import link_of
from .imported_parts import MARKDOWN, ImportedPart, imported_part

RECORDS = 500
"""Most records with links that one request looks at."""

TIME_S = 6.0
"""Seconds after which a request begins no further comparison, because a client waits 10 s."""

KEPT_S = 86_400.0
"""Seconds for which a comparison counts while the file's size and time are the same."""

KEPT = 10_000
"""Most comparisons in memory."""

STALE: frozenset[DocumentState] = frozenset({"changed", "gone"})


class RecordLink(NamedTuple):
    """A link of a record, and what identifies its part where it is known by its words."""

    by: Literal["evidence", "import"]
    root: Path
    link: Link
    part: ImportedPart | None = None

    @property
    def digest(self) -> bytes:
        """A key that reveals no words."""
        pieces = (*self.part.pieces, *self.part.cells) if self.part else ()
        fields = (str(self.root), self.link.path, self.link.anchor, self.link.blob, self.link.section, *pieces)
        return blake2b("\0".join(fields).encode(errors="surrogateescape"), digest_size=16).digest()


class LinksService(Service):
    """Compares documents on the slow lane."""

    name = "links"

    def __init__(self, stores: Stores, directory: PoolDirectory, world: World) -> None:
        self._stores, self._directory, self._monotonic = stores, directory, world.monotonic
        self._kept: dict[bytes, Comparison] = {}

    @property
    def handlers(self) -> Handlers:
        return {ListLinks: Handler("slow", self.list, scoped=True)}

    def list(self, request: ListLinks, caller: Caller) -> LinkList:
        """List the links of records with their states. Raises NotFound for an unknown id."""
        if request.ids:
            named = (self._stores.records.named(id, caller.permits) for id in request.ids)
            records = iter({record.id: record for record in named}.values())
        else:
            records = self._recent(caller)
        with_links = ((record, links) for record in records if (links := [*self._links(record, caller)]))
        rows = [(record, link) for record, links in islice(with_links, RECORDS) for link in links]
        end = self._monotonic() + TIME_S
        checks = Comparisons(self._kept, self._monotonic)
        states: list[LinkState] = []
        checked = 0
        for record, link in rows:
            if self._monotonic() > end:
                break
            checked += 1
            state, now = checks.state(link)
            if not request.stale or state in STALE:
                states.append(_shown(record, link, state, now))
        drop_documents()
        return LinkList(links=tuple(states), checked=checked, left=len(rows) - checked)

    def stale(self, ids: Sequence[str], caller: Caller) -> LinkList:
        """Return the links of these records whose documents changed or are gone. Raises NotFound for an unknown id."""
        return self.list(ListLinks(ids=tuple(ids), stale=True), caller)

    def _recent(self, caller: Caller) -> Iterator[Record]:
        """Yield the live records of the scope that the caller may see, newest first."""
        for record in self._stores.records.newest(self._directory.joined(caller.scope)):
            if record.status in LIVE and (caller.permits is None or caller.permits(record)):
                yield record

    def _links(self, record: Record, caller: Caller) -> Iterator[RecordLink]:
        for artifact in record.artifacts:
            if link := link_of(artifact):
                yield RecordLink("evidence", *link)
        for document, turn in dict.fromkeys((span.document, span.turn) for span in record.provenance.spans):
            if not document.startswith(MARKDOWN) or (caller.hears is not None and not caller.hears(document)):
                continue
            captured = self._stores.archive.turn(document, turn)
            if captured is not None and (part := imported_part(captured)):
                yield RecordLink("import", part.root, part.link, part)


class Comparison(NamedTuple):
    """A state, when it was found on the monotonic clock, and the size and times that the file had."""

    at: float
    signature: tuple[int, ...]
    state: DocumentState


class Comparisons:
    """The comparisons of one request. git lists the files of a repository at most once, and looks for a missing
    document once."""

    def __init__(self, kept: dict[bytes, Comparison], monotonic: Callable[[], float]) -> None:
        """`kept`: comparisons of files at their paths, for later requests."""
        self._kept, self._monotonic = kept, monotonic
        self._tracked = cache(tracked_blobs)
        self._missing: dict[tuple[Path, str, str], tuple[DocumentState, str]] = {}

    def state(self, row: RecordLink) -> tuple[DocumentState, str]:
        """Return the state of a link, and the path below the root where the document is now."""
        signature = _signature(row.root / row.link.path)
        if not signature:
            return self._elsewhere(row)
        kept = self._kept.get(row.digest)
        if kept and kept.signature == signature and self._monotonic() - kept.at < KEPT_S:
            return kept.state, row.link.path
        state, now = self._compared(row, row.link)
        if now == row.link.path:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[row.digest] = Comparison(self._monotonic(), signature, state)
        return state, now

    def _elsewhere(self, row: RecordLink) -> tuple[DocumentState, str]:
        """Return the state of a link whose document is not at its path, with what git said about the document."""
        key = (row.root, row.link.path, row.link.blob)
        if key not in self._missing:
            self._missing[key] = self._compared(row, row.link)
            return self._missing[key]
        state, now = self._missing[key]
        if now == row.link.path:
            return state, now
        state, now = self._compared(row, replace(row.link, path=now))
        return ("moved" if state == "fresh" else state), now

    def _compared(self, row: RecordLink, link: Link) -> tuple[DocumentState, str]:
        holds: Holds | None = row.part.is_held if row.part else None
        return state_of(link, row.root, tracked=lambda: self._listed(row.root), holds=holds)

    def _listed(self, root: Path) -> Mapping[str, str]:
        return self._tracked(root)


def _signature(file: Path) -> tuple[int, ...]:
    """Return what differs after a change of a file; () for none that can be read."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return ()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _shown(record: Record, row: RecordLink, state: DocumentState, now: str) -> LinkState:
    return LinkState(
        id=record.id,
        description=shown(record).record.description,
        path=without_secrets(str(row.root / row.link.path)),
        anchor=without_secrets(row.link.anchor),
        state=state,
        now=without_secrets(str(row.root / now)),
        by=row.by,
    )
