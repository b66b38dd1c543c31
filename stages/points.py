"""Points: the clauses of a text that are worth most, verbatim, for a summary that no model wrote (W12).

A clause that reads like an order to an agent, or stands beside words that do, is no point, nor is one with a secret.
The worth of a clause is its salience for the distiller, and the probability of the selection, which was fitted on what
people say: it counts half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..protocol.event import Wrote, text
from ..protocol.record import QUOTE_LIMIT, Span
from . import documents
from . import extraction_gate as gate
from .batch import Batch, Candidate, Item, Point, Weight
from .clauses import Clause, split
from .cues import count_words
from .embed import SentenceEmbedder
from .extract import turn_clauses
from .scan import Scan, flags_of
from .selection import Place, features, selection
from .subjects import dangling, follows
from .words import is_english

FEWEST_WORDS = 4
BESIDE = 300
"""Characters before and after a clause that are scanned with it: an order may be spread over sentences."""

LEANING = 0.6
"""Factor on the worth of a clause that needs the one before it: "Therefore …", "This only affects …"."""

MOST_SALIENT = 3.0
WEIGHED_CHARACTERS = 1000
"""Characters of an item that decide what it is about."""

SAFETY = 2
"""How many times as many clauses are scanned as points are wanted, because the scan rejects some."""


class PointReader:
    """Finds points and weighs items. `reader`, `embedder`, `scan`: the distiller, the trunk and the stage."""

    def __init__(self, reader: gate.ClauseReader, embedder: SentenceEmbedder, scan: Scan) -> None:
        self._reader, self._embedder, self._scan = reader, embedder, scan

    def points(self, items: Sequence[Item], most: int, read: int) -> tuple[Point, ...]:
        """Return at most `most` points of these captures in the order of the text. `read`: clauses that the distiller
        reads; of more, those that their place and length recommend."""
        clauses = [(item, place, clause) for item in items for place, clause in _clauses(item)]
        if len(clauses) > read:
            ranked = sorted(clauses, key=lambda row: -selection().probability(features(row[1], row[2], None)))
            kept = {id(clause) for _, _, clause in ranked[:read]}
            clauses = [row for row in clauses if id(row[2]) in kept]
        weighed = [(self._worth(place, clause), item, clause) for item, place, clause in clauses]
        weighed.sort(key=lambda row: -row[0])
        safe = self._safe(weighed[: most * SAFETY])[:most]
        if not safe:
            return ()
        words = [" ".join(candidate.quote.split()) for candidate in safe]
        vectors = self._embedder.embed(words).astype("<f4")
        points = [
            Point(span=candidate.span, words=line, worth=candidate.score, vector=vector.tobytes())
            for candidate, line, vector in zip(safe, words, vectors, strict=True)
        ]
        order = {item.captured.event.turn: at for at, item in enumerate(items)}
        return tuple(sorted(points, key=lambda point: (order[point.span.turn], point.span.start)))

    def weigh(self, texts: Sequence[str]) -> tuple[Weight, ...]:
        """Return the weight of each text; one that reads like an order to an agent is worth nothing."""
        if not texts:
            return ()
        fronts = [words[:WEIGHED_CHARACTERS] for words in texts]
        vectors = self._embedder.embed([" ".join(words.split()) or "-" for words in fronts]).astype("<f4")
        worths = (0.0 if flags_of(words) else self._worth_of(words) for words in fronts)
        return tuple(
            Weight(worth=worth, vector=np.asarray(vector).tobytes())
            for worth, vector in zip(worths, vectors, strict=True)
        )

    def _worth_of(self, words: str) -> float:
        """The worth of the best clause of a text."""
        clauses = split(words).clauses or (Clause(0, len(words), words),)
        characters = sum(len(clause.text) for clause in clauses)
        places = (Place(False, at, len(clauses), characters) for at in range(len(clauses)))
        return max(self._worth(place, clause) for place, clause in zip(places, clauses, strict=True))

    def _worth(self, place: Place, clause: Clause) -> float:
        if not is_english(clause.text):
            return round(selection().probability(features(place, clause, None)), 4)
        reading = gate.read(self._reader, clause.text, "document")
        likely = selection().probability(features(place, clause, reading))
        leans = dangling(clause.text) or follows(clause.text)
        return round((2 * reading.salience / MOST_SALIENT + likely) / 3 * (LEANING if leans else 1), 4)

    def _safe(self, weighed: Sequence[tuple[float, Item, Clause]]) -> list[Candidate]:
        """Return the clauses that neither the rules nor the injection model takes for an order, best first."""
        candidates = tuple(
            _candidate(worth, item, clause, at)
            for at, (worth, item, clause) in enumerate(weighed)
            if not flags_of(_surroundings(item, clause))
        )
        scanned = self._scan(Batch(items=tuple(item for _, item, _ in weighed), candidates=candidates))
        return [candidate for candidate in scanned.candidates if not candidate.flags]


def _clauses(item: Item) -> Iterator[tuple[Place, Clause]]:
    """Yield the clauses of a capture that can be points; a row of a table is one. Commands are none."""
    event = item.captured.event
    if isinstance(event, Wrote) and event.form == "commands":
        return
    if isinstance(event, Wrote) and event.form == "row":
        rows = [clause for clause in documents.statements(event) if len(clause.text) <= QUOTE_LIMIT]
        yield from ((Place(False, at, len(rows), len(event.text)), clause) for at, clause in enumerate(rows))
        return
    for place, clause in turn_clauses(item, ()):
        if count_words(clause.text) >= FEWEST_WORDS:
            yield place, clause


def _surroundings(item: Item, clause: Clause) -> str:
    return text(item.captured.event)[max(0, clause.start - BESIDE) : clause.end + BESIDE]


def _candidate(worth: float, item: Item, clause: Clause, ordinal: int) -> Candidate:
    span = Span(item.captured.document, item.captured.event.turn, clause.start, clause.end)
    return Candidate(
        item=item, ordinal=ordinal, span=span, quote=clause.text, trust="document", type="fact", score=worth
    )
