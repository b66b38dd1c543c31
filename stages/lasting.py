"""Tell whether a statement is a rule or wish that holds from now on, or a task, fact, question or finding (G3).

The model sees what the distiller reads in a statement as the user's; it was fitted on what invented developers say
(`models/recipes/train_lasting.py`).
"""

from __future__ import annotations

from functools import cache

import msgspec

from ..models.distiller import ClauseReading
from .linear_model import LinearModel, path, read_probabilities


def features(reading: ClauseReading) -> list[float]:
    """Return the features of a statement that was read as the user's."""
    return [*reading.pooled.tolist(), *read_probabilities(reading)]


def lasting(reading: ClauseReading) -> float:
    """Return the probability in [0, 1] that a statement holds from now on."""
    return _model().probability(features(reading))


@cache
def _model() -> LinearModel:
    return msgspec.json.decode(path("lasting").read_bytes(), type=LinearModel)
