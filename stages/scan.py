"""Scan: flag injections and hidden characters, quarantine what the user did not say, reject secrets (W5, P-19). Only
the user's own words are an identity or a preference. The candidate is marked, never the capture. The rules and the
head's score may add a flag and never take one away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from ..protocol.announced_secrets import names_only_a_secret
from ..protocol.event import Trust
from ..protocol.record import STATES, Status
from .batch import Batch, Candidate, Rejection, step
from .deobfuscation import as_read, decoded, disguised, invisible
from .echoes import drop_echoes
from .other_languages import language
from .rules import any_of, table
from .secrets.clues import ClueSearch
from .secrets.scan import find

if TYPE_CHECKING:  # the daemon uses these rules, and never loads a network
    from ..models.injection import Place

STAGE = "scan"

OWN_TYPES = frozenset({"identity", "preference"})  # What only the user can say of themselves, whatever a model reads
FLOOR = 0.5  # Score from which the head's word is taken in material beside a word of what such orders aim at
LIKELY = 0.6  # Score from which it is taken beside words that speak to an agent, or a sign of a persona without limits
# Score from which it is taken in material by itself: from less on it takes imperatives of a working session for orders
# (models/weights/MODEL_CARD.md).
ALONE = 0.8
# So many different signs within `NEAR` characters make a persona without limits of what each may say honestly.
SIGNS = 3
NEAR = 600

CERTAIN = 0.9999  # The least score of an override of instructions with an act to follow it

LANGUAGES = frozenset({"en", "de", "fr", "es", "it", "pt", "nl"})  # What the head was trained on
READ_CHARACTERS = 20_000  # What the head reads of a text that was asked to be remembered; the rules read all of it
# Where a clause stands, in the head's words: what an agent wrote may repeat what it read.
PLACES: dict[Trust, Place] = {"user": "user", "assistant": "document", "document": "document", "tool": "tool"}
_SPEAKERS = {"user": "the user's own", "assistant": "an agent's", "document": "a document's", "tool": "a tool's"}
_DATA = table("injection")
_OVERRIDES = any_of(_DATA["overrides"])
_COMMANDS = any_of(_DATA["commands"])
_PHRASES = any_of([*_DATA["overrides"], *_DATA["commands"], *_DATA["phrases"]])
_AIMS = any_of(_DATA["aims"])
_ORDERS = any_of(_DATA["phrases"])
_ADDRESS = any_of([*_DATA["address"], *_DATA["signs"]])
_SIGNS = tuple(any_of([sign]) for sign in _DATA["signs"])
# Blanks to `re`, not to the search in one pass; and its byte for all characters beyond ASCII, which no such text holds
_AS_SEARCHED = bytes.maketrans(b"\x1c\x1d\x1e\x1f\x7f", b"    \x01")
_searches: list[ClueSearch] = []


def prepare() -> None:
    """Compile the search in one pass (half a second), which spares most texts the expressions: 1 µs, not 150 µs."""
    if _searches:
        return
    phrases = [*_DATA["overrides"], *_DATA["commands"], *_DATA["phrases"]]
    _searches.append(ClueSearch([phrases, *([sign] for sign in _DATA["signs"])], in_ascii=True))


class InjectionScorer(Protocol):
    """The injection head, as the stage uses it."""

    def score(self, text: str, place: Place) -> float:
        """How much `text` looks like an order to an agent, in [0, 1]."""
        ...


class Scan:
    """The stage. `judge`: the head; without one the rules decide alone and records count as unscored."""

    def __init__(self, judge: InjectionScorer | None = None) -> None:
        self._judge = judge

    def __call__(self, batch: Batch) -> Batch:
        """Judge every candidate; reject those that hold a secret or only say that there is one, without their words,
        and echoes, with them."""
        judged: list[Candidate] = []
        rejections: list[Rejection] = []
        batch = drop_echoes(batch)
        for candidate in batch.candidates:
            if find(candidate.quote) or find(candidate.question) or names_only_a_secret(candidate.quote):
                rejections.append(Rejection(stage=STAGE, reason="secret", seq=candidate.item.seq))
                continue
            judged.append(self._with_question(_judged(candidate, self._score(candidate))))
        return msgspec.structs.replace(batch, candidates=tuple(judged), rejections=batch.rejections + tuple(rejections))

    def _score(self, candidate: Candidate) -> float | None:
        """The head's score of the clause; None without a head or in a language that it does not read."""
        return self._score_of(candidate.quote[:READ_CHARACTERS], PLACES[candidate.trust])

    def _score_of(self, words: str, place: Place) -> float | None:
        if self._judge is None or not is_scored(words):
            return None
        return round(highest_score(self._judge, words, place), 5)

    def _with_question(self, candidate: Candidate) -> Candidate:
        """The candidate; at most noted if the question that it answers may be an order, because the agent asked it."""
        flags = flags_of(candidate.question) if candidate.question else ()
        score = self._score_of(candidate.question, PLACES["assistant"]) if candidate.question else None
        if not flags and not is_order(candidate.question, score):
            return candidate
        what = f"the question is {_read_as(score)}{''.join(f', {flag}' for flag in flags)}: {STATES['quarantined']}"
        every = tuple(dict.fromkeys((*candidate.flags, *flags)))
        return step(candidate, STAGE, what, status="quarantined", flags=every)


