"""Time at work in a running daemon: counts on their way, flushed when a session ends and every ten minutes.

Comes in: what recalls brought up, sessions that end, the passing of time. Goes out: operations, through the committer.
Invariant: nothing here keeps a client waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..committer import Committer
from ..stores import Stores
from .counting import FLUSH_S, Counting
from .rules import Rules


class Lifetime:
    """What the daemon tells of recalls and of sessions' ends, and asks to be done now and then."""

    def __init__(self, stores: Stores, committer: Committer, rules: Callable[[], Rules]) -> None:
        self._stores = stores
        self.counting = Counting(stores, committer, rules)

    def begin(self, every: Callable[[float, Callable[[], object], str], None]) -> None:
        """Have done at intervals what is due at intervals."""
        every(FLUSH_S, self.counting.flush, "counts")

    def recalled(self, ids: Iterable[str]) -> None:
        """A question to the present brought these records up (T3)."""
        self.counting.candidates(ids)

    def ended(self, documents: Iterable[str]) -> None:
        """These sessions ended. Called on the committer's thread."""
        if any(documents):
            self.counting.flush()

    def stop(self) -> None:
        """Write down what waits; the committer still runs."""
        self.counting.flush().result()
