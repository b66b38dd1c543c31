"""The profile's section on the last session in a project, before its other recent lines (C1).

Invariants: each line passes the rules for secrets and injections; the section takes at most `TOKENS` of the profile's
budget; the profile's revision does not depend on it, so that no agent gets the whole text again for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from ....protocol.profile import Profile, ProfileText
from ....stages.batch import PERSONAL
from ...projections.placement import AGENT
from ..service import Caller
from .hot import INTRO, framed, revision
from .profile_lines import in_one_line, is_clean

HEADING = "## Last time here"
TOKENS = 120
LEAST_BUDGET = 4 * TOKENS
"""Smallest budget of a profile with the section."""


class LastSessions(Protocol):
    """Tells what the last session in a project did."""

    def is_told(self, pool: str, document: str, hears: Callable[[str], bool] | None) -> bool:
        """Whether a session of the pool other than `document` is new enough to be told, and has something to tell."""
        ...

    def lines(self, pool: str, document: str, hears: Callable[[str], bool] | None) -> tuple[str, list[str]]:
        """Return the day of the last session before `document`, and its lines, the most useful first."""
        ...


class LastTimeSection:
    """Adds the section to profiles of a project. On the fast lane."""

    def __init__(self, sessions: LastSessions, count: Callable[[str], int]) -> None:
        """`count`: the tokens of a text."""
        self._sessions, self._count = sessions, count
        self._last: tuple[ProfileText, tuple[str, list[str]], ProfileText] | None = None

    def budget(self, request: Profile, caller: Caller) -> int:
        """Return the tokens that the other lines may take. It is the same on every turn of a session."""
        pool, budget = _project(caller.scope), request.budget_tokens
        if not pool or not caller.is_owner or budget < LEAST_BUDGET:
            return budget
        return budget - TOKENS * self._sessions.is_told(pool, request.document, caller.hears)

    def added(self, profile: ProfileText, request: Profile, caller: Caller) -> ProfileText:
        """Return the profile with the section where a session starts, or where no session asks."""
        is_start = not request.document or request.trigger != "turn" or request.delivery == "per_turn"
        if not is_start or self.budget(request, caller) == request.budget_tokens:
            return profile
        told = self._sessions.lines(_project(caller.scope), request.document, caller.hears)
        if self._last is None or self._last[0] is not profile or self._last[1] is not told:
            self._last = profile, told, self._with(profile, *told)
        return self._last[2]

    def _with(self, profile: ProfileText, day: str, told: Sequence[str]) -> ProfileText:
        lines = self._fitting([f"{HEADING} [{day}]"], [f"- {in_one_line(line)}" for line in told if is_clean(line)])
        if not lines:
            return profile
        section = "\n".join(lines)
        if not profile.text:
            return replace(
                profile, text=(text := framed([INTRO, section])), rev=revision(text), tokens=self._count(text)
            )
        at = profile.static_characters
        text = f"{profile.text[:at]}{section}\n{profile.text[at:]}"
        moved = tuple(
            line
            if line.start < at
            else replace(line, start=line.start + len(section) + 1, end=line.end + len(section) + 1)
            for line in profile.lines
        )
        return replace(profile, text=text, lines=moved, tokens=self._count(text))

    def _fitting(self, head: list[str], lines: Sequence[str]) -> list[str]:
        """Return the heading and the lines that the section has room for; none without a line."""
        chosen = list(head)
        for line in lines:
            if self._count("\n".join([*chosen, line])) <= TOKENS:
                chosen.append(line)
        return chosen if len(chosen) > len(head) else []


def _project(scope: Sequence[str]) -> str:
    """Return the project's pool, "" for none."""
    return next((pool for pool in reversed(scope) if pool != PERSONAL and not pool.startswith(AGENT)), "")
