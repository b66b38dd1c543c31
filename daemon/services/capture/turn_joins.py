"""Secrets that two neighbouring turns of a session hold together: one announces what the other one says, or half of it.

Only the end of the last turn of each session is remembered, without its secrets, and only while memd runs.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from ....protocol.announced_values import is_secretish
from ....protocol.event import Captured, text, with_text
from ....stages.secrets.scan import SecretSpan

SESSIONS = 256
"""Sessions whose last turn is remembered; the least recent is dropped."""

REACH = 200
"""Characters of each turn that are read together."""

_JOINTS = ("\n", " ", "")
_REDACTED_END = re.compile(r"\[redacted:([\w-]{1,60})\]\s*\Z")


class _LastTurn(NamedTuple):
    turn: str
    at: str
    tail: str


class TurnJoins:
    """Reads each turn together with the end of the one before it. Called on the write thread alone."""

    def __init__(self, find: Callable[[str, str], Sequence[SecretSpan]]) -> None:
        self._find = find
        self._last: OrderedDict[str, _LastTurn] = OrderedDict()

    def redacted(self, captured: Captured) -> Captured:
        """Return a capture without the secrets that begin in, or are announced by, the session's turn before it."""
        words = text(captured.event)
        if not words:
            return captured
        last = self._last.get(captured.document)
        if last and last.turn != captured.event.turn and last.at <= captured.event.at:
            captured, words = self._without_joined(last.tail, captured, words)
        self._last[captured.document] = _LastTurn(captured.event.turn, captured.event.at, words[-REACH:])
        self._last.move_to_end(captured.document)
        if len(self._last) > SESSIONS:
            self._last.popitem(last=False)
        return captured

    def _without_joined(self, tail: str, captured: Captured, words: str) -> tuple[Captured, str]:
        before = _REDACTED_END.search(tail)
        if before and len(words.split()) == 1 and is_secretish(words.strip()):  # the rest of a secret
            return _replaced(captured, f"[redacted:{before[1]}]", before[1])
        for joint in _JOINTS:
            offset = len(tail) + len(joint)
            for secret in self._find(captured.document, f"{tail}{joint}{words[:REACH]}"):
                if secret.end > offset and secret.start < offset + REACH:
                    start = max(0, secret.start - offset)
                    words = f"{words[:start]}[redacted:{secret.rule}]{words[secret.end - offset :]}"
                    return _replaced(captured, words, secret.rule)
        return captured, words


def _replaced(captured: Captured, words: str, rule: str) -> tuple[Captured, str]:
    event = with_text(captured.event, words)
    return msgspec.structs.replace(captured, event=event, redacted=(*captured.redacted, rule)), words
