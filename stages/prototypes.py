"""The prototypes: sentences that show what each type of statement sounds like, as vectors of the package's own trunk.

The vectors are in `rules/prototypes.npz`, because to embed the sentences costs a new worker 0.4 s. After a change of
`rules/prototypes.toml` or of the trunk, `python -m memd.stages.prototypes` writes the file again. The file states which
sentences and which trunk its vectors are of; the vectors of other ones are not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ..models import registry
from ..models.trunk import Trunk
from .embed import SentenceEmbedder
from .rules import table

NEAREST = 3  # Prototypes whose mean cosine is the nearness to a type
FILE = Path(__file__).parent / "rules" / "prototypes.npz"
Vectors = dict[str, NDArray[np.float32]]  # Type (and `noise`) → (its sentences, 384), unit rows


class Prototypes:
    """The vectors, loaded at first use; without a file of them, embedded at first use."""

    def __init__(self, trunk: SentenceEmbedder) -> None:
        self._trunk = trunk
        self._vectors: Vectors | None = None

    def near(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """For each text: type (and `noise`) → mean cosine of its nearest prototypes, in [-1, 1]."""
        if not texts:
            return []
        if self._vectors is None:
            self._vectors = load(FILE) or embed(self._trunk)
        rows = self._trunk.embed(texts)
        cosines = [
            np.sort(rows @ vectors.T, axis=1)[:, -NEAREST:].mean(axis=1).tolist() for vectors in self._vectors.values()
        ]
        return [dict(zip(self._vectors, of_text, strict=True)) for of_text in zip(*cosines, strict=True)]


def embed(trunk: SentenceEmbedder) -> Vectors:
    """Embed the sentences."""
    sentences: dict[str, list[str]] = table("prototypes")
    return {name: trunk.embed(texts) for name, texts in sentences.items()}


def load(path: Path) -> Vectors | None:
    """Return the vectors of a file; None if it can't be read, or is of other sentences or of another trunk."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            if str(arrays["source"]) != _source():
                return None
            return {name: arrays[name] for name in table("prototypes")}
    except (OSError, ValueError, KeyError, BadZipFile):
        return None


def save(path: Path, vectors: Vectors) -> None:
    """Write the file."""
    np.savez(path, allow_pickle=False, source=np.array(_source()), **vectors)


def _source() -> str:
    """The trunk's id and the hash of the sentences."""
    return f"{registry.info().id} {sha256(repr(table('prototypes')).encode()).hexdigest()}"


if __name__ == "__main__":
    save(FILE, embed(Trunk()))
