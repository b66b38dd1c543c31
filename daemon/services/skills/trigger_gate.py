"""How well a description finds the requests for which its skill was wanted (K3).

A request finds the description if that is among the nearest `NEAREST` of all texts: the description, and the requests
that asked for something else. Texts are compared by memd's own search model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..search_model import Encode

NEAREST = 3


class TriggerScore:
    """Scores descriptions against the same other requests."""

    def __init__(self, encode: Encode, others: Iterable[str]) -> None:
        self._encode = encode
        self._others = [encode(text) for text in dict.fromkeys(others)]

    def found(self, description: str, ask: str) -> float:
        """Return 1 if a request finds a description, else 0 (recall at `NEAREST` of one relevant text)."""
        query = self._encode(ask)
        own = _cosine(query, self._encode(description))
        nearer = sum(_cosine(query, other) > own for other in self._others)
        return float(nearer < NEAREST)

    def scores(self, before: str, after: str, asks: Sequence[str]) -> list[tuple[float, float]]:
        """Return the scores of requests for two descriptions."""
        return [(self.found(before, ask), self.found(after, ask)) for ask in asks]


def _cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if size else 0.0
