"""Salience: a number that orders records and never decides whether a record exists (T2).

Age is in calendar days, because a fact ages whether or not anyone works; a kind that never fades does not age.
"""

from __future__ import annotations

from math import log, log1p

from ...protocol.instant import micros
from ...protocol.record import Record, Signal, Volatility
from ..forgetting_rules import HalfLives, Rules
from .strength import DAY

LEAST_IMPORTANCE = 0.05
GIVEN = 10
"""Times that agents were given a line without use, from which its place in the profile falls."""

REINFORCED = 0.25
"""What the first doublings of use add: 1 use 17 %, 10 uses 60 %, 100 uses 115 %."""


def half_life_days(volatility: Volatility, half_lives: HalfLives) -> float:
    """Return the calendar days after which recency has halved."""
    return {"stable": half_lives.stable, "semi": half_lives.semi, "situational": half_lives.situational}[volatility]


def recency(record: Record, signal: Signal, now: int, rules: Rules) -> float:
    """Return 0.5 ^ (age / half-life) in (0, 1], with the age of the statement or of its last use, if less (T2, Q6).

    `now` in microseconds; a statement of the future has age 0.
    """
    if record.kind in rules.never or rules.is_off(record.pool):
        return 1.0
    said = min(micros(record.provenance.said_at), record.learned_at or now)
    age_days = max(0.0, (now - max(said, signal.last_access)) / DAY)
    half_life = half_life_days(record.volatility, rules.half_lives)
    return 0.5 ** (age_days / half_life) if half_life else 1.0


def reinforcement(signal: Signal) -> float:
    """Return a factor from 1 up that grows with the logarithm of uses (T2)."""
    return 1.0 + REINFORCED * log1p(signal.access_count)


def standing(signal: Signal) -> float:
    """Return the factor of a profile line's weight by use. It changes in few steps, so that profiles seldom change: it
    grows like `reinforcement` with each doubling of uses, and halves for a line that agents were given 10, 20, 40, …
    times and nobody used (T3)."""
    if signal.access_count:
        return 1.0 + REINFORCED * log(2.0) * signal.access_count.bit_length()
    return 0.5 ** (signal.candidate_count // GIVEN).bit_length()


def salience(record: Record, signal: Signal, now: int, rules: Rules, relevance: float = 1.0) -> float:
    """Return relevance × recency × importance × reinforcement (T2)."""
    importance = max(LEAST_IMPORTANCE, signal.importance)
    return relevance * recency(record, signal, now, rules) * importance * reinforcement(signal)