def is_scored(text: str) -> bool:
    """Whether the head reads the language of `text`."""
    return language(text) in LANGUAGES


def highest_score(judge: InjectionScorer, text: str, place: Place) -> float:
    """The score of `text` or of what is encoded in it, in [0, 1], whichever is more like an order. A text that sets an
    agent's instructions aside and gives it a command, a secret to fetch or a thing to hide has `CERTAIN` at least."""
    pieces = (text, *decoded(text))
    highest = max(judge.score(piece, place) for piece in pieces)
    return max(highest, CERTAIN) if any(_overrides_to_act(as_read(piece)) for piece in pieces) else highest


def _overrides_to_act(read: str) -> bool:
    """Whether `read` holds the shape that no score may pass: an override of instructions and an act to follow it."""
    return bool(_OVERRIDES.search(read)) and any(act.search(read) for act in (_COMMANDS, _AIMS, _ORDERS))


def _judged(candidate: Candidate, score: float | None) -> Candidate:
    material = candidate.trust != "user"
    flags = flags_of(candidate.quote, material=material)
    if material and "injection" not in flags and is_order(candidate.quote, score):
        flags = ("injection", *flags)
    status: Status = "active" if not (material or flags or candidate.is_noted) else "quarantined"
    parts = (f"{_SPEAKERS[candidate.trust]} words", _read_as(score), *flags)
    what = f"{', '.join(parts)}: {STATES.get(status, status)}"
    type_ = "fact" if material and candidate.type in OWN_TYPES else candidate.type
    flags = (*candidate.flags, *flags)
    return step(candidate, STAGE, what, type=type_, status=status, flags=flags, injection=score)


def _read_as(score: float | None) -> str:
    """A score in words, for `memd why`."""
    if score is None:
        return "not read by the injection model"
    return f"{'like' if score >= FLOOR else 'not'} an order to an agent (score {score:.2f} of 1)"


def is_order(text: str, score: float | None) -> bool:
    """Whether the head's word on `text`, a score in [0, 1] or None for none, is taken where it is material."""
    if score is None or score < FLOOR:
        return False
    beside = (_AIMS, _ADDRESS) if score >= LIKELY else (_AIMS,)
    return score >= ALONE or any(words.search(read) for read in _readings(text) for words in beside)


def flags_of(text: str, material: bool = True) -> tuple[str, ...]:
    """The flags that `text` earns: `injection` (`instruction-like` in the user's own words), `invisible`, `lookalike`.
    `material`: somebody else's words, not the user's own."""
    signs = (("invisible", invisible(text)), ("lookalike", disguised(text)))
    hidden = tuple(name for name, stands in signs if stands)
    if not any(_may_order(read) and (_PHRASES.search(read) or _gathers(read)) for read in _readings(text)):
        return hidden
    return ("injection" if material or hidden else "instruction-like", *hidden)


def _may_order(read: str) -> bool:
    """Whether a phrase or enough signs may stand in `read`; False only where none do."""
    if not _searches or not read.isascii():
        return True
    clues = _searches[0].search(read.encode().translate(_AS_SEARCHED))
    return 0 in clues or len(clues) >= SIGNS


def _readings(text: str) -> tuple[str, ...]:
    """`text` as a reader takes it, and what is encoded in it."""
    return (as_read(text), *map(as_read, decoded(text)))


def _gathers(read: str) -> bool:
    """Whether `SIGNS` different signs stand within `NEAR` characters of one another, none inside another one."""
    stands = sorted((*hit.span(), which) for which, sign in enumerate(_SIGNS) for hit in sign.finditer(read))
    last: dict[int, int] = {}
    passed = 0
    for start, end, which in stands:
        if start < passed:
            continue
        passed = end
        last[which] = start
        if sum(start - seen <= NEAR for seen in last.values()) >= SIGNS:
            return True
    return False
