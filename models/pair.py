"""The pair head: how a later statement changes an earlier one (R1, T1). The order counts."""

from __future__ import annotations

import re
from typing import Literal, get_args

import numpy as np

from .network import Head, ranked
from .pair_features import features

Relation = Literal["same", "refines", "replaces", "contradicts", "unrelated"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
LONGEST = 128  # Tokens of a statement that count
# Word pieces from which a word is a name that the model never met: it sees syllables, and reads two such names as a
# change of one (17 of 200 services with made-up names were retired for another).
UNKNOWN = 4
_WORD = re.compile(r"[^\W\d_]+")


class PairJudge(Head):
    """The network. A pair takes about 4 ms on one thread."""

    HEAD = "pair"

    def judge(self, earlier: str, later: str) -> dict[Relation, float]:
        """The probability of each label, from the most likely on; "unrelated" where each names what the other does not,
        in a word that the model does not know."""
        mine, other = self._unknown(earlier), self._unknown(later)
        if mine - other and other - mine:
            return {"unrelated": 1.0, **dict.fromkeys(RELATIONS[:-1], 0.0)}
        first, second = (self.tokens.ids(text)[:LONGEST] for text in (earlier, later))
        row = ([*first, *second[1:]], [0] * len(first) + [1] * (len(second) - 1))
        words = np.asarray([features(earlier, later)], np.float32)
        (logits,) = self._read(row, words=words)
        return ranked(RELATIONS, logits)

    def _unknown(self, text: str) -> set[str]:
        words = {word.lower() for word in _WORD.findall(text)}
        return {word for word in words if len(word) >= UNKNOWN and len(self.tokens.ids(word)) - 2 >= UNKNOWN}
