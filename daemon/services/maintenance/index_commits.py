"""Keeps the keyword indexes, and what sessions were given, on the disk while things change; rests while nothing does.

Comes in: the word that something changed. Goes out: commits of the indexes, at most one a `keyword_commit_s`.
Invariants: nobody waits for it, what is not committed yet is searched from memory; what failed is tried again.
"""

from __future__ import annotations

import threading

from ...projections.stores import Stores
from ..profile.echo_ledger import EchoLedger

RESTFUL_S = 60.0
"""How often it looks anyway."""


class IndexCommits:
    """The thread."""

    def __init__(self, stores: Stores, givings: EchoLedger, stop: threading.Event, every_s: float) -> None:
        self.every_s = every_s
        self._stores, self._givings, self._stop = stores, givings, stop
        self._thread = threading.Thread(target=self._run, name="keywords", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        changed = self._stores.changed
        while not self._stop.is_set():
            changed.wait(RESTFUL_S)
            changed.clear()
            if self._stop.wait(self.every_s):
                return
            if not self._stores.index():
                changed.set()
            self._givings.save()
