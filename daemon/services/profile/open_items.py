"""Open threads: what somebody said they would do, and no later turn says is done, dropped or done with (Q1).

Comes in: a commitment, the turns after it, what was learnt since. Goes out: whether it is still open. Invariants: pure
but for reading the archive; a thread closes by a sentence that speaks of the same things and says so, never by time; a
sentence that denies it closes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ....protocol.event import text
from ....protocol.instant import micros
from ....protocol.record import Record
from ....stages.words import NEGATIONS, STOP, tokens
from ...storage.archive import Archive

TURNS = 400
"""Turns after a commitment that are looked at, of its own session."""

SHARED = 0.6
"""This share of a commitment's words stands in the sentence that closes it."""

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


def is_open(commitment: Record, archive: Archive, learnt: Iterable[Record]) -> bool:
    """Whether nothing said or learnt later closes a commitment."""
    wanted = _subject(commitment.content)
    if not wanted:
        return False
    said_at = micros(commitment.provenance.said_at)
    later = (each for each in learnt if each.id != commitment.id and micros(each.provenance.said_at) > said_at)
    if any(closes(each.content, wanted) for each in later):
        return False
    span = commitment.provenance.spans[0]
    around = archive.around(span.document, span.turn, 0, TURNS)
    return not any(closes(text(each.event), wanted) for _, each in around if each.event.turn != span.turn)


def closes(words: str, wanted: Sequence[str]) -> bool:
    """Whether a sentence of these words says that a thing is done or dropped."""
    if not _CLOSED.search(words):
        return False
    return any(_says_so(sentence, wanted) for sentence in _SENTENCE.split(words))


def _says_so(sentence: str, wanted: Sequence[str]) -> bool:
    if not _CLOSED.search(sentence) or _OPEN.search(sentence):
        return False
    found = tokens(sentence)
    if any(token.text.lower() in NEGATIONS for token in found) and "no longer" not in sentence.lower():
        return False
    stems = {token.stem for token in found}
    return sum(stem in stems for stem in wanted) >= SHARED * len(wanted)


_PROMISE = frozenset(
    "will going gonna plan promise commit let want need try today tomorrow next later soon week".split()
)


def _subject(words: str) -> tuple[str, ...]:
    """The stems that say what a commitment is about."""
    kept = (
        token.stem
        for token in tokens(words)
        if token.kind != "mark"
        and token.text.lower() not in STOP
        and token.stem not in _PROMISE
        and len(token.stem) > 2
    )
    return tuple(dict.fromkeys(kept))
