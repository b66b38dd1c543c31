"""Points: the clauses of a text that are worth most, verbatim, for a summary that no model wrote (W12).

A clause that reads like an order to an agent, or stands beside words that do, is no point, nor is one with a secret.
The worth of a clause is its salience for the distiller, and the probability of the selection, which was fitted on what
people say: it counts half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from ..protocol.event import Wrote, text
from ..protocol.ingestion import WeighedBy
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

POINTED = 3.0
"""Worth of words that another reader pointed at: those of a clause are 1 at most."""

MOST_SALIENT = 3.0
WEIGHED_CHARACTERS = 1000
"""Characters of an item that decide what it is about."""


class PointReader:
    """Finds points and weighs items. `reader`, `embedder`, `scan`: the distiller, the trunk and the stage."""

    def __init__(self, reader: gate.ClauseReader, embedder: SentenceEmbedder, scan: Scan) -> None:
        self._reader, self._embedder, self._scan = reader, embedder, scan

    def points(self, items: Sequence[Item], most: int, read: int, pointed: Sequence[Span] = ()) -> tuple[Point, ...]:
        """Return at most `most` points of these captures in the order of the text, which `safe` has to judge. `read`:
        clauses that the distiller reads; of more, those that their place and length recommend; `pointed`: words that
        another reader pointed at, which come first (W4)."""
        named = [(item, clause) for item in items for clause in _clauses_at(item, pointed)]
        clauses = [
            (item, place, clause)
            for item in items
            for place, clause in _clauses(item)
            if not any(item is its and clause.start < its_.end and its_.start < clause.end for its, its_ in named)
        ]
        if len(clauses) > read:
            ranked = sorted(clauses, key=lambda row: -selection().probability(features(row[1], row[2], None)))
            kept = {id(clause) for _, _, clause in ranked[:read]}
            clauses = [row for row in clauses if id(row[2]) in kept]
        weighed = [(POINTED, item, clause) for item, clause in named]
        weighed += [(self._worth(place, clause), item, clause) for item, place, clause in clauses]
        weighed.sort(key=lambda row: -row[0])
        best = list(islice((row for row in weighed if not flags_of(_surroundings(*row[1:]))), most))
        words = [" ".join(clause.text.split()) for _, _, clause in best]
        points = [
            Point(span=_span(item, clause), words=line, worth=worth, vector=vector.tobytes())
            for (worth, item, clause), line, vector in zip(best, words, self._embed(words), strict=True)
        ]
        order = {item.captured.event.turn: at for at, item in enumerate(items)}
        return tuple(sorted(points, key=lambda point: (order[point.span.turn], point.span.start)))

    def safe(self, items: Sequence[Item], points: Sequence[Point]) -> tuple[Point, ...]:
        """Return the points of these captures that neither the rules nor the injection model takes for an order, and
        that hold no secret."""
        by_turn = {item.captured.event.turn: item for item in items}
        candidates = tuple(_candidate(by_turn[point.span.turn], point, at) for at, point in enumerate(points))
        scanned = self._scan(Batch(items=tuple(items), candidates=candidates)).candidates
        taken = {candidate.ordinal for candidate in scanned if not candidate.flags}
        return tuple(point for at, point in enumerate(points) if at in taken)

    def weigh(self, texts: Sequence[str], by: WeighedBy = "both") -> tuple[Weight, ...]:
        """Return the weight of each text; one that reads like an order to an agent is worth nothing."""
        fronts = [words[:WEIGHED_CHARACTERS] for words in texts]
        lines = [" ".join(words.split()) or "-" for words in fronts] if by != "worth" else []
        vectors = self._embed(lines)
        worths = (self._worth_of(words) if by != "topic" and not flags_of(words) else 0.0 for words in fronts)
        return tuple(
            Weight(worth=worth, vector=b"" if vector is None else vector.tobytes())
            for worth, vector in zip_longest(worths, vectors)
        )

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embedder.embed(texts).astype("<f4")

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


def _clauses_at(item: Item, pointed: Sequence[Span]) -> Iterator[Clause]:
    """Yield the words of a capture that another reader pointed at."""
    for span in pointed:
        if span.turn == item.captured.event.turn:
            yield Clause(span.start, span.end, text(item.captured.event)[span.start : span.end])


def _surroundings(item: Item, clause: Clause) -> str:
    return text(item.captured.event)[max(0, clause.start - BESIDE) : clause.end + BESIDE]


def _span(item: Item, clause: Clause) -> Span:
    return Span(item.captured.document, item.captured.event.turn, clause.start, clause.end)


def _candidate(item: Item, point: Point, ordinal: int) -> Candidate:
    quote = text(item.captured.event)[point.span.start : point.span.end]
    return Candidate(
        item=item, ordinal=ordinal, span=point.span, quote=quote, trust="document", type="fact", score=point.worth
    )
