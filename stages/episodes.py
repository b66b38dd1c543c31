"""Generalise episodes of different times to one clause without its time and place (T11). No word is added or moved. A
clause that denies, commands or makes a condition stays whole: "on Fridays" must not become "always"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .dates import TIME_PHRASE, names_time, valid_from

SHORTEST = 4  # Words that are left at least
_WHERE = r"(?:on|in|at|during|by|near|from|around|after|before)"
_OPENING = re.compile(rf"^(?P<phrase>{_WHERE}\b[^,;:]{{0,60}}),\s+(?P<rest>\S.*)$", re.I | re.S)
_CLOSING = re.compile(rf"^(?P<rest>.*\S)\s+(?P<phrase>{_WHERE}\b[^,;:.!?]{{0,40}})(?P<end>[.!?]?)$", re.I | re.S)
_KEPT = re.compile(
    r"\b(?:not|never|no|nobody|nothing|unless|if|without|except|only|until|must|should|shall|may|can|will"
    r"|always|every|cannot)\b|n't\b|n’t\b",
    re.I,
)
_REASON = re.compile(r"\b(?:because|when)\b", re.I)
# What a time or place belongs to: "the meeting was yesterday", "the deploy of last Friday", "since Monday".
_OWNER = re.compile(
    r"\b(?:is|are|was|were|be|been|being|the|a|an|of|to|for|until|since|from|by|before|after)\W*$", re.I
)
_WORD = re.compile(r"[^\W_]+")
_FUNCTION = frozenset("on in at during by near from around after before the a an of to and".split())


class Telling(NamedTuple):
    """A clause of an episode, when somebody said it (RFC 3339), and its language."""

    clause: str
    at: str
    language: str = "en"


def general(clause: str, language: str, group: Sequence[Telling]) -> str:
    """`clause` without the time that differs between the tellings of its group, and without the phrases of place at its
    ends that most of them do not hold; "" if a time remains in it."""
    if not _KEPT.search(clause):
        times = [time for telling in group if (time := valid_from(*telling))]
        if len(set(times)) > 1 or 2 * len(times) < len(group):
            clause = _without_times(clause)
        words = [_content(telling.clause) for telling in group]
        while not _REASON.search(clause) and (shorter := _without_ends(clause, words)) != clause:
            clause = shorter
    return "" if names_time(clause, language) else clause


def _without_times(clause: str) -> str:
    """`clause` without the phrases that say when it happened, where enough words are left."""
    for hit in reversed(list(TIME_PHRASE.finditer(clause))):
        before, after = clause[: hit.start()], clause[hit.end() :]
        if _OWNER.search(before):
            continue
        rest = f"{before.rstrip()} {after.lstrip(' ,')}" if before.strip() else after.lstrip(" ,")
        rest = re.sub(r"\s+(?=[.,;:!?]|$)", "", rest)
        if len(_WORD.findall(rest)) >= SHORTEST:
            clause = rest if before.strip() else rest[:1].upper() + rest[1:]
    return clause


def _without_ends(clause: str, others: Sequence[frozenset[str]]) -> str:
    """`clause` without an opening and a closing phrase that varies, where enough words are left."""
    for pattern in (_OPENING, _CLOSING):
        hit = pattern.match(clause)
        if hit is None or not _varies(hit["phrase"], others):
            continue
        if pattern is _CLOSING and _OWNER.search(hit["rest"]):
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
