"""The scorer: nine features of a relevant record become one score, linear at first, learned from feedback later (Q6).

Invariants: a score stays within 0.12 of the similarity, so nothing lifts a record above one that is 0.25 more similar;
the features are fixed and only their combination is learned; training is deterministic and runs in the maintenance
child; no clock is read.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....protocol.fading import Sample
from ....protocol.instant import micros
from ....protocol.record import Record
from ...projections.lines import PRINCIPLE

FEATURES = tuple("similarity strength strength_here used recency impact tags principle perspective".split())
"""In this order, each in [0, 1] (S3)."""

HIDDEN = 16
LINEAR = np.array((0.40, 0.40, 0.0, 0.0, 0.20, 0.0, 0.0, 0.0, 0.0), np.float32)
LEAD = 0.12
SAMPLES = 100
"""With fewer samples of feedback the score is linear."""

DAY = 86_400_000_000
HALF_LIFE_DAYS = {"stable": 365.0, "semi": 90.0, "situational": 14.0}
"""Half-life of recency by volatility (T2)."""

IMPACT = 2.0
"""The impact that counts one half: one report that the record helped (T4)."""

OWN_FIRST, CONFIRMED, WEIGHTY = 0.05, 0.03, 0.05
"""Bonus of the user's own facts (P2), of what the user said (P-19), and of importance."""


class ScorerNetwork(NamedTuple):
    """A learned scorer: 9 → 16 → 1, ReLU, sigmoid."""

    first: NDArray[np.float32]
    first_bias: NDArray[np.float32]
    second: NDArray[np.float32]
    second_bias: NDArray[np.float32]

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        hidden = np.maximum(features @ self.first + self.first_bias, 0.0)
        return (1.0 / (1.0 + np.exp(-(hidden @ self.second + self.second_bias)[:, 0]))).astype(np.float32)


def features(record: Record, similarity: float, words: frozenset[str], perspective: str, now: int) -> tuple[float, ...]:
    """Return the features of a record for a question. `now` in microseconds."""
    signal = record.signal
    strength = signal.strength / (1 + signal.strength)
    own = signal.strength_by.get(perspective, signal.strength)
    last = max(signal.last_access, record.learned_at or micros(record.provenance.said_at))
    days = max(0, now - last) / DAY
    impact = max(0.0, signal.impact)
    tags = {tag.lower() for tag in record.tags[1:]} if len(record.tags) > 1 else ()
    return (
        similarity,
        strength,
        own / (1 + own),
        min(1.0, signal.access_count / max(1, signal.candidate_count)),
        math.exp(-math.log(2) * days / HALF_LIFE_DAYS[record.volatility]),
        impact / (IMPACT + impact),
        len(words.intersection(tags)) / len(tags) if tags else 0.0,
        float(PRINCIPLE in record.tags),
        float(bool(perspective) and perspective in record.learnings),
    )


def scored(rows: Sequence[tuple[float, ...]], network: ScorerNetwork | None) -> list[float]:
    """Return the linear scores, moved by how much likelier than the average the network finds each record's use."""
    if not rows:
        return []
    table = np.array(rows, np.float32)
    linear = LINEAR @ table.T
    if network is None:
        return linear.tolist()
    likely = network.scores(table)
    return (linear + likely - likely.mean()).tolist()


def final(similarity: float, priority: float, standing: float) -> float:
    """Move the similarity by at most `LEAD` towards the priority and the standing of a record."""
    moved = max(-LEAD, min(LEAD, priority + standing - similarity))
    return max(0.0, min(1.0, similarity + moved))


def standing(record: Record, own: bool) -> float:
    """Return the bonus of a record over others that are as relevant."""
    confirmed = record.provenance.trust == "user" or record.is_confirmed
    return OWN_FIRST * own + CONFIRMED * confirmed + WEIGHTY * (record.signal.importance - 0.5)


EPOCHS, RATE, DECAY = 400, 0.02, 1e-4
NEWEST = 20_000
"""Most samples: the newest."""

_SHAPES = ((len(FEATURES), HIDDEN), (HIDDEN,), (HIDDEN, 1), (1,))

Numbers = NDArray[np.float64]


def trained(samples: Sequence[Sample]) -> ScorerNetwork:
    """Fit a network to samples: full-batch Adam on the weighted cross entropy, all weights at least 0.

    More of a feature therefore never counts against a record: two unused records keep the order of their similarity,
    and a few hundred samples cannot teach an accident.
    """
    newest = samples[-NEWEST:]
    inputs = np.array([sample.features for sample in newest], np.float64)
    wanted = np.array([sample.wanted for sample in newest], np.float64)
    weight = np.array([sample.weight for sample in newest], np.float64)
    weight /= weight.sum()
    generator = np.random.default_rng(0)
    values = [np.abs(generator.standard_normal(shape)) * (0.3 if len(shape) > 1 else 0.0) for shape in _SHAPES]
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
    output = 1.0 / (1.0 + np.exp(-(hidden @ second + second_bias)[:, 0]))
    error = ((output - wanted) * weight)[:, None]
    back = (error @ second.T) * (hidden > 0)
    return [inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]


def encoded(network: ScorerNetwork) -> str:
    return base64.b85encode(b"".join(value.astype("<f4").tobytes() for value in network)).decode()


def decoded(text: str) -> ScorerNetwork:
    """Decode a network. Raises ValueError for a text that is not one."""
    numbers = np.frombuffer(base64.b85decode(text), "<f4")
    sizes = [int(np.prod(shape)) for shape in _SHAPES]
    if len(numbers) != sum(sizes):
        raise ValueError(f"a scorer cannot have {len(numbers)} parameters")
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    first, first_bias, second, second_bias = (part.reshape(s) for part, s in zip(parts, _SHAPES, strict=True))
    return ScorerNetwork(first, first_bias, second, second_bias)
