"""The trunk: turn texts into unit rows of float32 on the CPU, so that a dot product is a cosine. onnxruntime is loaded
with the first `Trunk`, not with this module, so the daemon never carries it. Files are checked against the manifest
before they are loaded. One text at a time (the default), a vector depends on nothing but its text, on any processor to
seven digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .network import open_network
from .registry import WEIGHTS, ModelInfo, info, require
from .tokens import WordPieces


class Trunk:
    """all-MiniLM-L6-v2 in int8. Loading takes some 0.15 s and 30 MB; may be shared between threads."""

    def __init__(self, folder: Path | None = None, threads: int = 1) -> None:
        """Load the trunk of `folder` (default: the package's own weights) on `threads` threads. Raises `ModelMissing`
        where a file is absent or is not the one that the manifest describes."""
        folder = WEIGHTS if folder is None else folder
        self.info: ModelInfo = info(folder)
        require(folder, (self.info.trunk, self.info.tokenizer))
        self._session = open_network(folder / self.info.trunk, threads)
        self.tokens = WordPieces(folder / self.info.tokenizer, self.info.max_tokens)

    def embed(self, texts: Sequence[str], batch: int = 1) -> NDArray[np.float32]:
        """`texts` as an array (number of texts × 384) of unit rows, in the order given; no texts give (0, 384).

        A text counts up to its 256th token. `batch` texts of like length run together. On one thread that gains
        nothing (measured: 212 chat turns a second alone, 219 by 32; long texts are slower together), and since the
        graph scales its bytes by the largest number in a batch, it lets a text's neighbours move its vector: cosine
        0.994 on average to the vector made alone, 0.977 at worst. So leave it at 1 for what is to be stored.
        """
        out = np.empty((len(texts), self.info.dimension), np.float32)
        ids = [self.tokens.ids(text) for text in texts]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        for start in range(0, len(order), batch):
            part = order[start : start + batch]
            out[part] = self._run([ids[at] for at in part])
        return out

    def _run(self, rows: list[list[int]]) -> NDArray[np.float32]:
        shape = (len(rows), max(map(len, rows)))
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = row
            mask[at, : len(row)] = 1
        return self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
