"""What a remote model is given of a session (W4): pure functions over its captures.

Invariants: only turns of the user and the assistant, and passages of an ingested document; a text without what was
forgotten, redacted, hidden or marked private; a turn in which the rules of today find an injection is left out whole;
pseudonyms unless the user controls the server. Each part of a session is sent once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ....protocol.event import Captured, Reflected, Said, Wrote
from ....protocol.private import PLACEHOLDER, without_private
from ..outgoing_screen import flags_in, without_secrets
from ..token_estimate import tokens
from .pseudonyms import Pseudonyms, Surroundings

PART_TOKENS = 6_000
"""Most tokens of turns in one call."""

TURN_CHARACTERS = 12_000
"""Characters of a turn that are sent: the end of a longer one is mostly a paste."""

_EMPTY = re.compile(r"\[redacted[^\]]*\]|\[removed\]|█+|" + re.escape(PLACEHOLDER))

Numbered = Sequence[tuple[int, Captured]]


class SessionPart(NamedTuple):
    """A part of a session, as it is sent. `given`: its turns, as the archive has them; `upto`: seq of the last turn
    that was read for it, sent or left out; `shown`: the words of its turns that the user did not hide; `left_out`:
    turns with signs of an injection."""

    text: str
    given: tuple[Captured, ...]
    shown: tuple[str, ...]
    upto: int
    pseudonyms: Pseudonyms | None
    left_out: int = 0


def unread(captures: Numbered, reader: str, upto: int) -> list[tuple[int, Captured]]:
    """Return the turns of user, assistant and document that a reader has not been sent. `upto`: seq that it has read to
    by the journal; what it said in the archive counts too, because a kill may have lost the journal's word."""
    last = {c.event.upto for _, c in captures if isinstance(c.event, Reflected) and c.event.reader == reader}
    upto = max([upto, *(seq for seq, captured in captures if captured.event.turn in last)])
    return [(seq, captured) for seq, captured in captures if seq > upto and isinstance(captured.event, Said | Wrote)]


def parts_of(
    turns: Numbered, shown: Callable[[Captured], str], around: Surroundings | None, skipped: Callable[[Captured], bool]
) -> Iterator[SessionPart]:
    """Yield the parts of a session in order. `shown`: the words of a turn without those that the user hid; `around`:
    None for a server of the user's; `skipped`: whether a turn was sent as that of another session."""
    part = _Part(around)
    for seq, captured in turns:
        visible = "" if skipped(captured) else shown(captured)
        words = _clean(visible)
        if not words:
            part.upto = seq
            continue
        if flags_in(words):
            part.upto, part.left_out = seq, part.left_out + 1
            continue
        line = part.line(captured, words)
        if part.given and part.size + tokens(line) > PART_TOKENS:
            yield part.whole()
            part = _Part(around)
            line = part.line(captured, words)
        part.add(seq, captured, visible, line)
    if part.given:
        yield part.whole()


def _clean(words: str) -> str:
    """Return a turn's words as they may leave memd; "" if nothing is left."""
    words = without_secrets(without_private(words))[:TURN_CHARACTERS].strip()
    return words if any(map(str.isalnum, _EMPTY.sub("", words))) else ""


class _Part:
    """The part that grows."""

    def __init__(self, around: Surroundings | None) -> None:
        self._pseudonyms = Pseudonyms(around) if around is not None else None
        self._lines: list[str] = []
        self._shown: list[str] = []
        self.given: list[Captured] = []
        self.size = self.upto = self.left_out = 0

    def line(self, captured: Captured, words: str) -> str:
        role = captured.event.role if isinstance(captured.event, Said) else "document"
        return f"[{role}]\n{self._pseudonyms.hide(words) if self._pseudonyms else words}"

    def add(self, seq: int, captured: Captured, visible: str, line: str) -> None:
        self._lines.append(line)
        self._shown.append(visible)
        self.given.append(captured)
        self.size, self.upto = self.size + tokens(line), seq

    def whole(self) -> SessionPart:
        text, given, shown = "\n\n".join(self._lines), tuple(self.given), tuple(self._shown)
        return SessionPart(text, given, shown, self.upto, self._pseudonyms, self.left_out)
