"""The vectors that questions are compared with, and the encoder that makes a question a vector of the same model."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..projections.vectors import VectorIndexes

Encode = Callable[[str], NDArray[np.float32]]


def nearness(encode: Encode | None, sense: NDArray[np.float32] | None) -> Callable[[str], float]:
    """Return a function for the cosine of a text with an encoded question, 0 without an encoder."""
    if encode is None or sense is None:
        return lambda text: 0.0
    return lambda text: float(sense @ encode(text))


class SearchModel(NamedTuple):
    """Vectors with the encoder of their model; `encode` is None where the model has no query table, `pieces` counts the
    word pieces of a text. `is_own`: whether it is the package's own model, for whose vectors others are fitted."""

    vectors: VectorIndexes
    encode: Encode | None
    languages: tuple[str, ...] = ("en",)
    pieces: Callable[[str], int] | None = None
    is_own: bool = False
