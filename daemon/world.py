"""The one door to time and chance: whoever needs a clock or random bytes is handed a `World`.

Goes out: microseconds in UTC, monotonic seconds, random bytes. Invariant: nobody else in the daemon reads a clock, so a
test with its own World sees every time it will ever see.
"""

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
    """The machine's own clock and entropy."""
    return World(now=lambda: time.time_ns() // 1000, monotonic=time.monotonic, token=os.urandom)
