"""Generalise episodes of different times to one clause without its time and place (T11). No word is added or moved. A
clause that denies, commands or makes a condition stays whole: "on Fridays" must not become "always"."""

from __future__ import annotations

import re
from collections.abc import Sequence

SHORTEST = 4  # Words that are left at least
_WHEN_OR_WHERE = (
    r"(?:on|in|at|during|since|by|near|from|around|after|before|last|this|next|yesterday|to(?:day|night|morrow))"
)
_OPENING = re.compile(rf"^(?P<phrase>{_WHEN_OR_WHERE}\b[^,;:]{{0,60}}),\s+(?P<rest>\S.*)$", re.I | re.S)
_CLOSING = re.compile(
    rf"^(?P<rest>.*\S)\s+(?P<phrase>{_WHEN_OR_WHERE}\b[^,;:.!?]{{0,40}})(?P<end>[.!?]?)$", re.I | re.S
)
_KEPT = re.compile(
    r"\b(?:not|never|no|nobody|nothing|unless|if|without|except|only|until|when|because|must|should|shall|may|can|will"
    r"|always|every|cannot)\b|n't\b|n’t\b",
    re.I,
)
_WORD = re.compile(r"[^\W_]+")
_FUNCTION = frozenset(
    "on in at during since by near from around after before last this next the a an of to and".split()
)


def general(clause: str, others: Sequence[str]) -> str:
    """`clause` without the phrases of time and place at its ends that most of the others do not hold."""
    if _KEPT.search(clause):
        return clause
    words = [_content(other) for other in others]
    while (shorter := _without_ends(clause, words)) != clause:
        clause = shorter
    return clause


def _without_ends(clause: str, others: Sequence[frozenset[str]]) -> str:
    """`clause` without an opening and a closing phrase that varies, where enough words are left."""
    for pattern in (_OPENING, _CLOSING):
        hit = pattern.match(clause)
        if hit is None or not _varies(hit["phrase"], others):
            continue
        rest = hit["rest"] + (hit["end"] if pattern is _CLOSING else "")
        if len(_WORD.findall(rest)) >= SHORTEST:
            clause = rest[:1].upper() + rest[1:] if pattern is _OPENING else rest
    return clause


def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.casefold()) if word not in _FUNCTION)


def _varies(phrase: str, others: Sequence[frozenset[str]]) -> bool:
    """Whether a word of the phrase is in fewer than half of the others."""
    return any(2 * sum(word in other for other in others) < len(others) for word in _content(phrase))
