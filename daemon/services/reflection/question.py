"""When the agent of a session is asked for a reflection, and the question (W4).

Invariants: an agent is asked once a session, also over a restart of the daemon, because the question is an event of the
session; it is asked about no turns that were reflected on before, in this session or in one of which it is a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....protocol.event import Captured, Reflected, ReflectionAsked, Said, ToolCalled
from ....protocol.instant import micros
from ...projections.stores import Stores

LEAST_TURNS, LEAST_CALLS = 5, 20
"""Least turns of the user and calls of tools since the last reflection for which memd asks."""

AGENT = "agent"
"""Prefix of the name of a reader that is the agent of the session; its host follows."""

ASKED = "reflection-asked"
"""The turn of the question."""

SESSIONS = 256
"""Most sessions of which the counts are in memory."""

_QUESTION = (
    "memd asks once, before this session ends: call the tool memory_reflect. `statements`: at most 12 lasting things "
    "that a later session needs and the code does not show: decisions with their reasons, conventions, the user's "
    "preferences, lessons. Each has a type and 1 to 3 quotes: the verbatim words of the user, or yours, from this "
    "session, with the question before a short answer. No tool output, nothing assumed. `title`: the session in a "
    "line. `open`: unfinished work. {learnings}Nothing lasting: the title alone. If quotes are refused, mend them "
    "once. Then stop, without another summary."
)
_LEARNINGS = (
    "`learnings`: at most 6 for your perspectives ({names}): `perspective`, `text` (what the next session does "
    "differently, in a sentence) and `quotes`. "
)


def question(perspectives: Sequence[str]) -> str:
    """Return the question for an agent with these perspectives."""
    learnings = _LEARNINGS.format(names=", ".join(perspectives)) if perspectives else ""
    return _QUESTION.format(learnings=learnings)


class SessionProgress(NamedTuple):
    """Turns of the user and tool calls of a session since its last reflection; `seq`: the last capture counted."""

    turns: int = 0
    calls: int = 0
    seq: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether a reflection is worth its tokens."""
        return self.turns >= LEAST_TURNS and self.calls >= LEAST_CALLS

    def after(self, captures: Iterable[tuple[int, Captured]]) -> SessionProgress:
        """Return the counts after some more captures, in order."""
        turns, calls, last = self
        for seq, captured in captures:
            event = captured.event
            turns += isinstance(event, Said) and event.role == "user" and bool(event.text.strip())
            calls += isinstance(event, ToolCalled)
            if is_reflection(captured):
                turns = calls = 0
            last = max(last, seq)
        return SessionProgress(turns, calls, last)


class ReflectionProgress:
    """Counts what lies behind sessions. Each session is read once, and later only its new captures. One thread calls
    it."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._counted: dict[str, SessionProgress] = {}

    def why_not(self, document: str) -> str:
        """Return why the agent of a session is not asked now, "" if it is."""
        if self._stores.archive.seq_of(document, ASKED):
            return "the agent of this session was asked before"
        progress = self._progress(document)
        if progress.is_enough:
            progress = self._without_copies(document, progress)
        if progress.is_enough:
            return ""
        turns, calls = f"{progress.turns} of {LEAST_TURNS} turns", f"{progress.calls} of {LEAST_CALLS} tool calls"
        return f"too little lies behind the session: {turns}, {calls}"

    def _progress(self, document: str) -> SessionProgress:
        before = self._counted.pop(document, SessionProgress())
        progress = before.after(self._stores.archive.turns_since(document, before.seq))
        while len(self._counted) >= SESSIONS:
            del self._counted[next(iter(self._counted))]
        self._counted[document] = progress  # the newest last
        return progress

    def _without_copies(self, document: str, progress: SessionProgress) -> SessionProgress:
        """Return the counts without turns that another session of the family has reflected on."""
        reflected = (
            micros(captured.event.at)
            for other in self._stores.sources.relatives(document)
            for captured in self._stores.archive.turns(other)
            if is_reflection(captured)
        )
        since = max(reflected, default=0)
        if not since:
            return progress
        own = self._stores.archive.turns_since(document, 0)
        return SessionProgress().after((seq, c) for seq, c in own if micros(c.event.at) > since)


def is_reflection(captured: Captured) -> bool:
    """Whether the agent reflected here, or was asked to."""
    event = captured.event
    is_agents = isinstance(event, Reflected) and event.reader.startswith(f"{AGENT}:")
    return is_agents or isinstance(event, ReflectionAsked)
