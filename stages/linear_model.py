"""Logistic regression over features of a clause: probability = 1 / (1 + exp(-(w · (x - mean) / deviation + bias)))."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..models.distiller import MODALITIES, TYPES, ClauseReading


class LinearModel(msgspec.Struct, frozen=True):
    """Weights by feature, and the mean and deviation that scale each. Models are fitted by `models/recipes/`."""

    weights: tuple[float, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    bias: float

    def probability(self, values: Sequence[float]) -> float:
        """Return the probability in [0, 1]; features that are not given count as their mean."""
        scaled = zip(values, self.weights, self.means, self.deviations, strict=False)
        logit = self.bias + sum((x - mean) / spread * weight for x, weight, mean, spread in scaled)
        return 0.5 * (1 + math.tanh(logit / 2))  # the logistic function, in a form that cannot overflow


def read_probabilities(reading: ClauseReading) -> list[float]:
    """Return what the distiller reads in a clause: each type's and modality's probability, and the salience."""
    return [
        *(reading.types[name] for name in TYPES),
        *(reading.modalities[name] for name in MODALITIES),
        reading.salience,
    ]


def path(name: str) -> Path:
    """Return the file of a model: the package's, or one in the folder that a benchmark names, whose models have not
    seen the sessions it measures on."""
    own = Path(__file__).parent / "rules" / f"{name}.json"
    other = Path(os.environ.get("MEMD_BENCH_MODELS") or own.parent) / own.name
    return other if other.exists() else own
