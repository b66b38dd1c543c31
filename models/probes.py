"""Check by use whether memd can search with a folder of weights; it loads onnxruntime, so the daemon uses a child. A
model that passes gives unit vectors of its dimension, the same each time, and has a query table of the same space: a
table of another trunk would find nothing without any error (P-14)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .query import QueryTable
from .registry import ModelInfo, info, verify
from .trunk import Trunk

# A statement, the same in other words, and one of something else.
PROBES = (
    "We keep the build logs for thirty days.",
    "Build logs are kept for thirty days, then they go.",
    "My daughter is afraid of thunderstorms.",
)

PAIRS = ((0, 1), (0, 2), (1, 2))
NEAR = 0.02  # How far a cosine may lie from the one in the manifest: processors round int8 differently


def problems_of(folder: Path) -> list[str]:
    """What is wrong with the model in `folder`, empty if nothing is; takes about a second. Raises ModelMissing where
    the manifest can't be read."""
    model = info(folder)
    if problems := verify(folder):
        return problems
    if model.queries is None:
        return ["the manifest names no query table: questions could not be compared with what is stored"]
    try:
        return _used(folder, model, model.queries)
    except Exception as error:  # of whatever library the file went to: it is the file that is no model
        return [f"the files are those of the manifest, but can't be used: {type(error).__name__}: {error}"[:300]]


def _used(folder: Path, model: ModelInfo, queries: str) -> list[str]:
    table = QueryTable(folder)
    if table.shape != (wanted := (table.tokens.pieces, model.dimension)):
        return [f"{queries}: {' × '.join(map(str, table.shape))} numbers, {' × '.join(map(str, wanted))} expected"]
    trunk = Trunk(folder)
    rows = trunk.embed(PROBES)
    if not np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3):
        return [f"{model.trunk}: its vectors are not of unit length"]
    if not np.array_equal(rows, trunk.embed(PROBES[::-1])[::-1]):
        return [f"{model.trunk}: the same text does not give the same vector"]
    problems: list[str] = []
    cosines = [float(rows[left] @ rows[right]) for left, right in PAIRS]
    if model.probes is not None and not np.allclose(cosines, model.probes, atol=NEAR):
        problems.append(f"{model.trunk}: {_told(cosines)} between the probes, the manifest says {_told(model.probes)}")
    if cosines[0] <= cosines[1]:
        problems.append(f"{model.trunk}: a sentence is no nearer to its paraphrase than to another subject")
    if not _fits(table, rows):
        problems.append(f"{queries}: its questions do not lie near the trunk's answers: it belongs to another trunk")
    return problems


def _fits(table: QueryTable, rows: NDArray[np.float32]) -> bool:
    """Whether the table tells a probe from the one of another subject at least half as clearly as the trunk does."""
    by_table, by_trunk = np.stack([table.encode(probe) for probe in PROBES]) @ rows.T, rows @ rows.T
    return all(
        by_table[at, at] - by_table[at, other] >= (by_trunk[at, at] - by_trunk[at, other]) / 2
        for at, other in ((0, 2), (2, 0))
    )


def _told(cosines: tuple[float, ...] | list[float]) -> str:
    return ", ".join(f"{cosine:.3f}" for cosine in cosines)
