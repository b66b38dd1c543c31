"""Corrects slips of the pen in a question: words that no text of the scope has, by words of the nearest records (Q2).

Invariants: a word that the search model knows as one piece is never changed, because it is a word of its own; so is a
word that any text of the scope has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from ...projections.tokens import TermTokens

SHORTEST = 5
"""Letters of the shortest word that is corrected: shorter ones are near too many others."""

_WORD = re.compile(r"(?<![\w./:@-])[^\W\d_]+(?![\w/:@-]|\.\w)")


class KnownText(NamedTuple):
    """A text and its terms."""

    text: str
    terms: Collection[str]


def corrected(question: str, unknown: Collection[str], known: Iterable[KnownText], pieces: Callable[[str], int]) -> str:
    """Return a question with each misspelt word replaced by the nearest word of the known texts; the question itself if
    there is none. `unknown`: its terms that no text has; `known`: texts, best first; `pieces`: counts the word pieces
    of a text."""
    tokens, texts = TermTokens(), list(known)

    def right(match: re.Match[str]) -> str:
        word = match.group()
        terms = tokens.query(word)
        if len(word) < SHORTEST or len(terms) != 1 or terms[0] not in unknown or pieces(word) == 1:
            return word
        near = ((text.text, term) for text in texts for term in text.terms if is_slip(terms[0], term))
        text, term = next(near, ("", ""))
        words = (other.group() for other in _WORD.finditer(text))
        return next((other for other in words if tokens.query(other) == [term]), word)

    return _WORD.sub(right, question)


def is_slip(one: str, other: str) -> bool:
    """Whether two words of one first letter differ by one letter more, less or another, or by two exchanged ones (the
    distance of Damerau, 1964)."""
    if one[:1] != other[:1] or abs(len(one) - len(other)) > 1 or len(other) < SHORTEST - 1:
        return False
    start = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        return len(one) != len(other)
    one, other = one[start:], other[start:]
    same = one[1:] == other[1:] or one[1:] == other or one == other[1:]
    return same or (one[1::-1] == other[:2] and one[2:] == other[2:])
