"""The same-rule head: whether two statements of different conversations state one lasting rule (G3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from .network import Head

ENDS = 300
"""Characters of the turn before a statement that are read."""

WORDS, BEFORE, TURN = 44, 24, 44
"""Tokens that count: of the statement, of the end of the turn before it, of its own turn."""

Parts = tuple[list[int], list[int]]


class ComparedStatement(Protocol):
    """A statement, the turn that it is from, and what was said before it."""

    @property
    def words(self) -> str: ...
    @property
    def turn(self) -> str: ...
    @property
    def before(self) -> str: ...


class SameRuleJudge(Head):
    """The network. A pair takes about 16 ms on one thread."""

    HEAD = "same_rule"

    def judge(self, first: ComparedStatement, second: ComparedStatement) -> float:
        """Return the probability that two statements state one rule, whichever comes first."""
        parts = self._parts(first), self._parts(second)
        logit = (self._logit(*parts) + self._logit(*reversed(parts))) / 2
        return float(1.0 / (1.0 + np.exp(-logit)))

    def _logit(self, first: Parts, second: Parts) -> float:
        start, end = self.tokens.ids("")
        ids, segments = [start], [0]
        for place, part in enumerate((*first, *second)):
            ids += [*part, end]
            segments += [place] * (len(part) + 1)
        (logit,) = self._read((ids, segments))
        return float(logit)

    def judge_all(self, pairs: Sequence[tuple[ComparedStatement, ComparedStatement]]) -> list[float]:
        """Return the probability that each pair states one rule."""
        return [self.judge(first, second) for first, second in pairs]

    def _parts(self, told: ComparedStatement) -> Parts:
        """Return the tokens of a statement, and those of its context."""
        words, turn, before = (self.tokens.ids(text)[1:-1] for text in (told.words, told.turn, told.before[-ENDS:]))
        return words[:WORDS], [*before[-BEFORE:], *turn[:TURN]]
