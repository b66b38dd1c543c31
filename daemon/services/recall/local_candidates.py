"""Candidates from the local keyword and vector indexes (Q2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....protocol.candidates import CandidateRecord, best_first
from ...projections.ports import TextIndex
from ...projections.terms import TermQuery, TermScores
from ...projections.vector_store import Vector
from ...projections.vectors import VectorIndexes


class LocalCandidates(NamedTuple):
    """The indexes of one home, with the vectors of one model; it implements `protocol.candidates.Candidates`.

    Warm recall takes `find`, because it weighs more than a candidate holds: the weight of each term, the highest
    possible score and the unknown terms. `search` applies no access rules; its caller checks the permits.
    """

    keywords: TextIndex
    vectors: VectorIndexes

    def search(self, terms: Sequence[str], vector: bytes | None, pools: Sequence[str], k: int) -> list[CandidateRecord]:
        """Return the best candidates, as the port says."""
        sense = None if vector is None else np.frombuffer(vector, np.float32)
        words, by_sense = self.find(TermQuery(" ".join(terms)), sense, tuple(dict.fromkeys(pools)), k)
        ids = {**words.by_id, **by_sense}
        return best_first(CandidateRecord(id, words.by_id.get(id, 0.0), by_sense.get(id)) for id in ids)

    def find(
        self,
        words: TermQuery,
        sense: Vector | None,
        pools: Sequence[str],
        most: int,
        *,
        past: bool = False,
        deep: bool = False,
    ) -> tuple[TermScores, dict[str, float]]:
        """Return the scores of the best records by words, and the cosines of these and of the nearest ones; none
        without `sense`. `past`: retired and archived records have words too; `deep`: archived ones have vectors too."""
        by_words = self.keywords.search(words, pools, most, past=past)
        if sense is None:
            return by_words, {}
        by_sense = dict(self.vectors.nearest(sense, pools, most))
        if deep:
            by_sense |= self.vectors.nearest_shelved(sense, pools, most)
        by_sense |= self.vectors.cosines(sense, by_words.by_id.keys() - by_sense.keys())
        return by_words, by_sense
