"""An extractive summary: the points of a text that say most, in the order of the text (W12).

Greedy, by maximal marginal relevance (Carbonell and Goldstein 1998): the worth of a point times how far it is from what
is said already, by the root of its price, so that three short points come before one long one (Lin and Bilmes 2010).
Every chunk has one point first, while there is room; then the best of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from .batch import Point

SAID = 0.92
"""Cosine from which a point says what another one said."""


def choose(chunks: Sequence[Sequence[Point]], room: int, price: Callable[[Point], int]) -> tuple[Point, ...]:
    """Return the points of the summary. `chunks`: the points of each chunk; `room`: the sum of prices at most."""
    points = [(at, point) for at, chunk in enumerate(chunks) for point in chunk]
    if not points:
        return ()
    return _Greedy(points, room, price).chosen()


class _Greedy:
    """The choice so far."""

    def __init__(self, points: Sequence[tuple[int, Point]], room: int, price: Callable[[Point], int]) -> None:
        self._chunk = np.array([at for at, _ in points])
        self._points = [point for _, point in points]
        self._vectors = np.stack([np.frombuffer(point.vector, "<f4") for point in self._points])
        self._worth = np.array([point.worth for point in self._points], np.float64)
        self._prices = np.array([price(point) for point in self._points])
        self._room = room
        self._nearest = np.zeros(len(points))
        self._is_open = np.ones(len(points), bool)
        self._taken: list[int] = []

    def chosen(self) -> tuple[Point, ...]:
        waiting = set(self._chunk.tolist())
        while waiting:
            best = self._best(np.isin(self._chunk, list(waiting)))
            if best is None:
                break
            self._take(best)
            waiting.discard(int(self._chunk[best]))
        while (best := self._best(np.ones(len(self._points), bool))) is not None:
            self._take(best)
        return tuple(self._points[at] for at in sorted(self._taken))

    def _best(self, allowed: NDArray[np.bool_]) -> int | None:
        """Return the point with the most worth for what is not said yet, the first of equals; None if none fits."""
        fits = allowed & self._is_open & (self._prices <= self._room) & (self._nearest < SAID)
        if not fits.any():
            return None
        gain = np.where(fits, self._worth * (1 - np.clip(self._nearest, 0, 1)) / np.sqrt(self._prices), -1.0)
        return int(np.argmax(np.round(gain, 6)))

    def _take(self, at: int) -> None:
        self._taken.append(at)
        self._is_open[at] = False
        self._room -= int(self._prices[at])
        self._nearest = np.maximum(self._nearest, self._vectors @ self._vectors[at])


def numbered(points: Iterable[Point]) -> tuple[str, ...]:
    """Return the lines of a summary, each with the number of its passage."""
    return tuple(f"{point.words} {pointer(number)}" for number, point in enumerate(points, 1))


def pointer(number: int) -> str:
    """Return the pointer to a passage: `[§12]`."""
    return f"[§{number}]"
