"""Open items: commitments that no later turn reports as done or dropped (Q1).

Invariants: nothing but the archive is read; only a sentence about the same things closes an item, never time; a negated
sentence closes nothing.
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
"""Turns of the same session after a commitment that may close it."""

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


def is_open(commitment: Record, archive: Archive, learned: Iterable[Record]) -> bool:
    """Whether neither a later turn nor a record that was learned later closes a commitment."""
    wanted = _subject(commitment.content)
    if not wanted:
        return False
    said_at = micros(commitment.provenance.said_at)
    later = (record for record in learned if record.id != commitment.id and micros(record.provenance.said_at) > said_at)
    if any(closes(record.content, wanted) for record in later):
        return False
    span = commitment.provenance.spans[0]
    around = archive.around(span.document, span.turn, 0, TURNS)
    return not any(closes(text(turn.event), wanted) for _, turn in around if turn.event.turn != span.turn)


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


def _subject(words: str) -> tuple[str, ...]:
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
