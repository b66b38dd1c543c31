"""Memories as the curator reads them: sessions, turns, records and vectors in real stores, and a run over them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from memd.daemon.config import Config
from memd.daemon.forgetting_rules import Rules
from memd.daemon.projections.inbox import PendingProposal
from memd.daemon.services.core import core_of
from memd.daemon.services.curation.curation_service import CurationService, seed_thresholds
from memd.daemon.services.lifecycle.review import ReviewJob
from memd.daemon.services.links.document_links import at_head
from memd.models.distiller import Distiller
from memd.models.same_rule import SameRuleJudge
from memd.models.trunk import Trunk
from memd.protocol.curation import Curate, Curation
from memd.protocol.event import AnyEvent, Captured, Origin, Said, Wrote
from memd.protocol.operation import Added, SessionOpened
from memd.protocol.places import places
from memd.protocol.record import Evidence, Record, Span
from memd.stages.batch import Given
from memd.stages.lasting import lasting
from memd.stages.same_rules import ToldPair

from .living import WHY, Running, record

PUSH = "Always commit and push after every finished change."
AGAIN = "Commit and push after every finished change, always."
PROJECT = "project/orchard"
DAY = 86_400_000_000


@cache
def trunk() -> Trunk:
    return Trunk()


class Models:
    """The models of the curator, in this process."""

    def __init__(self) -> None:
        self._rules, self._clauses = SameRuleJudge(), Distiller()

    def compare(self, pairs: Sequence[ToldPair]) -> list[float]:
        return self._rules.judge_all(pairs)

    def lasting(self, texts: Sequence[str]) -> list[float]:
        return [lasting(self._clauses.read(text, "user")) for text in texts]


@cache
def reader() -> Models:
    return Models()


@cache
def vector(text: str) -> bytes:
    (row,) = np.asarray(trunk().embed([text]), np.float32)
    return row.tobytes()


class Orchard(Running):
    """Stores of one project whose sessions a test tells."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "data")
        self.folder = folder
        self.given: dict[str, tuple[str, ...]] = {}
        self.thresholds = seed_thresholds
        self._count = 0
        self._opened: set[str] = set()

    def capture(self, document: str, event: AnyEvent, family: str = "", project: str = PROJECT) -> None:
        """Store a turn of a document, which is opened by its first one."""
        self.stores.take([Captured(document=document, event=event)])
        if document not in self._opened:
            self._opened.add(document)
            host, _, name = document.partition(":")
            origin = Origin(host=host, session=name)
            opened = SessionOpened(document=document, origin=origin, project=project, at=event.at, family=family)
            self.stores.commit([opened])

    def tell(
        self,
        session: str,
        day: int,
        text: str = PUSH,
        *,
        by: Any = "user",
        turn: str = "",
        family: str = "",
        project: str = PROJECT,
        **more: Any,
    ) -> Record:
        """State `text` in a session on a day of January 2026, as a record of the project."""
        self._count += 1
        turn = turn or f"turn{self._count}"
        at = f"2026-01-{day:02}T10:00:00Z"
        self.capture(session, Said(turn=turn, at=at, role=by, text=text), family, project)
        return self.believe(session, turn, at, text, by, **more)

    def write(
        self, document: str, day: int, text: str = PUSH, *, path: str = "", turn: str = "", **more: Any
    ) -> Record:
        """State `text` in a document."""
        self._count += 1
        turn = turn or f"turn{self._count}"
        at = f"2026-01-{day:02}T10:00:00Z"
        self.capture(document, Wrote(turn=turn, at=at, text=text, path=path))
        return self.believe(document, turn, at, text, "document", **more)

    def believe(self, document: str, turn: str, at: str, text: str, by: Any, **more: Any) -> Record:
        made = record(self._count, **{"pool": PROJECT, "tags": ("convention",), **more}, content=text, description=text)
        span = Span(document, turn, 0, len(text))
        source = replace(made.provenance, source=document, spans=(span,), quote=text, said_at=at, trust=by, author=by)
        made = replace(made, provenance=source, learned_at=self._count)
        self.stores.vector_store.put([(text, vector(text))])
        self.stores.commit([Added(record=made, decision=WHY)])
        found = self.stores.records.get(made.id)
        assert found is not None
        return found

    def restate(self, belief: Record, session: str, day: int, by: Any = "user") -> Evidence:
        """Return evidence of a later session for a record."""
        at = f"2026-01-{day:02}T10:00:00Z"
        self.capture(session, Said(turn=f"again{day}", at=at, role=by, text=belief.content))
        return Evidence(kind="restated", span=Span(session, f"again{day}", 0, 1), trust=by, at=at)

    def curate(self, *, dry_run: bool = False, pool: str = "") -> Curation:
        def given(captures: Iterable[Captured]) -> Mapping[str, Given]:
            documents = {captured.document for captured in captures}
            return {document: Given(ids=self.given[document]) for document in documents if document in self.given}

        core = core_of(self.stores, places({"MEMD_HOME": str(self.folder)}, 0), Config, self.world)
        review = ReviewJob(self.stores, self.writer, Rules, self.world.now)
        service = CurationService(
            core,
            self.writer,
            given=given,
            at_head=at_head,
            against=review.contradictions,
            is_quiet=lambda: True,
            reader=lambda: nullcontext(reader()),
            thresholds=self.thresholds,
        )
        return service.curate(Curate(pool=pool, dry_run=dry_run))

    def waiting(self) -> list[PendingProposal]:
        return self.stores.inbox.list()
