"""Select clauses: the probability that a careful colleague would want a clause remembered (P-5).

The model sees where a clause stands, how long it is, who says it, and what the distiller reads in it. It was fitted on
real sessions with gold lists and on authored ones (`models/recipes/train_selection.py`). Word rules for requests,
remarks and reports were tried as features too, and changed nothing.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from ..models.distiller import ClauseReading
from .clauses import Clause
from .linear_model import LinearModel, path, read_probabilities

Tier = Literal["believed", "noted", ""]
"""How far a clause is trusted: it may stand in the profile; it is found and marked; it is left out."""


class Place(NamedTuple):
    """Where a clause stands: number `at` of `clauses` of a turn, whose clauses have `characters` in all."""

    is_user: bool
    at: int
    clauses: int
    characters: int


class Selection(LinearModel, frozen=True):
    """The model, and the least probability of each tier."""

    believed: float
    noted: float

    def tier(self, probability: float) -> Tier:
        """Return the tier of a user's clause."""
        return "believed" if probability >= self.believed else "noted" if probability >= self.noted else ""


def features(place: Place, clause: Clause, reading: ClauseReading | None) -> list[float]:
    """Return the features of a clause. Without a reading (another language) only those of its form."""
    words = clause.text
    count, marks = math.log1p(len(words.split())), words.count("`")
    form = (
        place.is_user,
        place.at == 0,
        place.at == place.clauses - 1,
        clause.listed,
        math.log1p(place.clauses),
        math.log1p(place.at),
        count,
        math.log1p(len(words)),
        math.log1p(place.characters),
        "?" in words[-3:],
        marks > 0,
        marks / 10,
        place.is_user * count,
        place.is_user * math.log1p(place.characters),
    )
    return [*map(float, form), *(read_probabilities(reading) if reading else ())]


@cache
def selection() -> Selection:
    """Return the model."""
    return msgspec.json.decode(path("selection").read_bytes(), type=Selection)
