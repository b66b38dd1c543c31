"""What was answered lately: the features that each given record had, for the feedback that may come (Q6).

Comes in: answers. Goes out: their features by the answer's name. Invariants: in memory alone, and not for long; an
answer that is forgotten here can still be told about, it only teaches the scorer nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from ...world import World

KEPT = 256


class RecentAnswer(NamedTuple):
    """One answer: who asked, under which perspective, and the features of each record that was given."""

    agent: str
    perspective: str
    rows: Mapping[str, tuple[float, ...]]


class RecentAnswers:
    """The last answers. The door's thread and the slow lane's note, the committer's looks."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._start = world.token(4).hex()
        self._count = 0
        self._lock = threading.Lock()
        self._answers: dict[str, RecentAnswer] = {}

    def note(self, agent: str, perspective: str, rows: Mapping[str, tuple[float, ...]]) -> str:
        """Keep an answer; its name, "" where nothing was given."""
        if not rows:
            return ""
        with self._lock:
            self._count += 1
            name = f"{self._start}{self._count:x}"
            self._answers[name] = RecentAnswer(agent, perspective, rows)
            if len(self._answers) > KEPT:
                self._answers.pop(next(iter(self._answers)), None)
        return name

    def get(self, name: str) -> RecentAnswer | None:
        """An answer by its name, None if it is too long ago."""
        return self._answers.get(name)
