"""What the user said of themselves a moment ago: the last section of a profile until memd has distilled it (W1).

Invariants: it is read from captures that wait to be distilled, so nothing is written and a restart loses nothing; only
live turns of the user count; a session is not told what it said itself; the revision of a profile stays, so that no
agent gets the whole text again for these lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from msgspec.structs import replace

from ....protocol.event import Said
from ....protocol.profile import ProfileText
from ....stages.batch import PERSONAL
from ...projections.stores import Stores
from ..service import Caller
from .hot import CLOSE, INTRO, framed, revision
from .profile_lines import in_one_line, is_clean

HEADING = "## Just said by the user, not processed yet"

RECENT = 64
"""Newest waiting captures that are read."""

MOST = 5
"""Most lines, the newest."""


class JustSaid:
    """Adds the section. On the fast lane."""

    def __init__(self, stores: Stores, count: Callable[[str], int]) -> None:
        """`count`: the tokens of a text."""
        self._stores, self._count = stores, count

    def prepare(self) -> None:
        """Compile the word rules, which takes 0.1 s."""
        _said("I prefer tabs.")

    def added(self, profile: ProfileText, caller: Caller, document: str, budget_tokens: int) -> ProfileText:
        """Return the profile of a session with the section, where it has lines and the budget has room for it."""
        if not profile.pending or PERSONAL not in caller.scope:
            return profile
        lines = [f"- {words}" for words in self._words(caller, document) if words not in profile.text][-MOST:]
        if not lines:
            return profile
        section = "\n".join([HEADING, *lines])
        text = f"{profile.text.removesuffix(CLOSE)}{section}\n{CLOSE}" if profile.text else framed([INTRO, section])
        tokens = self._count(text)
        if tokens > budget_tokens:
            return profile
        return replace(profile, text=text, rev=profile.rev or revision(text), tokens=tokens)

    def _words(self, caller: Caller, document: str) -> Iterator[str]:
        archive, pending = self._stores.archive, min(RECENT, self._stores.pending)
        for _, captured in archive.after(archive.last - pending, pending):
            event = captured.event
            if not (captured.live and isinstance(event, Said) and event.role == "user"):
                continue
            if captured.document != document and (caller.hears is None or caller.hears(captured.document)):
                yield from _said(event.text)


@lru_cache(512)
def _said(turn: str) -> tuple[str, ...]:
    from ....stages.just_said import said_of_self  # late: its expressions take long to compile at the start

    return tuple(line for _, words in said_of_self(turn) if is_clean(line := in_one_line(words)))
