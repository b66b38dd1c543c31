"""Tell the type of a clause, and whether it is worth keeping at all (P-5).

The model sees what the distiller reads in a clause, its cue words, length and heading. It was fitted on labelled
clauses of real and authored sessions and on authored statements (`models/recipes/train_types.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from ..models.distiller import ClauseReading
from .clauses import Clause
from .linear_model import LinearModel, path, read_probabilities
from .sections import headed

TYPES = ("fact", "preference", "decision", "convention", "lesson", "commitment", "event", "procedure")
IDLE = "idle"
"""What nobody looks for later: requests, questions, narration."""
ANNOUNCED = ("decision", "convention", "lesson", "procedure")
"""Types that a heading may announce."""


class TypeModel(msgspec.Struct, frozen=True):
    """For each type, and for `IDLE`, weights and bias against all others; the features are scaled alike for all."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    weights: dict[str, tuple[float, ...]]
    biases: dict[str, float]

    def probabilities(self, values: Sequence[float]) -> dict[str, float]:
        """Return the probability in [0, 1] of each type, and of `IDLE`; they need not add up to 1."""
        return {
            name: LinearModel(weights, self.means, self.deviations, self.biases[name]).probability(values)
            for name, weights in self.weights.items()
        }


def features(clause: Clause, reading: ClauseReading, cued: Mapping[str, float], is_user: bool) -> list[float]:
    """Return the features of a clause. `cued`: how strongly its cue words speak for each type."""
    words, announced = clause.text, headed(clause)
    length = math.log1p(len(words))
    form = (is_user, "?" in words[-3:], "`" in words, length, is_user * length, clause.listed, bool(clause.heading))
    return [
        *reading.pooled.tolist(),
        *read_probabilities(reading),
        *map(float, form),
        *(float(announced == name) for name in ANNOUNCED),
        *(cued.get(name, 0.0) for name in ("identity", *TYPES)),
    ]


def probabilities(clause: Clause, reading: ClauseReading, cued: Mapping[str, float], is_user: bool) -> dict[str, float]:
    """Return the probability of each type of a clause, and of `IDLE`."""
    return _model().probabilities(features(clause, reading, cued, is_user))


@cache
def _model() -> TypeModel:
    return msgspec.json.decode(path("types").read_bytes(), type=TypeModel)
