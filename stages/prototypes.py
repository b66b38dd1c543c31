"""How near a clause is to sentences of a known type, by the trunk.

Comes in: clauses. Goes out: for each, the nearness to every type and to noise. Invariants: the prototypes are embedded
once per trunk, at first use; nothing depends on which clauses are asked for together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .rules import table

NEAREST = 3
"""Prototypes that a nearness is the mean of."""


class Embedder(Protocol):
    """What the stages ask of the trunk."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit rows, one a text."""
        ...


class Prototypes:
    """The authored sentences as vectors."""

    def __init__(self, trunk: Embedder) -> None:
        self._trunk = trunk
        self._sentences: dict[str, list[str]] = table("prototypes")
        self._vectors: dict[str, NDArray[np.float32]] | None = None

    def near(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """For each text: type (and `noise`) → mean cosine of its nearest prototypes, in [-1, 1]."""
        if not texts:
            return []
        if self._vectors is None:
            self._vectors = {name: self._trunk.embed(sentences) for name, sentences in self._sentences.items()}
        rows = self._trunk.embed(texts)
        found: list[dict[str, float]] = [{} for _ in texts]
        for name, vectors in self._vectors.items():
            cosines = np.sort(rows @ vectors.T, axis=1)[:, -NEAREST:].mean(axis=1)
            for at, cosine in enumerate(cosines):
                found[at][name] = float(cosine)
        return found
