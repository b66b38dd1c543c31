"""Requests and replies about captures that could not be distilled (P-12).

Invariant: none contains captured text.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .request_fields import Many, Request


class ListLetters(Request, tag="dead_letters", frozen=True, kw_only=True):
    """List captures that could not be distilled, newest first (P-12)."""

    limit: Many = 50


class Retry(Request, tag="retry", frozen=True, kw_only=True):
    """Distil failed captures again, by number or all, as a job (P-12)."""

    ids: Annotated[tuple[Many, ...], msgspec.Meta(max_length=1000)] = ()
    all: bool = False


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failed capture: `id` is its archive seq; `stage`, `reason` and `at` (microseconds) are of the last attempt."""

    id: int
    document: str
    turn: str
    stage: str
    reason: str
    attempts: int = 1
    at: int = 0


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `dead_letters`."""

    letters: tuple[DeadLetter, ...]
    total: int
