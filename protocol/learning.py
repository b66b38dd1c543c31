"""The operation of feedback: what an answer held, and what became of it (Q6).

Comes in: the asker's word on an answer. Goes out: a frozen operation. Invariants: it carries the features as they were
when the question was answered, so that learning from it again gives the same; it names records by id and quotes none.
"""

from __future__ import annotations

import msgspec

from .envelope import Operation


class Sample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record as the scorer saw it, whether it should have stood high, and what that weighs."""

    id: str
    features: tuple[float, ...]
    wanted: bool
    weight: float = 1.0


class FeedbackGiven(Operation, tag="feedback", frozen=True, kw_only=True):
    """What became of an answer, by the word of who asked: what was used, what helped, what was wrong (T3, T4, Q6)."""

    agent: str = ""
    used: tuple[str, ...] = ()
    helpful: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    failed: bool = False
    samples: tuple[Sample, ...] = ()
