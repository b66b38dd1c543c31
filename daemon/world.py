"""The only source of time and randomness; tests pass their own `World`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple


class World(NamedTuple):
    """`now`: microseconds since 1970 in UTC; `monotonic`: seconds that never go back; `token(n)`: n random bytes."""

    now: Callable[[], int]
    monotonic: Callable[[], float]
    token: Callable[[int], bytes]


def real_world() -> World:
    """Return the World of the machine's clock and entropy."""
    return World(now=lambda: time.time_ns() // 1000, monotonic=time.monotonic, token=os.urandom)
