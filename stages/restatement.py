"""Decide whether a statement repeats another one. Of an agent's notes the fullest is kept (P-7), or its user's own
words (P-19); repeating what memd told the session adds nothing (W9); the user's own paraphrases stay. A number, a name
in code or a parallel form makes another statement. No answer depends on the order of arrival."""

from __future__ import annotations

import re
from typing import Protocol

from ..models.pair import Relation
from ..protocol.instant import micros
from ..protocol.record import Record
from .claims import Claim, claim
from .echoes import TURN, words_of
from .subjects import unintended
from .words import tokens

FEWEST = 3  # Content words of a note from which another one may say it in full
FULL = 0.85  # Cosine from which a note may say another one in full
# Cosine from which one session tells the same again, and the share of the shorter statement that comes back then.
AGAIN, COVERED = 0.72, 0.5
# The share from which both must be said in the same sense: where it is less, a negation is about what is added.
WHOLLY = 0.65
# Cosine, and share of the words, from which an agent notes down what its user said in that session; and the share from
# which both must affirm or deny it.
WISHED, NEARLY = 0.6, 0.75
PARALLEL = 2  # Content words by which two statements of one form differ: they tell the same of two things
CERTAIN = 0.9  # How sure the pair model has to be of what it says about any two statements, as a probability
# How sure it has to be that words say again what their own session was told. Of 320 held-out pairs, 40 of them
# paraphrases, .8 finds 35 and takes 7 of the other 280 for one; .5 finds 38 and takes 11.
TOLD = 0.8
PARAPHRASED = 0.5  # Cosine from which it is asked whether a statement says what a record told its session
_DENYING = frozenset("unsupported unable impossible unavailable forbidden lacks".split())
_CODE = re.compile(r"`[^`]+`")
_WORD = re.compile(r"\w+")
_AGREEING = re.compile(
    r"(?:yes|yeah|yep|right|exactly|correct|sure|indeed|agreed|of course|true|as (?:always|before|ever|you know)|"
    r"as i said|you know me|like i said|ok(?:ay)?|ja|genau|stimmt|richtig|klar)\b[ ,.:;!]",
    re.IGNORECASE,
)


class PairReader(Protocol):
    """What the stages ask of the pair model."""

    def judge(self, earlier: str, later: str) -> dict[Relation, float]:
        """The probability of each label, from the most likely on."""
        ...


def in_full(whole: Record, part: Record, cosine: float) -> bool:
    """Whether `whole` says all that `part` says, and more: notes that an agent or a document repeats (P-7)."""
    if not _notes(whole, part) or cosine < FULL:
        return False
    more, less = claim(whole.content), claim(part.content)
    return (
        _same_sense(more, less)
        and len(less.stems) >= FEWEST
        and less.stems < more.stems
        and set(less.numbers) <= set(more.numbers)
    )


def told_again(fuller: Record, other: Record, cosine: float) -> bool:
    """Whether `fuller` tells what `other` does, in the same session and more fully (P-7): an agent remarks on something
    on the way, lists it under two headings, and sums it up at the end."""
    if not _notes(fuller, other) or cosine < AGAIN or not _same_session(fuller, other):
        return False
    more, less = _told(fuller), _told(other)
    left, right = less.stems - more.stems, more.stems - less.stems
    parallel = 0 < len(left) <= PARALLEL and 0 < len(right) <= PARALLEL
    covered = len(less.stems & more.stems) / max(1, len(less.stems))
    return (
        covered >= COVERED
        and (covered < WHOLLY or _same_sense(more, less, later=_when(fuller) > _when(other)))
        and not parallel
        and len(less.stems) >= FEWEST
        and _fullness(fuller) > _fullness(other)
        and set(less.numbers) <= set(more.numbers)
        and _in_code(unintended(other.content)) <= set(_WORD.findall(fuller.content.lower()))
    )


def noted_down(wish: Record, note: Record, cosine: float) -> bool:
    """Whether an agent's `note` is what its user said in that session: their own words are there (P-19)."""
    if wish.provenance.trust != "user" or note.provenance.trust != "assistant" or note.kind != "note":
        return False
    own, again = claim(wish.content), claim(note.content)
    covered = len(own.stems & again.stems) / max(1, len(again.stems))
    return (
        cosine >= WISHED
        and covered >= WISHED
        and (covered < NEARLY or _denies(own) == _denies(again))
        and _same_session(wish, note)
        and _when(note) > _when(wish)
        and set(again.numbers) <= set(own.numbers)
        and _in_code(note.content) <= set(_WORD.findall(wish.content.lower()))
    )


def says_again(words: str, given: str, reader: PairReader | None) -> bool:
    """Whether `words` say what was `given`; never where there is no reader. Who agrees and names nothing new says it
    again, however freely: there the model has to see no addition, no more."""
    if reader is None or _values(words) != _values(given):
        return False
    labels = reader.judge(given, words)
    if labels.get("same", 0.0) >= TOLD:
        return True
    agreed = _AGREEING.match(words)
    if not agreed or not TURN.isdisjoint(words_of(words)) or next(iter(labels)) == "refines":
        return False
    return _names(words[agreed.end() :]) <= {token.text.casefold() for token in tokens(given)}


def _told(record: Record) -> Claim:
    """What a note tells: what was to be done about it may have become something else."""
    return claim(unintended(record.content))


def _fullness(record: Record) -> tuple[int, int, int]:
    """By its content words, then by when and where it was said: what was said last knows most."""
    return len(_told(record).stems), *_when(record)


def _when(record: Record) -> tuple[int, int]:
    return micros(record.provenance.said_at), record.provenance.spans[0].start


def _in_code(words: str) -> set[str]:
    """The words that a statement sets in code: another name is another thing."""
    return {word for span in _CODE.findall(words.lower()) for word in _WORD.findall(span)}


def _notes(left: Record, right: Record) -> bool:
    """Whether both are notes, of different words, and neither is the user's."""
    notes = left.kind == right.kind == "note" and left.content != right.content
    return notes and "user" not in {left.provenance.trust, right.provenance.trust}


def _same_sense(more: Claim, less: Claim, *, later: bool = False) -> bool:
    """Whether both say it, or both deny it. What gives something up may say the same if it was said `later`."""
    return _denies(more) == _denies(less) and not less.released and (later or not more.released)


def _denies(claim: Claim) -> bool:
    return claim.negated or not _DENYING.isdisjoint(claim.words)


def _same_session(left: Record, right: Record) -> bool:
    places = [record.provenance.spans[0] for record in (left, right) if record.provenance.spans]
    return len(places) == 2 and places[0].document == places[1].document


def _values(words: str) -> set[str]:
    return {token.text.casefold() for token in tokens(words) if token.kind == "code" or token.text.isdigit()}


def _names(words: str) -> set[str]:
    """The words with a capital letter inside of a sentence."""
    return {token.text.casefold() for token in tokens(words)[1:] if token.kind == "word" and token.text[0].isupper()}
