"""Topics: what vectors are about, in groups, each with the words that set it apart, for `memd topics` and
the categories of a large input (W12). The topics of the map are the names that records have in common (`services/map`).

Pure and deterministic: the same vectors and texts in the same order give the same topics. Groups come from k-means on
unit vectors; the first centre is the vector nearest to the mean, each next one the vector farthest from all centres.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST, FEWEST = 8, 2
ROUNDS = 25
WORDS = 3
"""Words of a label."""

_WORD = re.compile(r"[^\W\d_][\w'-]{2,}")


class TopicGroup(NamedTuple):
    """A group: its label, and the places of its members, the most central one first."""

    label: str
    members: tuple[int, ...]


def topics(vectors: NDArray[np.float32], texts: Sequence[str], most: int = MOST) -> tuple[TopicGroup, ...]:
    """Return the topics of texts by their unit vectors, the largest first; no two have the same label."""
    if not texts:
        return ()
    groups = _groups(vectors.astype(np.float64), max(1, min(most, round(sqrt(len(texts) / 2)))))
    words = [_words(text) for text in texts]
    everywhere = Counter(word for row in words for word in row)
    labels: dict[str, int] = {}
    named: list[TopicGroup] = []
    for members in groups:
        label = _label([words[at] for at in members], everywhere, len(texts))
        labels[label] = labels.get(label, 0) + 1
        named.append(TopicGroup(label if labels[label] == 1 else f"{label} {labels[label]}", members))
    return tuple(named)


def _groups(vectors: NDArray[np.float64], number: int) -> list[tuple[int, ...]]:
    centres = _first_centres(vectors, number)
    of = np.zeros(len(vectors), int)
    for _ in range(ROUNDS):
        nearest = np.argmax(np.round(vectors @ centres.T, 9), axis=1)
        if (nearest == of).all() and _ > 0:
            break
        of = nearest
        for at in range(len(centres)):
            if (of == at).any():
                mean = vectors[of == at].sum(axis=0)
                centres[at] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    groups: list[tuple[int, ...]] = []
    nearness = _rounded(vectors @ centres.T)
    for at in range(len(centres)):
        members: list[int] = np.flatnonzero(of == at).tolist()
        groups.append(tuple(sorted(members, key=lambda member, at=at: (-float(nearness[member, at]), member))))
    return sorted(filter(None, groups), key=lambda members: (-len(members), min(members)))


def _first_centres(vectors: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    chosen = [int(np.argmax(_rounded(vectors @ vectors.mean(axis=0))))]
    nearest: NDArray[np.float64] = vectors @ vectors[chosen[0]]
    while len(chosen) < number:
        farthest = int(np.argmin(np.round(nearest, 9)))
        if farthest in chosen:
            break
        chosen.append(farthest)
        nearest = np.maximum(nearest, vectors @ vectors[farthest])
    return vectors[chosen].copy()


def _rounded(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cosines without the last digits, in which machines differ."""
    return np.round(cosines, 9)


def _words(text: str) -> dict[str, str]:
    """Return the content words of a text: stem to the word as it stands first."""
    from ...stages.words import STOP, stem  # late: a start needs no stems

    words: dict[str, str] = {}
    for word in _WORD.findall(text):
        if word.lower() not in STOP:
            words.setdefault(stem(word.lower()), word.lower())
    return words


def _label(rows: Sequence[dict[str, str]], everywhere: Counter[str], total: int) -> str:
    """Return the words that are frequent in a group and rare outside of it."""
    inside = Counter(word for row in rows for word in row)
    least = 2 if len(rows) > 2 else 1
    scores = {
        word: count / len(rows) * log((count / len(rows) + 0.05) / ((everywhere[word] - count) / total + 0.05) + 1)
        for word, count in inside.items()
        if count >= least
    }
    best = sorted(scores, key=lambda word: (-round(scores[word], 9), word))[:WORDS]
    forms = {word: Counter(row[word] for row in rows if word in row) for word in best}
    written = (min(forms[word], key=lambda form: (-forms[word][form], form)) for word in best)
    return ", ".join(written) or "other"
