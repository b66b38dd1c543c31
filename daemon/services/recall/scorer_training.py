"""The scorer learnt: a small network fitted to feedback, in numpy, the same from the same feedback (Q6).

Comes in: samples. Goes out: a network, or its text. Invariants: deterministic, from the first weights on; runs in the
maintenance child; a failed task's samples weigh half already when they come.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ....protocol.fading import Sample
from .scorer import FEATURES, HIDDEN, ScorerNetwork

EPOCHS, RATE, DECAY = 400, 0.02, 1e-4
NEWEST = 20_000
"""Samples at most: the newest."""

_SHAPES = ((len(FEATURES), HIDDEN), (HIDDEN,), (HIDDEN, 1), (1,))

Numbers = NDArray[np.float64]


def trained(samples: Sequence[Sample]) -> ScorerNetwork:
    """A network fitted to samples: full-batch Adam on the weighted cross entropy, all weights at least 0.

    So more of a feature never counts against a record: two that nobody used keep the order of their similarity, whoever
    learnt from whatever else, and a few hundred samples can't teach an accident.
    """
    newest = samples[-NEWEST:]
    inputs = np.array([each.features for each in newest], np.float64)
    wanted = np.array([each.wanted for each in newest], np.float64)
    weight = np.array([each.weight for each in newest], np.float64)
    weight /= weight.sum()
    chance = np.random.default_rng(0)
    values = [np.abs(chance.standard_normal(shape)) * (0.3 if len(shape) > 1 else 0.0) for shape in _SHAPES]
    means, squares = [np.zeros(shape) for shape in _SHAPES], [np.zeros(shape) for shape in _SHAPES]
    for epoch in range(1, EPOCHS + 1):
        slopes = _slopes(values, inputs, wanted, weight)
        for place, slope in enumerate(slopes):
            means[place] = 0.9 * means[place] + 0.1 * slope
            squares[place] = 0.999 * squares[place] + 0.001 * slope * slope
            step = (means[place] / (1 - 0.9**epoch)) / (np.sqrt(squares[place] / (1 - 0.999**epoch)) + 1e-8)
            values[place] = values[place] - RATE * (step + DECAY * values[place])
            if values[place].ndim > 1:
                np.maximum(values[place], 0.0, out=values[place])
    first, first_bias, second, second_bias = (value.astype(np.float32) for value in values)
    return ScorerNetwork(first, first_bias, second, second_bias)


def _slopes(values: Sequence[Numbers], inputs: Numbers, wanted: Numbers, weight: Numbers) -> list[Numbers]:
    first, first_bias, second, second_bias = values
    hidden = np.maximum(inputs @ first + first_bias, 0.0)
    given = 1.0 / (1.0 + np.exp(-(hidden @ second + second_bias)[:, 0]))
    error = ((given - wanted) * weight)[:, None]
    back = (error @ second.T) * (hidden > 0)
    return [inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]


def encoded(network: ScorerNetwork) -> str:
    """A network as text."""
    return base64.b85encode(b"".join(value.astype("<f4").tobytes() for value in network)).decode()


def decoded(text: str) -> ScorerNetwork:
    """The network in a text. Raises ValueError where it is none."""
    numbers = np.frombuffer(base64.b85decode(text), "<f4")
    sizes = [int(np.prod(shape)) for shape in _SHAPES]
    if len(numbers) != sum(sizes):
        raise ValueError(f"a scorer cannot have {len(numbers)} parameters")
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    first, first_bias, second, second_bias = (part.reshape(s) for part, s in zip(parts, _SHAPES, strict=True))
    return ScorerNetwork(first, first_bias, second, second_bias)
