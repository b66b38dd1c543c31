"""The port for the search of candidates: which records may answer a question, found in local indexes or at a hub (Q2).

Pure types: an implementation brings its own indexes, and a caller ranks what it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

EXACT = 10_000
"""Vectors of a pool up to which every implementation returns the exact nearest."""


class CandidateRecord(msgspec.Struct, frozen=True):
    """A record that may answer a question.

    `text_score`: how well its words match, only comparable within one answer; 0 if they don't, or are not among the
    best. `similarity`: the cosine with the question's vector, up to the rounding with which vectors are stored; None
    for a record, or a question, without a vector.
    """

    id: str
    text_score: float = 0.0
    similarity: float | None = None


class Candidates(Protocol):
    """The search of candidates in the records of one store."""

    def search(self, terms: Sequence[str], vector: bytes | None, pools: Sequence[str], k: int) -> list[CandidateRecord]:
        """Return the `k` records that match best by text and the `k` nearest by vector, each record once, in the order
        of `best_first`; an implementation may add further ones.

        `terms`: the words of the question as the user wrote them, in any script; the implementation stems them or
        divides them as it did the texts. `vector`: little-endian float32 numbers of unit length, by the model of the
        stored vectors; None leaves only the text. `pools`: their names; a name may repeat.

        - Only live records of these pools are returned, and no pool named means none.
        - The nearest are exact, up to that rounding, in pools of up to `EXACT` vectors. In such pools every record with
          a vector is returned if `k` is at least their number.
        - Every candidate that has a vector has its similarity, also one that was found by its words.
        - The same question to an unchanged store has the same answer. Where records tie for the last place, the store
          decides which of them it returns.
        """
        ...


def best_first(candidates: Iterable[CandidateRecord]) -> list[CandidateRecord]:
    """Return the candidates by falling text score, then by falling similarity, then by id."""
    return sorted(candidates, key=_place)


def _place(candidate: CandidateRecord) -> tuple[float, float, str]:
    similarity = candidate.similarity
    return -candidate.text_score, 2.0 if similarity is None else -similarity, candidate.id
