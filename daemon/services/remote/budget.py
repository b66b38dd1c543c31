"""The tokens of a day: an upper bound of each call before it, and the count after it (W4).

Invariants: the sum of a day's reservations and counts is at most the cap when a call is reserved; a call takes at most
its reservation at a server that keeps to `max_tokens`; a reservation is replaced only by an outcome that is known.
"""

from __future__ import annotations

from datetime import datetime

from ....protocol.operation import RemoteReserved, RemoteSettled
from ..token_estimate import tokens
from .call_messages import CallAnswer

ANSWER_TOKENS = 2_000
"""Most tokens that a server is asked to answer."""

TEMPLATE_TOKENS = 1_000
"""Most tokens that a server adds to a body: marks of the roles, Anthropic's own instruction for tools (some 500)."""


def local_day(now: int) -> int:
    """Return the local day of a time in microseconds, such as 20260131."""
    moment = datetime.fromtimestamp(now / 1e6).astimezone()
    return moment.year * 10_000 + moment.month * 100 + moment.day


def most_tokens(body: str) -> int:
    """Return the most tokens that a call with this body takes, its answer included: in every tokenizer in use, a token
    is at least one byte."""
    return len(body.encode()) + TEMPLATE_TOKENS + ANSWER_TOKENS


def used(reserved: RemoteReserved, body: str, answer: CallAnswer) -> int:
    """Return the tokens that count for a call with this outcome, which may be more than the reserved ones."""
    match answer.outcome:
        case "refused" | "unsent":
            return 0
        case "taken" | "dropped" if answer.tokens or answer.content:
            return max(answer.tokens, tokens(body) + tokens(answer.content))
        case _:
            return reserved.tokens


def interrupted(reserved: RemoteReserved) -> RemoteSettled:
    """Return the settlement of a call during which the daemon ended: nobody knows whether it was sent."""
    return RemoteSettled(id=reserved.id, outcome="unknown", tokens=reserved.tokens, size=reserved.size)
