"""How well a text answers a question by itself: the share of the question's information that it has, and its meaning.

Invariants: pure, except for the cache of terms; records and turns are measured on the same scale, from 0 to 1.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ....protocol.record import Record
from ....stages.categories import categories
from ...projections.keywords import words
from ...projections.tokens import TermTokens
from .evidence import Proficiency

FAR, CLOSE = 0.1, 0.7
"""The range in which a cosine measures how well a text answers."""

INFORMATIVE = 4
"""A text that has as much of a question's information as so many of its terms, the most informative ones, covers it: a
long question tells a story around what it asks."""

COVERED = 0.5
"""Weight of the covered information; the rest is the cosine's."""

KNOWN = 32_768
"""Records whose terms are remembered, in at most some 15 MB."""


class Asked(NamedTuple):
    """What a question asks for: the weight of each of its terms (inverse document frequency), and how far its language
    is known to the model."""

    weights: Mapping[str, float]
    known: Proficiency

    def covered(self, terms: Collection[str]) -> float:
        """Return the share of the question's information that these terms have, in [0, 1]."""
        enough = sum(sorted(self.weights.values())[-INFORMATIVE:])
        found = sum(weight for term, weight in self.weights.items() if term in terms)
        return min(1.0, found / enough) if enough else 0.0

    def answered(self, terms: Collection[str], cosine: float) -> float:
        """Return how well a text answers, in [0, 1]. `cosine`: 0 for a text without a vector: its words count alone."""
        covered = min(1.0, self.covered(terms) * self.known.words)
        if not cosine:
            return covered
        share = (1 - COVERED) * self.known.trust
        return (1 - share) * covered + share * min(1.0, max(0.0, (cosine - FAR) / (CLOSE - FAR)))


class RecordTerms:
    """The terms of records, with the category words of what they name. Any thread may ask."""

    def __init__(self) -> None:
        self._tokens, self._lock = TermTokens(), threading.Lock()
        self._known: dict[int, tuple[str, ...]] = {}
        """By the hash of a text; a set would take ten times the memory."""

    def of(self, record: Record) -> frozenset[str]:
        text = words(record)
        terms = self._known.get(key := hash(text))
        if terms is None:
            if len(self._known) >= KNOWN:
                self._known.clear()
            terms = self._known[key] = tuple(self._read(text))
        return frozenset(terms)

    def _read(self, text: str) -> frozenset[str]:
        with self._lock:
            return frozenset(self._tokens.document(f"{text}\n{' '.join(categories(text))}"))
