"""The tokens of a day: an estimate of each call before it, and the count after it (W4).

Invariants: the sum of a day's reservations and counts is at most the cap when a call is reserved; a reservation is
replaced only by an outcome that is known.
"""

from __future__ import annotations

from datetime import datetime

from ....protocol.operation import RemoteReserved, RemoteSettled
from ..token_estimate import tokens
from .call_messages import CallAnswer

ANSWER_TOKENS = 2_000
"""Most tokens that a server is asked to answer."""

MARGIN = 1.3
"""Tokenizers of servers differ: the estimate of what is sent is that much larger than our own count."""

TRUSTED_USAGE = 50
"""A server's count is believed up to this many times the reservation: a wrong one must not end the day for years."""


def local_day(now: int) -> int:
    """Return the local day of a time in microseconds, such as 20260131."""
    moment = datetime.fromtimestamp(now / 1e6).astimezone()
    return moment.year * 10_000 + moment.month * 100 + moment.day


def estimate(body: str) -> int:
    """Return the most tokens that a call with this body is expected to take, its answer included."""
    return int(tokens(body) * MARGIN) + ANSWER_TOKENS


def used(reserved: RemoteReserved, body: str, answer: CallAnswer) -> int:
    """Return the tokens that count for a call with this outcome."""
    match answer.outcome:
        case "refused" | "unsent":
            return 0
        case "taken" | "dropped":
            counted = min(answer.tokens, TRUSTED_USAGE * reserved.tokens)
            return max(counted, tokens(body) + tokens(answer.content))
        case _:
            return reserved.tokens


def interrupted(reserved: RemoteReserved) -> RemoteSettled:
    """Return the settlement of a call during which the daemon ended: nobody knows whether it was sent."""
    return RemoteSettled(id=reserved.id, outcome="unknown", tokens=reserved.tokens, size=reserved.size)
