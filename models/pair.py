"""The pair head: what a later statement does to an earlier one (R1, T1).

Comes in: two statements, the earlier first. Goes out: a probability for each of five labels. Invariants: the order
counts; a verdict depends on nothing but the two texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

import numpy as np

from .network import Head, softmax
from .pair_features import features

Relation = Literal["same", "refines", "replaces", "contradicts", "unrelated"]
RELATIONS: tuple[Relation, ...] = ("same", "refines", "replaces", "contradicts", "unrelated")
LONGEST = 128
"""Tokens of a statement that count."""


class PairJudge:
    """The network. Loading takes some 0.15 s and 30 MB; a pair takes about 4 ms on one thread."""

    def __init__(self, folder: Path | None = None, threads: int = 1) -> None:
        """Load the head of `folder` (default: the package's own weights). Raises `ModelMissing`."""
        self._head = Head("pair", folder, threads)

    def judge(self, earlier: str, later: str) -> dict[Relation, float]:
        """The probability of each label, from the most likely on."""
        first, second = (self._head.tokens.ids(text)[:LONGEST] for text in (earlier, later))
        row = ([*first, *second[1:]], [0] * len(first) + [1] * (len(second) - 1))
        words = np.asarray([features(earlier, later)], np.float32)
        (logits,) = self._head.run(row, words=words)
        found = zip(RELATIONS, cast("list[float]", softmax(logits).tolist()), strict=True)
        return dict(sorted(found, key=lambda pair: -pair[1]))
