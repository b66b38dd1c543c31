"""Embed: turn the description, with its subject, into the vector that is searched (R2). Equal descriptions give equal
bytes, whatever they were embedded with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from .batch import Batch, step

STAGE = "embed"


class SentenceEmbedder(Protocol):
    """The trunk, as the stages use it."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit rows, one a text."""
        ...


class Embed:
    """The stage. `vector`: 384 float32 numbers of unit length as little-endian bytes."""

    def __init__(self, trunk: SentenceEmbedder) -> None:
        self._trunk = trunk

    def __call__(self, batch: Batch) -> Batch:
        if not batch.candidates:
            return batch
        lines = list(dict.fromkeys(candidate.description for candidate in batch.candidates))
        rows = dict(zip(lines, self._trunk.embed(lines).astype("<f4"), strict=True))
        embedded = (
            step(candidate, STAGE, "description to vector", vector=rows[candidate.description].tobytes())
            for candidate in batch.candidates
        )
        return msgspec.structs.replace(batch, candidates=tuple(embedded))
