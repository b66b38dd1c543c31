"""Embed: the description, with its subject, becomes the vector that is searched (R2).

Comes in: enriched candidates. Goes out: the same with 384 float32 numbers of unit length as little-endian bytes.
Invariant: equal descriptions give equal bytes, whatever they were embedded with.
"""

from __future__ import annotations

import msgspec

from .batch import Batch, step
from .prototypes import Embedder

STAGE = "embed"


class Embed:
    """The stage."""

    def __init__(self, trunk: Embedder) -> None:
        self._trunk = trunk

    def __call__(self, batch: Batch) -> Batch:
        if not batch.candidates:
            return batch
        lines = list(dict.fromkeys(one.description for one in batch.candidates))
        rows = dict(zip(lines, self._trunk.embed(lines).astype("<f4"), strict=True))
        candidates = tuple(
            step(one, STAGE, "description to vector", vector=rows[one.description].tobytes())
            for one in batch.candidates
        )
        return msgspec.structs.replace(batch, candidates=candidates)
