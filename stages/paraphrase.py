"""The same in other words: what memd told a session and somebody there says again (W9).

Comes in: two statements. Goes out: whether the second says what the first does. Invariants: the pair model says so, or
whoever says it begins by agreeing; a number, a name or a piece of code that the other has not makes another statement.
"""

from __future__ import annotations

import re
from typing import Protocol

from ..models.pair import Relation
from .echoes import TURN, words_of
from .words import tokens

CERTAIN = 0.9
"""How sure the pair model has to be of what it says about any two statements, as a probability."""

TOLD = 0.8
"""How sure it has to be that words say again what their own session was told. Of 320 held-out pairs, 40 of them
paraphrases, .8 finds 35 and takes 7 of the other 280 for one; .5 finds 38 and takes 11."""

PARAPHRASED = 0.5
"""Cosine from which it is asked whether a statement says what a record told its session."""

_AGREEING = re.compile(
    r"(?:yes|yeah|yep|right|exactly|correct|sure|indeed|agreed|of course|true|as (?:always|before|ever|you know)|"
    r"as i said|you know me|like i said|ok(?:ay)?|ja|genau|stimmt|richtig|klar)\b[ ,.:;!]",
    re.IGNORECASE,
)


class PairReader(Protocol):
    """What the stages ask of the pair model."""

    def judge(self, earlier: str, later: str) -> dict[Relation, float]:
        """The probability of each label, from the most likely on."""
        ...


def says_again(words: str, told: str, reader: PairReader | None) -> bool:
    """Whether `words` say what was `told`; never where there is no reader.

    Who agrees and names nothing new says it again, however freely: there the model has to see no addition, no more.
    """
    if reader is None or _values(words) != _values(told):
        return False
    labels = reader.judge(told, words)
    if labels.get("same", 0.0) >= TOLD:
        return True
    agreed = _AGREEING.match(words)
    if not agreed or not TURN.isdisjoint(words_of(words)) or next(iter(labels)) == "refines":
        return False
    return _names(words[agreed.end() :]) <= {token.text.casefold() for token in tokens(told)}


def _values(words: str) -> set[str]:
    return {token.text.casefold() for token in tokens(words) if token.kind == "code" or token.text.isdigit()}


def _names(words: str) -> set[str]:
    """What is written with a capital letter inside of a sentence."""
    found = tokens(words)[1:]
    return {token.text.casefold() for token in found if token.kind == "word" and token.text[0].isupper()}
