"""Turn a question into a vector of the trunk's space without onnxruntime: rows of a mapped table, added up. The order
of the word pieces is lost, so it serves questions and never what is stored (both sides from the table lose a quarter of
the recall)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..protocol.errors import ModelMissing
from .registry import WEIGHTS, ModelInfo, info, remedy, require
from .tokens import WordPieces

CACHED = 512
"""Vectors that are kept, of 1.5 kB each: a recall needs that of its question three times, and those of turns again."""


class QueryTable:
    """One int8 row and one scale per word piece. Loading takes some 40 ms; may be shared between threads."""

    def __init__(self, folder: Path | None = None) -> None:
        """Map the table of `folder` (default: the package's own weights). Raises `ModelMissing` where a file is absent
        or is not the one that the manifest describes."""
        folder = WEIGHTS if folder is None else folder
        self.info: ModelInfo = info(folder)
        if self.info.queries is None:
            raise ModelMissing(f"{folder} has no query table", hint=remedy(folder))
        require(folder, (self.info.queries, self.info.tokenizer))
        self.tokens = WordPieces(folder / self.info.tokenizer, self.info.max_tokens)
        # A structured array: ("scale", float32), ("row", 384 × int8), one entry per token id.
        table = np.load(folder / self.info.queries, mmap_mode="r", allow_pickle=False)
        self._scales: NDArray[np.float32] = np.asarray(table["scale"])
        self._rows: NDArray[np.int8] = np.asarray(table["row"])
        self.encode: Callable[[str], NDArray[np.float32]] = lru_cache(CACHED)(self._encode)
        """Returns the unit vector (384,) of a text, read-only, in some 100 µs, or in less than 1 µs for one of the
        last texts. A text without words has the vector of no words."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and numbers a row."""
        return self._rows.shape

    def _encode(self, text: str) -> NDArray[np.float32]:
        ids = self.tokens.ids(text)
        summed: NDArray[np.float32] = self._scales[ids] @ self._rows[ids].astype(np.float32)
        length = np.float32(np.linalg.norm(summed))
        unit = np.divide(summed, length, dtype=np.float32)
        unit.flags.writeable = False
        return unit
