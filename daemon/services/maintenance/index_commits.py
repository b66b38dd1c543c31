"""Keeps the keyword indexes, and what sessions were given, on the disk while things change; rests while nothing does.

Comes in: the word that something changed. Goes out: commits of the indexes, at most one a `keyword_commit_s`.
Invariants: nobody waits for it, what is not committed yet is searched from memory; what failed is tried again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...projections.stores import Stores

RESTFUL_S = 60.0
"""How often it looks anyway."""


class IndexCommits:
    """The thread that commits the keyword indexes, at most once an interval while things change."""

    def __init__(self, stores: Stores, save: Callable[[], None], every_s: Callable[[], float]) -> None:
        """`save`: saved after each commit."""
        self._stores, self._save, self._every_s = stores, save, every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keywords", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Commit nothing any more; the stores do so when they close."""
        self._stopping.set()

    def _run(self) -> None:
        changed = self._stores.changed
        while not self._stopping.is_set():
            changed.wait(RESTFUL_S)
            changed.clear()
            if self._stopping.wait(self._every_s()):
                return
            if not self._stores.index():
                changed.set()
            self._save()
