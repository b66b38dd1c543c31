"""Tell whose a statement is: about the user as a person, or about the project at hand (P-17).

Subject decides, not grammar: "always answer me in German" is about the user, "I think the parser is broken" about the
project. The model sees what the distiller reads in a clause; it was fitted on authored statements
(`models/recipes/train_ownership.py`).
"""

from __future__ import annotations

from functools import cache

import msgspec

from ..models.distiller import ClauseReading
from .linear_model import LinearModel, path, read_probabilities


def features(reading: ClauseReading) -> list[float]:
    """Return the features of a clause that was read as the user's."""
    return [*reading.pooled.tolist(), *read_probabilities(reading)]


def about_user(reading: ClauseReading) -> float:
    """Return the probability in [0, 1] that a user's clause is about the user and not about the project."""
    return _model().probability(features(reading))


@cache
def _model() -> LinearModel:
    return msgspec.json.decode(path("ownership").read_bytes(), type=LinearModel)
