"""Weights of evidence, fitted: a listwise softmax over candidates, by gradient (ListNet; Cao et al. 2007).

Comes in: questions, each with the parts of its candidates and which of them answer. Goes out: a weight for each part.
Invariants: deterministic; a question whose answer is no candidate teaches nothing; fitted on other conversations than
those it is tried on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PARTS = ("words", "sense", "before", "after", "reply", "named", "when", "graph", "size", "asks")
STEPS, RATE, DECAY = 120, 0.3, 1e-3


class Listed(NamedTuple):
    """A question's candidates: parts (candidates × parts), names in the same order, which of them answer."""

    group: int
    category: int
    parts: NDArray[np.float64]
    names: tuple[str, ...]
    evidence: frozenset[str]

    def rows(self) -> list[int]:
        """The places of the answers."""
        return [place for place, name in enumerate(self.names) if name in self.evidence]


def fitted(lists: Sequence[Listed], columns: Sequence[int]) -> NDArray[np.float64]:
    """A weight a column, by Adam on the cross entropy of each list."""
    import numpy as np

    samples = [(each.parts[:, columns], rows) for each in lists if (rows := each.rows())]
    weights = np.zeros(len(columns))
    mean, square = np.zeros(len(columns)), np.zeros(len(columns))
    for step in range(1, STEPS + 1):
        slope = DECAY * len(samples) * weights
        for parts, rows in samples:
            scores = parts @ weights
            shares = np.exp(scores - scores.max())
            slope += (shares / shares.sum()) @ parts - parts[rows].mean(axis=0)
        slope /= len(samples)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope * slope
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def ranked(listed: Listed, columns: Sequence[int], weights: NDArray[np.float64]) -> list[str]:
    """The candidates' names, best first."""
    import numpy as np

    scores = listed.parts[:, columns] @ weights
    return [listed.names[place] for place in np.argsort(-scores, kind="stable")]


def recall_at(names: Sequence[str], evidence: frozenset[str], count: int = 10) -> float:
    """The share of the evidence among the first so many."""
    return len(evidence.intersection(names[:count])) / len(evidence)


def reciprocal_rank(names: Sequence[str], evidence: frozenset[str]) -> float:
    """One over the place of the first that answers; 0 where none does."""
    return next((1.0 / place for place, name in enumerate(names, 1) if name in evidence), 0.0)
