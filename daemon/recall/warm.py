"""WARM: the records relevant to a question, ranked; keywords and vectors mixed, no model called (Q2).

Comes in: a question and the pools its asker may read. Goes out: hits with score parts, or an honest nothing.
Invariants: only records of the scope become candidates; relevance decides whether a record is a candidate at all, the
rest only orders (Q5); an answer says what it left out (Q10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...protocol.record import LIVE, Record
from ...protocol.reply import Hit, Nearest, Recalled
from ...protocol.request import Recall
from ...stages.batch import PERSONAL
from ..projections.keywords import Keywords
from ..projections.records import Records
from ..projections.vectors import Vectors
from .budget import tokens
from .timeline import View

Encode = Callable[[str], NDArray[np.float32]]


class Sense(NamedTuple):
    """Vectors, and what turns a question into one of the same model; None where the model has no table."""

    vectors: Vectors
    encode: Encode | None


POOL_OF_CANDIDATES = 100
KEYWORD_SHARE = 0.5
"""The convex mix: this share for keywords, the rest for vectors (on LoCoMo better than either, and than ranks)."""

COSINE_FLOOR, COSINE_CEILING = 0.3, 0.7
QUARANTINE = 0.5
"""A quarantined record is found at half its score (T8)."""

OWN_FIRST = 0.05
CONFIRMED = 0.03


class Warm:
    """Search and rank over records, keywords and vectors."""

    def __init__(self, records: Records, keywords: Keywords, sense: Callable[[], Sense], floor: float) -> None:
        """`sense` is asked for each question: the model may change between two."""
        self._records, self._keywords, self._sense, self._floor = records, keywords, sense, floor

    def follow(self, floor: float) -> None:
        """Abstain below this relevance from now on."""
        self._floor = floor

    def recall(
        self,
        request: Recall,
        scope: Sequence[str],
        pending: int,
        view: View | None = None,
        permits: Callable[[Record], bool] | None = None,
    ) -> Recalled:
        """The answer to a question over these pools, today or to another time: candidates by today's words (Q12).

        What `permits` does not let the asker see is dropped before anything is ranked or counted (A1).
        """
        relevance, parts = self._relevance(request, scope, past=request.include_retired or view is not None)
        records = self._records.many(relevance) if view is None else view.many(relevance)
        allowed = {
            id: record
            for id, record in records.items()
            if record.pool in scope
            and (permits is None or permits(record))
            and (view or record.status in LIVE or (request.include_retired and _past(record)))
        }
        above = [id for id in allowed if relevance[id] >= self._floor]
        ranked = sorted(
            ((self._score(allowed[id], relevance[id], parts[id]), id) for id in above),
            key=lambda pair: (-pair[0], pair[1]),
        )
        hits: list[Hit] = []
        spent = 0
        for score, id in ranked[: max(1, request.limit)]:
            cost = tokens(allowed[id].description) + tokens(allowed[id].provenance.quote)
            if hits and spent + cost > request.budget_tokens:
                break
            spent += cost
            hits.append(Hit(record=allowed[id], score=round(score, 4), parts=parts[id]))
        return Recalled(
            hits=tuple(hits),
            scope=tuple(scope),
            abstained=not hits,
            reason="" if hits else ("nothing relevant enough" if allowed else "nothing here shares a word or a sense"),
            nearest=None if hits else self._nearest(allowed, relevance),
            filtered=len(allowed) - len(hits),
            pending=pending,
            tokens=spent,
        )

    def _relevance(
        self, request: Recall, scope: Sequence[str], *, past: bool
    ) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
        by_words, possible = self._keywords.search(request.query, scope, POOL_OF_CANDIDATES, past=past)
        by_sense: dict[str, float] = {}
        vectors, encode = self._sense()
        if encode is not None:
            by_sense = dict(vectors.nearest(encode(request.query), scope, POOL_OF_CANDIDATES))
        relevance: dict[str, float] = {}
        parts: dict[str, dict[str, float]] = {}
        for id in {*by_words, *by_sense}:
            words = min(1.0, by_words.get(id, 0.0) / possible) if possible else 0.0
            cosine = by_sense.get(id, 0.0)
            sense = min(1.0, max(0.0, (cosine - COSINE_FLOOR) / (COSINE_CEILING - COSINE_FLOOR)))
            # what has no vector yet (just remembered) or any more (retired) is judged by its words alone
            has_sense = id in by_sense or (encode is not None and vectors.holds(id))
            mixed = KEYWORD_SHARE * words + (1 - KEYWORD_SHARE) * sense if has_sense else words
            relevance[id] = mixed
            parts[id] = {"words": round(words, 4), "sense": round(sense, 4), "cosine": round(cosine, 4)}
        return relevance, parts

    @staticmethod
    def _score(record: Record, relevance: float, parts: dict[str, float]) -> float:
        score = relevance + 0.05 * (record.signal.importance - 0.5)
        if record.pool == PERSONAL:
            score += OWN_FIRST
        if record.provenance.trust == "user":
            score += CONFIRMED
        if record.status == "quarantined":
            parts["quarantined"] = QUARANTINE
            score *= QUARANTINE
        return min(1.0, max(0.0, score))

    @staticmethod
    def _nearest(allowed: dict[str, Record], relevance: dict[str, float]) -> Nearest | None:
        if not allowed:
            return None
        id = max(allowed, key=lambda each: (relevance[each], each))
        return Nearest(id=id, description=allowed[id].description, score=round(relevance[id], 4))


def _past(record: Record) -> bool:
    return record.status in ("retired", "archived")
