"""What the rules of extract are worth on the corpus of sessions: each is switched off in turn, and the corpus's scorer
grades the candidates (U5). Models and vectors are computed once a clause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..clients.bench.corpus import load_scorer, read_session
from ..clients.importers.transcript import CapturedSession
from ..daemon.world import World
from ..models.distiller import ClauseReading, Distiller, Speaker
from ..models.trunk import Trunk
from ..protocol.event import Captured, Said, Trust, trust
from ..protocol.places import Places
from ..stages.batch import AgentText, Batch, Candidate, Item
from ..stages.enrich import enrich
from ..stages.extract import Extract
from ..stages.extraction_gate import Position

POSITIONS = tuple(name for name in Position._fields if name != "project")
"""What the place of an agent's clause says for or against it: these are decisions too."""
OF_TYPE = frozenset("empty narrated slight weak change trouble".split())
"""Reasons behind which a rejection has the type of its clause."""
BY_FORM = frozenset({"not prose", "machine-written", "injected", "code", "table", "passing answer"})
"""Reasons of the form of a text or of another model, which this does not switch off."""
MEASURES = ("records", "believed", "gold", "whole", "touched", "whole believed", "must-not kept", "claims believed")
Counts = Counter[str]
Rule = tuple[Trust, str]


class CachedTrunk:
    """The trunk, which embeds each text once."""

    def __init__(self) -> None:
        self._trunk = Trunk()
        self._rows: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts (texts × 384)."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if fresh:
            self._rows.update(zip(fresh, self._trunk.embed(fresh), strict=True))
        return np.stack([self._rows[text] for text in texts])


class CachedReader:
    """The distiller, which reads each clause once."""

    def __init__(self) -> None:
        self._read = cache(Distiller().read)

    def read(self, clause: str, speaker: Speaker) -> ClauseReading:
        """The reading of a clause."""
        return self._read(clause, speaker)


def ablate_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`ablate-rules CORPUS SESSION …`: for all rules together ("") and without each: clauses that it left out, and what
    is kept then of the sessions."""
    folder, names = Path(arguments[0]), arguments[1:]
    scorer = load_scorer(folder)
    for name in ("texts", "words", "sequence"):
        setattr(scorer, name, cache(getattr(scorer, name)))
    trunk, reader = CachedTrunk(), CachedReader()
    whole = Counts()
    changes: dict[str, Counts] = {}
    for name in names:
        batches = list(_batches(read_session(folder, scorer, name)))
        kept, left_out = _extracted(batches, Extract(trunk, reader))
        before = _graded(scorer, name, kept)
        whole.update(before)
        positions: dict[Rule, int] = {("assistant", position): 0 for position in POSITIONS}
        for rule, number in {**left_out, **positions}.items():
            kept, _ = _extracted(batches, Extract(trunk, reader, frozenset({rule})))
            after = _graded(scorer, name, kept)
            change = changes.setdefault(f"{rule[0]}: {rule[1]}", Counts())
            change["left out"] += number
            for measure in MEASURES:
                change[measure] += after[measure] - before[measure]
    return {"": dict(whole), **{rule: dict(change) for rule, change in changes.items()}}


def _batches(sessions: Sequence[CapturedSession]) -> Iterator[Batch]:
    for session in sessions:
        document = session.origin.document
        events = [(seq, event) for seq, event in enumerate(session.events, 1) if isinstance(event, Said)]
        items = (Item(seq=seq, captured=Captured(document=document, event=event), project="p") for seq, event in events)
        agent = tuple(AgentText(seq, event.text, event.turn) for seq, event in events if event.role == "assistant")
        yield Batch(items=tuple(items), agent={document: agent})


def _extracted(batches: Sequence[Batch], extract: Extract) -> tuple[list[Candidate], Counter[Rule]]:
    """The candidates of batches, and how many clauses each rule left out."""
    kept: list[Candidate] = []
    left_out = Counter[Rule]()
    for batch in batches:
        done = enrich(extract(batch))
        speakers: dict[int, Trust] = {item.seq: trust(item.captured.event) for item in batch.items}
        kept += done.candidates
        rejections = (rejection for rejection in done.rejections if rejection.reason not in BY_FORM)
        left_out.update((speakers[rejection.seq], _rule(rejection.reason)) for rejection in rejections)
    return kept, left_out


def _rule(reason: str) -> str:
    """A reason without the type of the clause that it left out."""
    first = reason.partition(" ")[0]
    return first if first in OF_TYPE else reason


def _graded(scorer: ModuleType, session: str, kept: Sequence[Candidate]) -> Counts:
    records = [_record(number, candidate) for number, candidate in enumerate(kept)]
    graded: dict[str, Any] = scorer.grade("dev", session, {"records": records, "asks": [], "host": ""})
    items = graded["items"]
    return Counts(
        {
            "records": len(records),
            "believed": sum(record["status"] == "active" for record in records),
            "gold": len(items),
            "whole": sum(item["got"] == "whole" for item in items),
            "touched": sum(item["got"] != "no" for item in items),
            "whole believed": sum(item["sure"] for item in items),
            "must-not kept": sum(clause["kept"] for clause in graded["must_not"]),
            "claims believed": sum(claim["believed"] for claim in graded["claims"]),
        }
    )


def _record(number: int, candidate: Candidate) -> dict[str, Any]:
    """A candidate as the scorer reads records."""
    is_believed = candidate.trust == "user" and not candidate.is_noted and not candidate.flags
    return {
        "id": str(number),
        "pool": "p",
        "status": "active" if is_believed else "quarantined",
        "content": candidate.quote,
        "description": candidate.description,
        "provenance": {"quote": candidate.quote},
    }
