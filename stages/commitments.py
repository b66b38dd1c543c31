"""Commitments: the sentences that report one as done or dropped. A negated sentence closes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .words import NEGATIONS, STOP, tokens

SHARED = 0.6
"""Share of a commitment's words that the sentence that closes it contains."""

_CLOSED = re.compile(
    r"\b(?:done|finished|complet(?:e|ed)|fixed|resolved|solved|shipped|merged|released|deployed|landed|implemented|"
    r"added|wrote|written|moved|removed|deleted|dropped|renamed|replaced|updated|upgraded|migrated|switched|sent|booked|"
    r"paid|cancel(?:l)?ed|abandoned|reverted|works now|no longer|is in place|closed|created|built|tested|passed|"
    r"erledigt|fertig|abgeschlossen)\b|完成|完了|済み|완료|تم\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:will|going to|gonna|plan(?:s|ned)? to|should|must|need(?:s)? to|todo|to-do|yet|still|if)\b", re.I
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")


def closes(words: str, wanted: Sequence[str]) -> bool:
    """Whether a sentence of a text says that a thing is done or dropped; `wanted`: the stems of the thing."""
    return bool(_CLOSED.search(words)) and any(_reports_end(line, wanted) for line in _SENTENCE.split(words))


def _reports_end(sentence: str, wanted: Sequence[str]) -> bool:
    if not _CLOSED.search(sentence) or _OPEN.search(sentence):
        return False
    parts = tokens(sentence)
    if any(token.text.lower() in NEGATIONS for token in parts) and "no longer" not in sentence.lower():
        return False
    stems = {token.stem for token in parts}
    return sum(stem in stems for stem in wanted) >= SHARED * len(wanted)


_PROMISE = frozenset(
    "will going gonna plan promise commit let want need try today tomorrow next later soon week".split()
)


def subject(words: str) -> tuple[str, ...]:
    """Return the stems of a commitment's subject."""
    stems = (
        token.stem
        for token in tokens(words)
        if token.kind != "mark"
        and token.text.lower() not in STOP
        and token.stem not in _PROMISE
        and len(token.stem) > 2
    )
    return tuple(dict.fromkeys(stems))
