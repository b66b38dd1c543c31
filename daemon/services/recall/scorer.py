"""Priority: nine features of a relevant record become one score, linear at first, learnt from feedback later (Q6).

Comes in: a record with its relevance. Goes out: a score in [0, 1]. Invariants: similarity leads, since the score stays
within 0.12 of it, so nothing lifts a record over one that is 0.25 more similar; features are fixed, only their
combination is learnt; no clock is read here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....protocol.instant import micros
from ....protocol.record import Record
from ...projections.lines import PRINCIPLE

FEATURES = (
    "similarity",
    "strength",
    "strength_here",
    "used",
    "recency",
    "impact",
    "tags",
    "principle",
    "perspective",
)
"""In this order, each in [0, 1] (S3)."""

HIDDEN = 16
LINEAR = (0.40, 0.40, 0.0, 0.0, 0.20, 0.0, 0.0, 0.0, 0.0)
_LINEAR = np.array(LINEAR, np.float32)
LEAD = 0.12
SAMPLES = 100
"""Below so many samples of feedback the score is linear."""

DAY = 86_400_000_000
HALF_LIFE_DAYS = {"stable": 365.0, "semi": 90.0, "situational": 14.0}
"""Of recency, by volatility (T2)."""

IMPACT = 2.0
"""The impact that counts one half: one report that it helped (T4)."""

OWN_FIRST, CONFIRMED, WEIGHTY = 0.05, 0.03, 0.05
"""Own facts stand before the project's (P2), the user's word before others' (P-19), what matters before the rest."""


class ScorerNetwork(NamedTuple):
    """A learnt scorer: 9 → 16 → 1, ReLU, sigmoid."""

    first: NDArray[np.float32]
    first_bias: NDArray[np.float32]
    second: NDArray[np.float32]
    second_bias: NDArray[np.float32]

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """The score of each row."""
        hidden = np.maximum(features @ self.first + self.first_bias, 0.0)
        return (1.0 / (1.0 + np.exp(-(hidden @ self.second + self.second_bias)[:, 0]))).astype(np.float32)


def features(record: Record, similarity: float, words: frozenset[str], perspective: str, now: int) -> tuple[float, ...]:
    """The nine features of a record for a question. `now` in microseconds."""
    signal = record.signal
    strength = signal.strength / (1 + signal.strength)
    here = signal.strength_by.get(perspective, signal.strength)
    last = max(signal.last_access, record.learned_at or micros(record.provenance.said_at))
    days = max(0, now - last) / DAY
    impact = max(0.0, signal.impact)
    tags = {tag.lower() for tag in record.tags[1:]} if len(record.tags) > 1 else ()
    return (
        similarity,
        strength,
        here / (1 + here),
        min(1.0, signal.access_count / max(1, signal.candidate_count)),
        math.exp(-math.log(2) * days / HALF_LIFE_DAYS[record.volatility]),
        impact / (IMPACT + impact),
        len(words.intersection(tags)) / len(tags) if tags else 0.0,
        float(PRINCIPLE in record.tags),
        float(bool(perspective) and perspective in record.learnings),
    )


def scored(rows: Sequence[tuple[float, ...]], network: ScorerNetwork | None) -> list[float]:
    """What the scorer makes of these features: the linear one, moved by what the learnt one sees in these candidates.

    The learnt one says how likely a record is to be used: what is likelier than the others rises. Where it tells little
    apart, the linear order stays.
    """
    if not rows:
        return []
    table = np.array(rows, np.float32)
    linear = _LINEAR @ table.T
    if network is None:
        return linear.tolist()
    likely = network.scores(table)
    return (linear + likely - likely.mean()).tolist()


def final(similarity: float, priority: float, standing: float) -> float:
    """Similarity, moved by at most 0.12 towards what the scorer and the record's standing make of it."""
    moved = max(-LEAD, min(LEAD, priority + standing - similarity))
    return max(0.0, min(1.0, similarity + moved))


def standing(record: Record, own: bool) -> float:
    """What a record has ahead of others that are as relevant."""
    return (
        OWN_FIRST * own + CONFIRMED * (record.provenance.trust == "user") + WEIGHTY * (record.signal.importance - 0.5)
    )
