"""The same in other words: what memd told a session and somebody there says again (W9).

Comes in: two statements. Goes out: whether the second says what the first does. Invariants: only the pair model may say
so, and only where it is sure; a number or a name that the other has not makes another statement.
"""

from __future__ import annotations

from typing import Protocol

from ..models.pair import Relation
from .words import tokens

CERTAIN = 0.9
"""How sure the pair model has to be, as a probability."""

PARAPHRASED = 0.6
"""Cosine from which it is asked whether a statement says what a record told its session."""


class PairReader(Protocol):
    """What the stages ask of the pair model."""

    def judge(self, earlier: str, later: str) -> dict[Relation, float]:
        """The probability of each label, from the most likely on."""
        ...


def says_again(words: str, told: str, reader: PairReader | None) -> bool:
    """Whether `words` say what was `told`; never where there is no reader."""
    if reader is None or _values(words) != _values(told):
        return False
    return reader.judge(told, words).get("same", 0.0) >= CERTAIN


def _values(words: str) -> set[str]:
    return {token.text.casefold() for token in tokens(words) if token.kind == "code" or token.text.isdigit()}
